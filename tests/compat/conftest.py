"""What these tests share: the application with its engine at work, on an emptied database, and its files."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.compat.earlier_reports import EarlierWorker, running_worker
from tests.conftest import TestDatabase
from tests.integration.api.conftest import api, database, logged
from tests.integration.api.running import RunningApi
from tests.integration.handlers.raster.desk import Desk, opened_desk

__all__ = ["api", "database", "logged"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Give the storage of the application, with a way to run handlers on it."""
    with opened_desk(tmp_path / "storage") as opened:
        yield opened


@pytest.fixture
async def worker(api: RunningApi, desk: Desk, database: TestDatabase) -> AsyncIterator[EarlierWorker]:
    async with running_worker(api, desk, database) as running:
        yield running
