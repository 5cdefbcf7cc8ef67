"""Data folders for real installations. One is made from nothing in a run; the others are copies of it."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from tests.azurite_server import Azurite
from tests.conftest import HOME_VARIABLE
from tests.e2e.installation import FORKED, Program, Up
from tests.e2e.processes import free_ports
from tests.folders import new_cluster_folder
from tests.otlp_collector import Collector, collecting
from tests.servicebus_emulator.process import running_emulator
from tests.servicebus_emulator.queue import QueueOptions

KEPT = "kept_partner"
KEEP = f"""
    INSERT INTO dagapp.platforms (platform_id, display_name, required_refs, version_ref)
    VALUES ('{KEPT}', 'Kept', ARRAY['a'], 'v')
"""
# A power cut is not among what is tried here, so nobody waits for the disk.
QUICK = "\nfsync = off\nfull_page_writes = off\n"

WORKFLOWS = Path(__file__).with_name("workflows")
QUEUES = ("orchestrator-jobs", "functionapp-tasks", "container-tasks", "other-tasks")

StartUp = Callable[..., Up]
StartProcess = Callable[..., Program]


@dataclass(frozen=True)
class FirstStart:
    """What was seen when a data folder was made: by whichever worker came first."""

    home: Path
    output: str
    errors: str
    exit_code: int
    admin_key: str

    @classmethod
    def record(cls, home: Path) -> "FirstStart":
        up = Up(home)
        try:
            up.until_ready().query(KEEP)
            code = up.end(signal.SIGTERM)
            return cls(home, up.output, up.errors, code, up.admin_key)
        finally:
            up.close()


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that the server's user can enter, and remove it afterwards."""
    made = new_cluster_folder()
    try:
        yield made
    finally:
        shutil.rmtree(made)


@pytest.fixture(scope="session")
def first_start() -> FirstStart:
    """Give the first start of a data folder, which is stopped now and has one row more than the seeds."""
    place = Path(os.environ[HOME_VARIABLE]) / "e2e"  # removed with the run's cluster, by the run that began it
    place.mkdir(exist_ok=True)
    record = place / "first_start.json"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            seen = FirstStart.record(place / "home")
            with (place / "home/postgres/data/postgresql.conf").open("a") as configuration:
                configuration.write(QUICK)
            record.write_text(json.dumps(asdict(seen), default=str))
    told: dict[str, Any] = json.loads(record.read_text())
    return FirstStart(**told | {"home": Path(told["home"])})


def copy_home(source: Path, target: Path) -> Path:
    """Copy a data folder that is stopped, with the owners of its files; its logs stay behind.

    Each copy has a port of its own for the database: one that is down for a moment must not lose it to another.
    """
    subprocess.run(["cp", "-a", source, target], check=True)
    (target / "postgres.port").write_text(f"{free_ports()}\n")
    for log in (target / "logs").iterdir():
        log.unlink()
    return target


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


@pytest.fixture
def home(folder: Path, first_start: FirstStart) -> Path:
    """Give a data folder of the test's own that was used before."""
    return copy_home(first_start.home, folder / "home")


@pytest.fixture
def start_up(folder: Path) -> Iterator[StartUp]:
    """Start `graticule up`; whatever the test leaves of it is ended."""
    started: list[Up] = []

    def start(home: Path, *arguments: str, **options: Any) -> Up:
        started.append(Up(home, *arguments, program=FORKED, **options))
        return started[-1]

    yield start
    for up in reversed(started):
        up.close()


class Place(StrEnum):
    """Where an installation keeps its files, and what carries its tasks."""

    LAPTOP = "laptop"  # folders, and the database
    AZURE = "azure"  # blobs, and a broker


# Grouped by the place, so that few processes of a run have to start the second installation.
on_both_installations = pytest.mark.parametrize(
    "place", [Place.LAPTOP, pytest.param(Place.AZURE, marks=pytest.mark.thorough)], scope="session"
)


@contextmanager
def running_installation(first_start: FirstStart, **environment: Any) -> Iterator[Up]:
    """Give an installation that runs, whose temporary files are beside its data folder."""
    with open_folder() as made:
        temporary = made / "temporary"
        temporary.mkdir()
        up = Up(
            copy_home(first_start.home, made / "home"),
            GRATICULE_WORKFLOWS=str(WORKFLOWS),
            GRATICULE_WORKER_LEASE_SECONDS="4",  # what a killed worker held is given to another one soon
            GRATICULE_WORKER_RENEW_SECONDS="1",
            TMPDIR=str(temporary),
            **environment,
        )
        try:
            yield up.until_ready()
        finally:
            up.close()


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """Give the collector of the traces of `installation`."""
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="session")
def installation(first_start: FirstStart, collector: Collector) -> Iterator[Up]:
    """Give an installation that runs; tests that share it leave it ready and with nothing to do."""
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=key-of-collector"}
    with running_installation(first_start, GRATICULE_CALLBACK_ALLOW="127.0.0.1/32", **traces) as up:
        yield up


@pytest.fixture(scope="session")
def installation_in_azure(first_start: FirstStart, azurite: Azurite) -> Iterator[Up]:
    """Give one whose files are in Azure and whose tasks are carried by Service Bus."""
    with running_emulator(dict.fromkeys(QUEUES, QueueOptions(lock_seconds=300))) as emulator:
        broker = {
            "GRATICULE_TRANSPORT": "servicebus",
            "GRATICULE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
            "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": "2",  # what a killed worker had received is sent anew soon
        }
        with running_installation(first_start, **broker, **azurite.fresh().environment) as up:
            yield up


@pytest.fixture
def place() -> Place:
    """Name the place; `on_both_installations` runs a test at each."""
    return Place.LAPTOP


@pytest.fixture
def up(place: Place, request: pytest.FixtureRequest) -> Up:
    """Give the installation at this place; none is started that no test asks for."""
    found = request.getfixturevalue("installation" if place is Place.LAPTOP else "installation_in_azure")
    assert isinstance(found, Up)
    return found


@pytest.fixture
def start_process(folder: Path) -> Iterator[StartProcess]:
    """Start `graticule <command>`, on a free port where none is given."""
    started: list[Program] = []

    def start(command: str, program: str = FORKED, port: int | None = None, **environment: str) -> Program:
        chosen = port or free_ports()
        arguments = (program, command, "--port", str(chosen))
        started.append(Program(folder, *arguments, port=chosen, **environment))
        return started[-1]

    yield start
    for program in reversed(started):
        program.close()
