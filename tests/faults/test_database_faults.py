"""The database goes away under load, in every way in which it can: when it is back all goes on, and nothing is lost."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests.e2e.conftest import FirstStart, copy_home, open_folder
from tests.e2e.eventually import eventually
from tests.faults.carriers import carrier_of
from tests.faults.conftest import BY_BROKER
from tests.faults.installation import Installation, Service

from graticule.config import Transport
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN

# No power is cut here, so nobody waits for the disk; but what was committed is with the operating system.
NO_POWER_CUT = {"fsync": "off", "full_page_writes": "off"}
LONGEST_SECONDS = 15.0  # of a busy machine; 5 is what an idle one keeps
CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
BEATS = """
    SELECT (SELECT count(*) FROM dagapp.dag_orchestrators WHERE stopped_at IS NULL AND heartbeat_at > %s)
         + (SELECT count(*) FROM dagapp.dag_workers WHERE stopped_at IS NULL AND heartbeat_at > %s) AS processes
"""


class Server:
    """A PostgreSQL of its own, which can be stopped in every way."""

    def __init__(self, home: Path) -> None:
        self._runner = asyncio.Runner()  # kept open: the server is a child of its loop
        self._cluster = Cluster.of(home, settings=NO_POWER_CUT)

    def __enter__(self) -> "Server":
        self._runner.run(self._cluster.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._cluster.stop())
        self._runner.close()

    def database(self, name: str) -> Callable[[str], str]:
        """Make a database as that of the data folder is, and give its address for each role."""
        clone = sql.SQL("CREATE DATABASE {} TEMPLATE graticule STRATEGY file_copy").format(sql.Identifier(name))
        with self._connection() as connection:
            connection.execute(clone)
        return partial(self._cluster.url, database=name)

    def restart(self, number: signal.Signals) -> None:
        """Have the server end by a signal, and start it again."""
        assert self._cluster.pid is not None
        os.kill(self._cluster.pid, number)
        self._runner.run(self._cluster.wait())
        self._runner.run(self._cluster.start())

    def cut(self, _: signal.Signals) -> None:
        """Cut all connections."""
        with self._connection() as connection:
            connection.execute(CUT)

    def _connection(self) -> psycopg.Connection:
        return psycopg.connect(self._cluster.url(ADMIN, "postgres"), autocommit=True)


@dataclass(frozen=True)
class Loaded:
    """Two orchestrators and two workers, and the server that they use."""

    server: Server
    installation: Installation
    orchestrators: list[Service]

    @contextmanager
    def stream(self) -> Iterator[list[str]]:
        """Have jobs submitted one after the other, by a client that does not give up; give those that were accepted."""
        accepted: list[str] = []
        is_over = threading.Event()

        def submit() -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                accepted.append(self.installation.submit(self.orchestrators[number % 2], seconds=0.1))

        thread = threading.Thread(target=submit)
        thread.start()
        try:
            eventually(lambda: len(accepted) > 5, "a stream of jobs")
            yield accepted
        finally:
            is_over.set()
            thread.join()


@pytest.fixture(scope="module")
def server(first_start: FirstStart) -> Iterator[Server]:
    with open_folder() as folder, Server(copy_home(first_start.home, folder / "home")) as server:
        yield server


@pytest.fixture(scope="module", params=[Transport.POSTGRES, BY_BROKER])
def loaded(
    server: Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loaded]:
    url = server.database(f"over_{request.param}")
    with carrier_of(request.param, url) as carrier:
        installation = Installation(url, tmp_path_factory.mktemp("database_faults"), carrier)
        with closing(installation), installation.visitors():
            orchestrators = [installation.orchestrator() for _ in range(2)]
            workers = [installation.worker() for _ in range(2)]
            for service in (*orchestrators, *workers):
                service.until_ready()
            yield Loaded(server, installation, orchestrators)


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        pytest.param(Server.cut, signal.SIGTERM, id="connections cut"),
        pytest.param(Server.restart, signal.SIGKILL, id="killed"),
    ],
)
def test_all_goes_on_when_the_database_is_back(
    loaded: Loaded, fault: Callable[[Server, signal.Signals], None], number: signal.Signals
) -> None:
    assert_all_goes_on(loaded, partial(fault, loaded.server, number))


@pytest.mark.parametrize("loaded", [Transport.POSTGRES], indirect=True)
@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, id="restarted fast"), pytest.param(signal.SIGQUIT, id="restarted immediately")],
)
def test_all_goes_on_when_the_database_was_restarted(loaded: Loaded, number: signal.Signals) -> None:
    assert_all_goes_on(loaded, partial(loaded.server.restart, number))


def assert_all_goes_on(loaded: Loaded, break_down: Callable[[], None]) -> None:
    """Have the database go away while jobs are submitted, and see that all of them end, and soon."""
    installation = loaded.installation
    with loaded.stream() as accepted:
        break_down()
        back = time.monotonic()
        for job_id in [installation.submit(each) for each in loaded.orchestrators]:
            assert installation.until_ended(job_id) == "completed"
        seconds = time.monotonic() - back
        submitted = len(accepted)
        eventually(lambda: len(accepted) > submitted + 5, "more jobs")
        (now,) = installation.query("SELECT now()")
        eventually(
            lambda: installation.query(BEATS, now["now"], now["now"])[0]["processes"] == 4, "heartbeats of all", 5
        )
    installation.until_quiet()
    print(f"{seconds:.2f} s from the database's return to the end of jobs submitted then")  # noqa: T201 - pytest -s
    assert seconds < LONGEST_SECONDS
    assert installation.violations() == []
