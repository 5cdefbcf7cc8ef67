"""What the environment tables name in Azure, at an address of this machine: a database, a namespace and a Web App.

All three are reached with TLS and know the callers by the tokens of their managed identities, as in Azure.
"""

import asyncio
import os
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import psycopg
from psycopg import sql
from tests.certificates import made
from tests.conftest import ASKED, HOME_VARIABLE, TEMPLATE, TestDatabase
from tests.managed_identity import ManagedIdentity, managed_identity
from tests.servicebus_emulator import Emulator, QueueOptions
from tests.servicebus_emulator.tokens import check_claims

from graticule.core.table import DatabaseRole
from graticule.identity import DATABASE_SCOPE

# Clients of both take no other ports with TLS, or none that the tables name; so each process that tests has an address.
BROKER_PORT, DATABASE_PORT = 5671, 5432
ADDRESS = f"127.{os.getpid() >> 14 & 127 | 64}.{os.getpid() >> 7 & 127}.{os.getpid() & 127 | 128}"
GSS_REQUEST, TLS_REQUEST = 80877104, 80877103  # that a client of PostgreSQL begins with
QUEUES = ("orchestrator-jobs", "functionapp-tasks", "container-tasks")


@dataclass(frozen=True)
class AzureSite:
    """Where everything is, and who was asked for tokens."""

    database: TestDatabase
    emulator: Emulator
    identity: ManagedIdentity
    orchestrator: tuple[str, int]  # at its front, which has TLS
    authorities: Path


@asynccontextmanager
async def azure_site(folder: Path, *, database: str, login: str, orchestrator_port: int) -> AsyncIterator[AzureSite]:
    """Run the parts of Azure, with a database of this name and an orchestrator that listens on this port."""
    certificates = made(folder, ADDRESS)
    context = certificates.server_context()
    async with AsyncExitStack() as stack:
        identity = stack.enter_context(managed_identity())
        created = stack.enter_context(named_database(database))
        port = stack.enter_context(known_login(login, identity, created))
        queues = dict.fromkeys(QUEUES, QueueOptions(lock_seconds=300))
        emulator = await stack.enter_async_context(Emulator(queues, host=ADDRESS, check_jwt=check_claims))
        await emulator._listen(BROKER_PORT, context)
        await stack.enter_async_context(tls_front(context, DATABASE_PORT, port, is_postgres=True))
        front = await stack.enter_async_context(tls_front(context, 0, orchestrator_port))
        yield AzureSite(created, emulator, identity, (ADDRESS, front), certificates.ca)


@contextmanager
def named_database(name: str) -> Iterator[TestDatabase]:
    """Make a database with the whole schema under a name of its own, and drop it afterwards."""
    home = Path(os.environ[HOME_VARIABLE])
    with psycopg.connect(TestDatabase("postgres", home).url(), autocommit=True) as admin:
        identifiers = sql.Identifier(name), sql.Identifier(TEMPLATE)
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*identifiers))
        try:
            yield TestDatabase(name, home)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def known_login(name: str, identity: ManagedIdentity, database: TestDatabase) -> Iterator[int]:
    """Make the login of an orchestrator, whose password is the last token for databases; give the server's port."""
    login, answer = sql.Identifier(name), identity.answer
    groups = sql.SQL(", ").join(map(sql.Identifier, (DatabaseRole.ORCHESTRATOR, ASKED)))
    with psycopg.connect(database.url(), autocommit=True) as admin:

        def answer_and_tell(resource: str) -> dict[str, str]:
            given = answer(resource)
            if resource == DATABASE_SCOPE.removesuffix("/.default"):
                admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(login, sql.Literal(given["access_token"])))
            return given

        admin.execute(sql.SQL("CREATE ROLE {} LOGIN IN ROLE {}").format(login, groups))
        try:
            with patch.object(identity, "answer", answer_and_tell):
                yield admin.info.port
        finally:
            admin.execute(sql.SQL("DROP ROLE {}").format(login))


@asynccontextmanager
async def tls_front(
    context: ssl.SSLContext, port: int, target: int, *, is_postgres: bool = False
) -> AsyncIterator[int]:
    """Take connections with TLS, for which a client of PostgreSQL asks first, and pass them on; give the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if is_postgres:
                await _begin_tls(reader, writer, context)
            await _pass_on(reader, writer, target)
        writer.close()

    server = await asyncio.start_server(serve, ADDRESS, port, ssl=None if is_postgres else context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def _begin_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
    while (request := struct.unpack("!II", await reader.readexactly(8))[1]) == GSS_REQUEST:
        writer.write(b"N")
    if request != TLS_REQUEST:
        raise ConnectionAbortedError("The client asks for no TLS.")
    writer.write(b"S")
    await writer.start_tls(context)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
    """Pass on both ways until one side ends."""
    from_server, to_server = await asyncio.open_connection("127.0.0.1", target)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        for each in (writer, to_server):
            each.close()

    await asyncio.gather(pump(reader, to_server), pump(from_server, writer))
