"""Who the process of the tests is to Azure and to PostgreSQL: found out anew for a test, and forgotten after it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ
from unittest.mock import patch
from uuid import uuid4

import psycopg
from psycopg import sql
from tests.conftest import ASKED, TestDatabase
from tests.managed_identity import ManagedIdentity, managed_identity

from graticule.cli.connection import process_url
from graticule.config import DatabaseUrl, Settings
from graticule.core.table import DatabaseRole
from graticule.identity import azure_credential


@contextmanager
def identified(variables: Mapping[str, str]) -> Iterator[None]:
    """Find an identity by these variables of the environment, while the block runs."""
    with patch.dict(environ, variables):
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    if azure_credential.cache_info().currsize:
        azure_credential().close()
        azure_credential(for_database=True).close()
    azure_credential.cache_clear()


class Entra:
    """An identity, and the server that knows it: a token that is given becomes the password of its role.

    So each new token ends the one before it, which real ones outlive.
    """

    def __init__(self, endpoint: ManagedIdentity, database: TestDatabase) -> None:
        self.endpoint = endpoint
        self.role = f"identity_{uuid4().hex}"
        self._admin = psycopg.connect(database.url(), autocommit=True)
        self._run("CREATE ROLE {} LOGIN")
        for group in (ASKED, *DatabaseRole):
            self._run("GRANT {1} TO {0}", sql.Identifier(group))
        self.address = f"postgresql://{self.role}@127.0.0.1:{self._admin.info.port}/{database.name}"
        self.is_known = True  # to the server
        self._given = endpoint.answer

    def settings(self, more: str = "?sslmode=disable") -> Settings:
        """Give the settings of a process with this identity; the server of the tests speaks no TLS."""
        return Settings(use_managed_identity=True, database_url=DatabaseUrl(self.address + more))

    @property
    def url(self) -> str:
        """Give the address that such a process connects to."""
        return process_url(self.settings(), DatabaseRole.ORCHESTRATOR)

    def answer(self, resource: str) -> dict[str, str]:
        """Give a token, and let the server take it and no other."""
        given = self._given(resource)
        if self.is_known:
            self._run("ALTER ROLE {} PASSWORD {}", sql.Literal(given["access_token"]))
        return given

    def cut(self) -> None:
        """End all sessions of the role."""
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [self.role])

    def drop(self) -> None:
        self.cut()
        self._run("DROP ROLE {}")
        self._admin.close()

    def _run(self, statement: str, *more: sql.Composable) -> None:
        self._admin.execute(sql.SQL(statement).format(sql.Identifier(self.role), *more))


@contextmanager
def known_identity(database: TestDatabase) -> Iterator[Entra]:
    """Give an identity that a database knows, for as long as the block runs."""
    with managed_identity() as endpoint, identified(endpoint.environment):
        entra = Entra(endpoint, database)
        try:
            with patch.object(endpoint, "answer", entra.answer):
                yield entra
        finally:
            entra.drop()
