"""The life of a cluster: made, started again, beside others, and what it keeps to itself."""

import asyncio
import contextlib
import dataclasses
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graticule.config import DatabaseUrl, Settings
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.embedded.binaries import Binaries
from graticule.embedded.cluster import Cluster, running_cluster_url
from graticule.embedded.credentials import ADMIN, ROLES, Credentials
from graticule.embedded.location import OPEN_PLACE, Location, known_locations
from graticule.embedded.machine import examine
from graticule.embedded.ports import free_port

QUICK = {"fsync": "off"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user run the server")


async def ask(url: str, statement: str) -> Any:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        cursor = await connection.execute(statement.encode())
        row = await cursor.fetchone() if cursor.description else None
    return row[0] if row else None


async def eventually(url: str, statement: str) -> Any:
    """Ask until there is an answer."""
    async with asyncio.timeout(15):
        while True:
            if answer := await ask(url, statement):
                return answer
            await asyncio.sleep(0.01)


def owner_of(path: Path | str) -> int:
    return Path(path).stat().st_uid


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(("has_lz4", "compression"), [(True, "lz4"), (False, "pglz")])
async def test_the_log_is_compressed_as_the_programs_can(
    used_home: Path, binaries: Binaries, has_lz4: bool, compression: str
) -> None:
    if has_lz4 and not binaries.has_lz4:
        pytest.skip("this PostgreSQL was built without LZ4")
    async with Cluster(used_home, dataclasses.replace(binaries, has_lz4=has_lz4), settings=QUICK) as cluster:
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT current_setting('wal_compression')") == compression


async def test_first_start_and_second_start(home: Path, binaries: Binaries) -> None:
    said: list[str] = []
    cluster = Cluster(home, binaries, settings=QUICK, announce=said.append)
    async with cluster:
        await cluster.ensure_database("graticule")
        await cluster.ensure_database("graticule")
        await ask(cluster.url(ADMIN), "CREATE TABLE kept AS SELECT 42 AS answer")
    assert [sentence for sentence in said if "Port" not in sentence] == [
        f"Creating a PostgreSQL {binaries.version} cluster in {home}/postgres.",
        "Created the database graticule.",
    ]
    said.clear()  # other programs of this machine may have the usual port
    async with Cluster.of(home, settings=QUICK, announce=said.append) as again:
        assert await ask(again.url(ADMIN), "SELECT answer FROM kept") == 42
    assert not [sentence for sentence in said if "Port" not in sentence]


async def test_defaults_are_durable_and_private(home: Path, binaries: Binaries) -> None:
    async with Cluster(home, binaries) as cluster:
        url = cluster.url(ADMIN, "postgres")
        shown = {
            name: await ask(url, f"SHOW {name}")
            for name in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums", "listen_addresses")
        }
        assert shown.pop("listen_addresses") == "127.0.0.1"
        assert set(shown.values()) == {"on"}
        assert await ask(url, "SHOW server_encoding") == "UTF8"
        assert await ask(url, "SHOW port") == str(cluster.port)
        assert await ask(url, "SHOW idle_in_transaction_session_timeout") == "0"
        assert owner_of(f"/proc/{cluster.pid}") != 0
        methods = await ask(url, "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules")
        assert methods == "scram-sha-256"


async def test_the_network_asks_for_the_password_too(used_home: Path, binaries: Binaries) -> None:
    async with Cluster(used_home, binaries, settings=QUICK) as cluster:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await ask(f"postgresql://{ADMIN}:wrong@127.0.0.1:{cluster.port}/postgres", "SELECT 1")


async def test_life_of_one_object(used_home: Path, binaries: Binaries) -> None:
    cluster = Cluster(used_home, binaries, settings=QUICK)
    await cluster.stop()
    with pytest.raises(Unavailable, match="not running"):
        cluster.url(ADMIN)
    await cluster.start()
    pid = cluster.pid
    await cluster.start()
    assert cluster.pid == pid
    waiting = asyncio.create_task(cluster.wait())
    await cluster.stop()
    await cluster.stop()
    assert await waiting == 0
    assert cluster.pid is None
    await cluster.start()
    assert await ask(cluster.url(ADMIN, "postgres"), "SELECT 1") == 1
    await cluster.stop()


async def test_a_server_that_is_gone_is_unavailable(used_home: Path, binaries: Binaries) -> None:
    async with Cluster(used_home, binaries, settings=QUICK) as cluster:
        pass
    with pytest.raises(Unavailable, match="database other could not"):
        await cluster.ensure_database("other")


async def test_clients_do_not_delay_the_stop(used_home: Path, binaries: Binaries) -> None:
    cluster = Cluster(used_home, binaries, settings=QUICK)
    await cluster.start()
    busy = asyncio.create_task(ask(cluster.url(ADMIN, "postgres"), "SELECT pg_sleep(600)"))
    probe = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND state = 'active'"
    await eventually(cluster.url(ADMIN, "postgres"), probe)
    await asyncio.wait_for(cluster.stop(), 10)
    with pytest.raises(psycopg.OperationalError):
        await busy


@pytest.mark.parametrize("name", ["it's a %+ home, ünd", 'two, "words"'])
async def test_names_are_quoted(folder: Path, binaries: Binaries, name: str) -> None:
    home = folder / name
    async with Cluster(home, binaries, settings=QUICK) as cluster:
        await cluster.ensure_database('odd "name" % ?')
        url = cluster.url(ADMIN, 'odd "name" % ?')
        assert await ask(url, "SELECT current_database()") == 'odd "name" % ?'
        assert running_cluster_url(home, ADMIN, 'odd "name" % ?') == url


async def test_programs_beside_find_the_running_cluster(home: Path, binaries: Binaries) -> None:
    assert running_cluster_url(home, ADMIN) is None
    async with Cluster(home, binaries, settings=QUICK) as cluster:
        assert running_cluster_url(home, ADMIN, "postgres") == cluster.url(ADMIN, "postgres")
        assert running_cluster_url(home, "graticule_worker") == cluster.url("graticule_worker")
    assert running_cluster_url(home, ADMIN) is None


async def test_the_doctor_asks_an_external_server(used_home: Path, binaries: Binaries) -> None:
    async with Cluster(used_home, binaries, settings=QUICK) as cluster:
        settings = Settings(used_home=used_home, database_url=DatabaseUrl(cluster.url(ADMIN, "postgres")))
        findings = {finding.name: finding for finding in examine(settings)}
    assert findings["database"].ok
    assert findings["database version"].ok
    assert findings["database extensions"].ok == binaries.has_postgis
    assert Credentials.load(used_home).password(ADMIN) not in repr(findings)


async def test_a_second_object_on_the_same_home_is_refused(used_home: Path, binaries: Binaries) -> None:
    async with Cluster(used_home, binaries, settings=QUICK) as cluster:
        second = Cluster(used_home, binaries, settings=QUICK)
        with pytest.raises(ConfigurationError, match=f"in use by another graticule .pid {os.getpid()}"):
            await second.start()
        await second.stop()
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT 1") == 1


async def test_two_homes_run_side_by_side(folder: Path, binaries: Binaries) -> None:
    first, second = (Cluster(folder / name, binaries, settings=QUICK) for name in ("one", "two"))
    await asyncio.gather(first.start(), second.start())
    try:
        assert first.port != second.port
    finally:
        await asyncio.gather(first.stop(), second.stop())


async def test_a_taken_port_is_replaced_and_remembered(used_home: Path, binaries: Binaries) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        (used_home / "postgres.port").write_text(f"{taken}\n")
        async with Cluster(used_home, binaries, settings=QUICK, announce=said.append) as cluster:
            port = cluster.port
    assert f"Port {taken} is taken by another program; PostgreSQL uses {port} instead." in said
    async with Cluster(used_home, binaries, settings=QUICK) as cluster:
        assert cluster.port == port


async def test_a_port_lost_to_a_faster_program_is_replaced(
    used_home: Path, binaries: Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        choices = iter([taken, free_port(taken)])
        monkeypatch.setattr("graticule.embedded.cluster.choose_port", lambda *_: next(choices))
        async with Cluster(used_home, binaries, settings=QUICK) as cluster:
            assert cluster.port != taken


async def test_a_port_that_was_asked_for_is_used_or_refused(used_home: Path, binaries: Binaries) -> None:
    port = free_port(56000)
    async with Cluster(used_home, binaries, port=port, settings=QUICK) as cluster:
        assert cluster.port == port
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ConfigurationError, match=f"Port {port}"):
        await Cluster(used_home, binaries, port=port, settings=QUICK).start()
    async with Cluster(used_home, binaries, port=port, settings=QUICK):
        pass


@contextlib.contextmanager
def watched_commands() -> Iterator[set[bytes]]:
    """Collect the command lines of all processes, as everyone on the machine can."""
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def environment_of(cluster: Cluster) -> bytes:
    return Path(f"/proc/{cluster.pid}/environ").read_bytes()


async def test_secrets_stay_secret(home: Path, binaries: Binaries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_ADMIN_KEY", "kept-to-ourselves")
    said: list[str] = []
    with watched_commands() as commands:
        async with Cluster(home, binaries, settings=QUICK, announce=said.append) as cluster:
            environment = environment_of(cluster)
    credentials = Credentials.load(home)
    public = "".join(said) + (home / "logs" / "postgres.log").read_text()
    public += b"".join(commands).decode(errors="replace")
    assert "initdb" in public
    assert not any(credentials.password(role) in public for role in ROLES)
    assert b"kept-to-ourselves" not in environment
    assert mode_of(home / "credentials.json") == 0o600
    assert mode_of(home / "postgres") == 0o700
    assert mode_of(home / "logs" / "postgres.log") == 0o600
    assert not list((home / "postgres").glob(".password*"))


async def test_lost_credentials_are_told(used_home: Path, binaries: Binaries) -> None:
    (used_home / "credentials.json").unlink()
    with pytest.raises(ConfigurationError, match=rf"missing: {used_home}/credentials\.json"):
        await Cluster(used_home, binaries, settings=QUICK).start()
    assert not (used_home / "credentials.json").exists()


async def test_foreign_credentials_are_told(used_home: Path, binaries: Binaries) -> None:
    (used_home / "credentials.json").write_text(json.dumps(dict.fromkeys(ROLES, "foreign")))
    cluster = Cluster(used_home, binaries, settings=QUICK)
    with pytest.raises(ConfigurationError, match="refuses the passwords"):
        await cluster.start()
    assert not cluster.running


async def test_another_version_is_refused(used_home: Path, binaries: Binaries) -> None:
    newer = dataclasses.replace(binaries, version=binaries.version + 1)
    with pytest.raises(ConfigurationError, match=f"made by PostgreSQL {binaries.version}, and the programs in"):
        await Cluster(used_home, newer).start()
    (used_home / "postgres" / "data" / "PG_VERSION").write_text("99\n")
    with pytest.raises(ConfigurationError, match=f"The cluster in {used_home}/postgres/data was made by PostgreSQL 99"):
        Cluster.of(used_home)


async def test_a_bad_setting_shows_the_log(used_home: Path, binaries: Binaries) -> None:
    cluster = Cluster(used_home, binaries, settings={**QUICK, "work_mem": "much"})
    with pytest.raises(Unavailable, match="could not start") as caught:
        await cluster.start()
    assert "work_mem" in str(caught.value.hint)
    async with Cluster(used_home, binaries, settings=QUICK):
        pass


async def test_a_folder_that_is_no_cluster_is_left_alone(used_home: Path, binaries: Binaries) -> None:
    data = used_home / "postgres" / "data"
    (data / "PG_VERSION").unlink()
    with pytest.raises(ConfigurationError, match="is not a PostgreSQL cluster"):
        await Cluster(used_home, binaries, settings=QUICK).start()
    assert (data / "base").exists()


async def test_a_long_home_has_its_socket_elsewhere(folder: Path, binaries: Binaries) -> None:
    home = folder / ("long" * 30)
    sockets = Location(home, home).sockets
    async with Cluster(home, binaries, settings=QUICK) as cluster:
        assert str(sockets).startswith("/tmp/graticule-")
        assert mode_of(sockets) == 0o700
        assert owner_of(sockets) == owner_of(f"/proc/{cluster.pid}")
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT 1") == 1
        assert running_cluster_url(home, ADMIN, "postgres") == cluster.url(ADMIN, "postgres")
    assert not sockets.exists()


@as_root
async def test_a_socket_folder_of_someone_else_is_refused(folder: Path, binaries: Binaries) -> None:
    home = folder / ("long" * 30)
    sockets = Location(home, home).sockets
    sockets.mkdir(mode=0o700)
    os.chown(sockets, 12345, 12345)
    with pytest.raises(ConfigurationError, match="someone else's"):
        await Cluster(home, binaries, settings=QUICK).start()
    sockets.rmdir()


@as_root
async def test_below_a_closed_folder_the_cluster_is_kept_elsewhere(folder: Path, binaries: Binaries) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    home, said = closed / "home", list[str]()
    async with Cluster(home, binaries, settings=QUICK, announce=said.append) as cluster:
        await ask(cluster.url(ADMIN, "postgres"), "CREATE TABLE kept AS SELECT 42 AS answer")
        assert running_cluster_url(home, ADMIN, "postgres") == cluster.url(ADMIN, "postgres")
    assert not (home / "postgres").exists()
    aside = known_locations(home)[1].root
    assert aside.parent == OPEN_PLACE
    assert any(str(aside) in sentence for sentence in said)
    assert mode_of(aside) == 0o711
    closed.chmod(0o711)  # also when the folder is opened later, the data is where it was
    async with Cluster.of(home, settings=QUICK) as cluster:
        assert await ask(cluster.url(ADMIN, "postgres"), "SELECT answer FROM kept") == 42


@as_root
async def test_a_cluster_that_became_unreachable_is_not_replaced(folder: Path, binaries: Binaries) -> None:
    home = folder / "parent" / "home"
    (folder / "parent").mkdir(mode=0o711)
    async with Cluster(home, binaries, settings=QUICK):
        pass
    (folder / "parent").chmod(0o700)
    with pytest.raises(ConfigurationError, match="cannot be reached by the user"):
        await Cluster(home, binaries, settings=QUICK).start()
