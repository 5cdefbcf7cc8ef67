"""What these tests share: the application with its engine at work, on an emptied database."""

from tests.integration.api.conftest import api, database, logged

__all__ = ["api", "database", "logged"]
