"""Installations whose processes are killed, paused and cut off, with each of the transports."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.conftest import SharedDatabase
from tests.e2e.conftest import first_start
from tests.faults.carriers import carrier_of
from tests.faults.installation import Installation

from graticule.config import Transport

__all__ = ["first_start", "installation", "on_postgres", "over_broker"]


BY_BROKER = pytest.param(Transport.SERVICEBUS, marks=pytest.mark.thorough)
on_postgres = pytest.mark.parametrize("installation", [Transport.POSTGRES], indirect=True)
over_broker = pytest.mark.parametrize("installation", [BY_BROKER], indirect=True)


@pytest.fixture(scope="module", params=[Transport.POSTGRES, BY_BROKER])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Give a database in which the tests of a module leave what they did; whatever they started ends with them.

    A test runs with each transport, unless it says `on_postgres` or `over_broker`.
    """
    shared = SharedDatabase()
    with carrier_of(request.param, shared.database.url) as carrier:
        made = Installation(shared.database.url, tmp_path_factory.mktemp("faults"), carrier)
        with closing(made), made.visitors():
            yield made
    shared.drop()
