"""Tests of the services write nothing but rows into the platform's tables, so they share a database."""

import pytest
from tests.conftest import TestDatabase


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database
