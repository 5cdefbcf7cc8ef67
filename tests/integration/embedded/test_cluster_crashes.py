"""What is left when something is killed, and how the next start deals with it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.binaries import Binaries
from graticule.embedded.cluster import Cluster, running_cluster_url
from graticule.embedded.credentials import ADMIN
from graticule.embedded.location import Location
from graticule.embedded.pidfile import is_server_on, processes_of, read_pid_file
from graticule.embedded.ports import free_port
from graticule.embedded.server_user import ServerUser

QUICK = {"fsync": "off"}
Until = Callable[[Callable[[], object]], None]
StartProgram = Callable[[Path], "subprocess.Popen[str]"]


async def ask(url: str, statement: str) -> Any:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        cursor = await connection.execute(statement.encode())
        row = await cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def line_of(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


@pytest.fixture
def location(used_home: Path) -> Location:
    return Location(used_home, used_home)


async def answer(url: str, statement: str) -> Any:
    """Ask until there is an answer."""
    async with asyncio.timeout(15):
        while True:
            if (found := await ask(url, statement)) is not None:
                return found
            await asyncio.sleep(0.01)


async def assert_kept(home: Path, binaries: Binaries) -> list[str]:
    """Start the cluster of a home and find the row; what was announced."""
    said: list[str] = []
    async with Cluster(home, binaries, settings=QUICK, announce=said.append) as cluster:
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT answer FROM kept") == 42
    return [sentence for sentence in said if "Port" not in sentence]  # others may have the usual port


async def test_kill_of_the_program_stops_the_server(
    used_home: Path, binaries: Binaries, start_program: StartProgram, until: Until
) -> None:
    program = start_program(used_home)
    assert line_of(program) == "starting"
    server = int(line_of(program))
    url = running_cluster_url(used_home, ADMIN, "postgres")
    assert url is not None
    await ask(url, "ALTER TABLE kept ADD COLUMN more integer")
    program.kill()
    if sys.platform == "linux":
        until(lambda: not is_server_on(server, used_home / "postgres" / "data"))
        assert running_cluster_url(used_home, ADMIN) is None
    await assert_kept(used_home, binaries)


async def test_start_right_after_a_kill(used_home: Path, binaries: Binaries, start_program: StartProgram) -> None:
    program = start_program(used_home)
    line_of(program), line_of(program)
    program.kill()
    program.wait()
    await assert_kept(used_home, binaries)  # whether the old server is still stopping or gone


async def test_second_program_is_refused(used_home: Path, binaries: Binaries, start_program: StartProgram) -> None:
    program = start_program(used_home)
    line_of(program), line_of(program)
    with pytest.raises(ConfigurationError, match=rf"in use by another graticule \(pid {program.pid}\)"):
        await Cluster(used_home, binaries, settings=QUICK).start()


async def test_a_signal_from_the_terminal_does_not_reach_the_server(
    used_home: Path, start_program: StartProgram
) -> None:
    program = start_program(used_home)
    line_of(program)
    server = int(line_of(program))
    assert os.getsid(server) == server != os.getsid(program.pid)


def orphan(location: Location, binaries: Binaries) -> int:
    """Start a server that is nobody's child."""
    log, port = location.folder / "orphan.log", f"-p {free_port(57000)}"
    command: list[str | Path] = [binaries.program("pg_ctl"), "start", "-w", "-o", port, "-D", location.data, "-l", log]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **ServerUser.choose().process_options())
    found = read_pid_file(location.data)
    assert found is not None
    return found.pid


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


async def test_an_orphaned_server_is_stopped(location: Location, binaries: Binaries) -> None:
    pid = orphan(location, binaries)
    assert is_server_on(pid, location.data)
    said = await assert_kept(location.home, binaries)
    assert said == [f"Stopping a PostgreSQL server (pid {pid}) that a killed program left behind."]
    assert not is_server_on(pid, location.data)


async def test_a_stale_pid_file_is_recovered_from(location: Location, binaries: Binaries, ended: int) -> None:
    write_pid_file(location, ended)
    assert await assert_kept(location.home, binaries) == [
        "PostgreSQL was not shut down in order; it recovers from its journal."
    ]


@pytest.mark.parametrize("content", ["", "nonsense\n"])
async def test_a_damaged_pid_file_is_removed(location: Location, binaries: Binaries, content: str) -> None:
    (location.data / "postmaster.pid").write_text(content)
    await assert_kept(location.home, binaries)


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A program of the server's own user: PostgreSQL itself cannot tell it from a server."""
    process = subprocess.Popen(["sleep", "600"], **ServerUser.choose().process_options())
    yield process
    process.kill()
    process.wait()


async def test_a_pid_that_another_program_has_by_now(
    location: Location, binaries: Binaries, stranger: "subprocess.Popen[bytes]"
) -> None:
    write_pid_file(location, stranger.pid)
    said = await assert_kept(location.home, binaries)
    assert said == ["Removing a PostgreSQL pid file whose number belongs to another program by now."]
    assert stranger.poll() is None


def write_pid_file(location: Location, pid: int) -> None:
    """Leave the files of a server that was killed: its pid file, its socket, and the socket's lock file."""
    port = (location.home / "postgres.port").read_text().strip()
    content = f"{pid}\n{location.data}\n1760000000\n{port}\n{location.sockets}\n127.0.0.1\n 1 1\nready\n"
    for path in (location.data / "postmaster.pid", location.sockets / f".s.PGSQL.{port}.lock"):
        path.write_text(content)
        ServerUser.choose().own(path)


async def test_kill_of_the_server_and_start_again(used_home: Path, binaries: Binaries) -> None:
    cluster = Cluster(used_home, binaries, settings=QUICK)
    await cluster.start()
    try:
        await ask(cluster.url(ADMIN, "postgres"), "UPDATE kept SET answer = 43")
        idle = await psycopg.AsyncConnection.connect(cluster.url(ADMIN, "postgres"))
        assert cluster.pid is not None
        os.kill(cluster.pid, signal.SIGKILL)
        assert await cluster.wait() == -signal.SIGKILL
        assert not cluster.running
        await cluster.start()
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT answer FROM kept") == 43
        await idle.close()
    finally:
        await cluster.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which processes are left")
async def test_a_busy_process_that_outlives_its_server_is_ended(used_home: Path, binaries: Binaries) -> None:
    cluster = Cluster(used_home, binaries, settings=QUICK)
    await cluster.start()
    url = cluster.url(ADMIN, "postgres")
    busy = asyncio.create_task(ask(url, "DO 'BEGIN LOOP END LOOP; END'"))
    active = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO%' AND state = 'active'"
    backend = await answer(url, active)
    try:
        assert cluster.pid is not None
        os.kill(cluster.pid, signal.SIGKILL)
        await cluster.wait()
        await cluster.start()
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT 1") == 1
        assert backend not in processes_of(Location(used_home, used_home).name, ServerUser.choose().uid)
    finally:
        await cluster.stop()
    with pytest.raises(psycopg.OperationalError):
        await busy
    assert processes_of(Location(used_home, used_home).name, ServerUser.choose().uid) == []


async def test_kill_in_the_middle_of_making_a_cluster(
    home: Path, binaries: Binaries, start_program: StartProgram, until: Until
) -> None:
    program = start_program(home)
    until(lambda: list(home.glob("postgres/data.new-*/base")))
    program.kill()
    program.wait()
    assert not (home / "postgres" / "data").exists()
    said: list[str] = []
    async with Cluster(home, binaries, settings=QUICK, announce=said.append) as cluster:
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT 1") == 1
    assert said[0] == "Removed a half-made PostgreSQL cluster of an interrupted start."
    assert not list((home / "postgres").glob(".password*"))


async def test_half_made_folder_beside_a_whole_cluster(location: Location, binaries: Binaries) -> None:
    half = location.folder / "data.new-x" / "base"
    half.mkdir(parents=True)
    (location.folder / ".password-x").write_text("left behind")
    await assert_kept(location.home, binaries)
    assert sorted(path.name for path in location.folder.iterdir()) == ["data"]


async def test_a_cancelled_start_leaves_nothing_running(home: Path, binaries: Binaries, until: Until) -> None:
    starting = asyncio.create_task(Cluster(home, binaries, settings=QUICK).start())
    await asyncio.to_thread(until, lambda: list(home.glob("postgres/data.new-*/base")))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert list((home / "postgres").iterdir()) == []
    async with Cluster(home, binaries, settings=QUICK):
        pass
