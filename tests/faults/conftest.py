"""Installations whose processes are killed, paused and cut off."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.conftest import SharedDatabase
from tests.e2e.conftest import first_start
from tests.faults.installation import Installation

__all__ = ["first_start", "installation"]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Give a database in which the tests of a module leave what they did; whatever they started ends with them."""
    shared = SharedDatabase()
    made = Installation(shared.database.url, tmp_path_factory.mktemp("faults"))
    with closing(made), made.visitors():
        yield made
    shared.drop()
