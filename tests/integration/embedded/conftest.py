"""Homes for real clusters, and programs that run one; everything is ended and removed afterwards."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.folders import new_cluster_folder

from graticule.embedded.binaries import Binaries, find_binaries
from graticule.embedded.location import OPEN_PLACE, Location, known_locations
from graticule.embedded.pidfile import is_server_on, read_pid_file

PROGRAM = """
import asyncio, sys
from pathlib import Path
from graticule.embedded.cluster import Cluster

async def main():
    cluster = Cluster.of(Path(sys.argv[1]), settings={"fsync": "off"})
    print("starting", flush=True)
    await cluster.start()
    print(cluster.pid, flush=True)
    await cluster.wait()

asyncio.run(main())
"""

FILL = """
import asyncio, psycopg, sys
from pathlib import Path
from graticule.embedded.cluster import Cluster

async def main():
    async with Cluster.of(Path(sys.argv[1]), settings={"fsync": "off"}) as cluster:
        with psycopg.connect(cluster.url("graticule_admin", "postgres")) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

asyncio.run(main())
"""

Until = Callable[[Callable[[], object]], None]
StartProgram = Callable[[Path], "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    return find_binaries(None)


@pytest.fixture
def until() -> Until:
    """Wait for something that gives no signal, up to a deadline."""

    def wait(condition: Callable[[], object], seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)

    return wait


@pytest.fixture
def folder(until: Until) -> Iterator[Path]:
    """Give a folder for clusters; none of them outlives the test."""
    made = new_cluster_folder()
    yield made
    for home in made.glob("**/postgres.lock"):
        for location in known_locations(home.parent):
            _clear(location, until)
    shutil.rmtree(made)
    with contextlib.suppress(OSError):  # others may keep theirs there
        OPEN_PLACE.rmdir()


def _clear(location: Location, until: Until) -> None:
    found = read_pid_file(location.data)
    if found and is_server_on(found.pid, location.data):
        os.kill(found.pid, signal.SIGQUIT)
        until(lambda: not is_server_on(found.pid, location.data))
    if location.sockets != location.folder:
        shutil.rmtree(location.sockets, ignore_errors=True)
    if location.root != location.home:
        shutil.rmtree(location.root, ignore_errors=True)


@pytest.fixture
def home(folder: Path) -> Path:
    """A home that does not exist yet."""
    return folder / "home"


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A stopped cluster with a row in it, made once: copying it is quicker than making another."""
    made = new_cluster_folder()
    subprocess.run([sys.executable, "-c", FILL, made / "home"], check=True)
    yield made / "home"
    shutil.rmtree(made)


@pytest.fixture
def used_home(home: Path, template: Path) -> Path:
    """A home with a stopped cluster, where the database `postgres` has the table `kept`."""
    subprocess.run(["cp", "-a", template, home], check=True)
    return home


@pytest.fixture
def start_program() -> Iterator[StartProgram]:
    """Start another Python program that runs the cluster of a home."""
    started: list[subprocess.Popen[str]] = []

    def start(home: Path) -> "subprocess.Popen[str]":
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home)], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()
        program.wait()
        if program.stdout:
            program.stdout.close()
