"""A whole database as a file, and back: `pg_dump` and what a plain `pg_restore` leaves to do.

Three things are not in a dump, or do not come back by themselves: roles, which are the server's; privileges on the
database itself; and pgstac, whose computed columns call functions by names that only its own search path finds, while a
restore has none.
"""

import asyncio
import contextlib
import re
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from graticule.core.errors import Conflict, Unavailable
from graticule.core.table import DatabaseRole
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import connected, libpq_environment
from graticule.repositories.queries import load_queries
from graticule.schema.deploy import database_schema
from graticule.schema.passwords import ensure_scaler

QUERIES = load_queries("archive.sql", package=__package__)
ROLES: Final = (*(role.value for role in DatabaseRole), "pgstac_admin", "pgstac_read", "pgstac_ingest")
NO_PATH: Final = b"SELECT pg_catalog.set_config('search_path', '', false);\n"
PGSTACS_PATH: Final = b"SELECT pg_catalog.set_config('search_path', 'pgstac, public', false);\n"
NO_TIMEOUT: Final = b"SET transaction_timeout = 0;\n"
# pg_restore of PostgreSQL 17 and newer says it to every server, and an older one knows no such setting.
NO_TIMEOUT_IF_KNOWN: Final = (
    b"SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout';\n"
)
# What only a superuser may say of the server's own functions and extensions, of which a migration says ours anew;
# and what pgstac leaves to whoever installs it.
LEFT_OUT: Final = re.compile(
    rb" (?:COMMENT - EXTENSION|ACL pg_catalog FUNCTION|ACL public FUNCTION st_|TABLE DATA public spatial_ref_sys"
    rb"|FUNCTION public pgstac_admin_owns)"
)
LONGEST_HEAD: Final = 200  # lines, before which the search path is set
CHUNK_BYTES: Final = 1024 * 1024
TOLD_CHARACTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of PostgreSQL that are needed beside a server."""

    pg_dump: Path
    pg_restore: Path
    psql: Path


@dataclass(frozen=True, slots=True)
class Settled:
    """What a database that came back has to go on with."""

    jobs: int
    tasks: int  # that a broker was given, and is given anew


async def dump(url: str, programs: Programs, file: Path) -> None:
    """Write all of a database into a file, as it was at one moment; others go on meanwhile."""
    partial = file.with_name(f"{file.name}.partial")
    process = await asyncio.create_subprocess_exec(
        *(programs.pg_dump, "--format=custom", f"--file={partial}"),
        env=await libpq_environment(url),
        stdin=DEVNULL,
        stderr=PIPE,
        umask=0o077,
    )
    try:
        async with _ended(process):
            _, complaint = await process.communicate()
        if process.returncode:
            raise Unavailable("pg_dump could not write the backup.", hint=_told(complaint))
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)


async def restore(url: str, programs: Programs, file: Path) -> Settled:
    """Make an empty database what the file says, and ready for processes; what cannot be loaded leaves it empty."""
    with domain_errors("look at the database"):
        async with await connected(url, autocommit=True, connect_timeout=10) as connection:
            await _require_empty(connection)
            await _ensure_roles(connection, url)
    await _load(url, programs, file)
    return await settle(url)


async def settle_restored(url: str) -> Settled:
    """Settle a database that was restored by other means, unless it is one that is at work."""
    with domain_errors("look at the database"):
        async with await connected(url, autocommit=True, connect_timeout=10) as connection:
            at_work = [owner for (owner,) in await (await connection.execute(QUERIES["at_work"])).fetchall()]
    if at_work:
        raise Conflict(
            f"Orchestrators are at work in this database: {', '.join(at_work)}. Nothing was changed.",
            hint="Settle a database that was restored before its processes start; stop them if it is the right one.",
        )
    return await settle(url)


async def settle(url: str) -> Settled:
    """Bring a restored database into service: its schema, its privileges, and the times of what was under way."""
    async with database_schema(url) as schema:
        report = await schema.migrate()
    if not report.current:
        raise Conflict("The schema cannot be brought up to date.", hint="`graticule schema status` says what differs.")
    with domain_errors("settle the database"):
        async with await connected(url, autocommit=True, connect_timeout=10) as connection:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL ROLE {DatabaseRole.OWNER}".encode())
                row = await (await connection.execute(QUERIES["settle"])).fetchone()
            await connection.execute("ANALYZE")  # a dump has no statistics
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return Settled(*row)


async def _require_empty(connection: AsyncConnection[Any]) -> None:
    occupied = [name for (name,) in await (await connection.execute(QUERIES["occupied"])).fetchall()]
    if occupied:
        raise Conflict(
            f"The database {connection.info.dbname} is not empty: it has the schemas {', '.join(occupied)}.",
            hint="Restore into a new database, or into a data folder of its own (GRATICULE_HOME); "
            "if it was restored already, `graticule restore` without a file makes it ready.",
        )


async def _ensure_roles(connection: AsyncConnection[Any], url: str) -> None:
    """Have a database made aside for the roles that its schema needs: they are the server's, and stay."""
    await ensure_scaler(connection)  # if it was ever made, something is granted to it, and a grant to nobody fails
    row = await (await connection.execute(QUERIES["has_roles"], {"roles": list(ROLES)})).fetchone()
    if row and row[0]:
        return
    aside = f"graticule_{uuid4().hex}"
    await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(aside)))
    try:
        async with database_schema(make_conninfo(url, dbname=aside)) as schema:
            await schema.deploy()
    finally:
        await connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(aside)))


async def _load(url: str, programs: Programs, file: Path) -> None:
    """Run the dump as a script in one transaction, which is committed when all of it was read."""
    with tempfile.NamedTemporaryFile() as contents:
        contents.write(await _contents(programs, file))
        contents.flush()
        await _run(url, programs, file, contents.name)


async def _contents(programs: Programs, file: Path) -> bytes:
    """List what is to be restored: all but what belongs to the former server, or to the login that deployed there."""
    process = await asyncio.create_subprocess_exec(
        *(programs.pg_restore, "--list", file), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    async with _ended(process):
        listed, complaint = await process.communicate()
    if process.returncode:
        raise Unavailable("The backup cannot be read; nothing was changed.", hint=_told(complaint))
    return b"".join(line for line in listed.splitlines(keepends=True) if not _is_left_out(line))


def _is_left_out(line: bytes) -> bool:
    of_another = b" DEFAULT ACL " in line and line.split()[-1].decode() not in ROLES
    return of_another or LEFT_OUT.search(line) is not None


async def _run(url: str, programs: Programs, file: Path, contents: str) -> None:
    reading = await asyncio.create_subprocess_exec(
        *(programs.pg_restore, f"--use-list={contents}", "--file=-", file), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    async with _ended(reading):
        writing = await asyncio.create_subprocess_exec(
            *(programs.psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"),
            env=await libpq_environment(url, PGOPTIONS="-c client_min_messages=warning"),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
        )
        async with _ended(writing):
            read_badly, written_badly, _ = await asyncio.gather(
                _all_of(reading.stderr), _all_of(writing.stderr), _pass_on(reading, writing)
            )
            await asyncio.gather(reading.wait(), writing.wait())
    if writing.returncode or reading.returncode:
        complaint = written_badly if writing.returncode else read_badly
        raise Unavailable("The backup could not be restored; nothing was changed.", hint=_told(complaint))


async def _pass_on(reading: Process, writing: Process) -> None:
    """Give psql what pg_restore writes, with the search path that pgstac needs; without an end, nothing counts."""
    source, sink = reading.stdout, writing.stdin
    assert source is not None  # noqa: S101 - both are pipes
    assert sink is not None  # noqa: S101
    try:
        sink.write(b"BEGIN;\n" + await _head(source))
        while chunk := await source.read(CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
        if await reading.wait() == 0:
            sink.write(b"COMMIT;\n")
        await sink.drain()
    except (BrokenPipeError, ConnectionResetError):  # psql has stopped, and tells why: nobody reads on
        _kill(reading)
        await source.read()  # what it had written already: its pipe stays open until that was read
    finally:
        sink.close()


async def _head(source: asyncio.StreamReader) -> bytes:
    lines: list[bytes] = []
    while len(lines) < LONGEST_HEAD and (line := await source.readline()):
        if line == NO_PATH:
            return b"".join([*lines, PGSTACS_PATH])
        lines.append(NO_TIMEOUT_IF_KNOWN if line == NO_TIMEOUT else line)
    return b"".join(lines)


async def _all_of(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


@contextlib.asynccontextmanager
async def _ended(process: Process) -> AsyncIterator[None]:
    """See that a process does not outlive whoever waits for it."""
    try:
        yield
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
        process.kill()


def _told(complaint: bytes) -> str:
    """Give what a program has complained of, the beginning of it."""
    return complaint.decode(errors="replace").strip()[:TOLD_CHARACTERS]
