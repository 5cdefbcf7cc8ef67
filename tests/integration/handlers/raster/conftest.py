"""A desk for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.handlers.raster.desk import Desk, opened_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(tmp_path / "storage") as opened:
        yield opened
