"""The processes that the console needs, one of each: the console is looked at here, not how they are started."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from tests.conftest import TestDatabase
from tests.e2e.installation import FORKED, Program
from tests.e2e.processes import free_ports

from graticule.core.table import DatabaseRole

COMMANDS: Final = {
    "gateway": ("gateway",),
    "orchestrator": ("orchestrator",),
    "worker": ("worker",),
    "serve": ("serve", "--audience", "internal"),
}
ADMIN_KEY: Final = "the-key-of-the-one-who-keeps-the-console"
SERVICE_KEY: Final = "the-key-by-which-the-orchestrator-knows-the-gateway"
SERVE_KEY: Final = "the-key-by-which-the-services-know-the-gateway"


class Site:
    """Processes on a database of the run's cluster, each with what `graticule up` would tell it."""

    def __init__(self, folder: Path, database: TestDatabase, *, serve: bool = False, **environment: str) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.port = free_ports()
        self._folder, self._database, self._given = folder, database, environment
        roles = [role for role in COMMANDS if serve or role != "serve"]
        self._ports = dict(zip(roles, range(self.port, self.port + len(roles)), strict=True))
        self._processes = {role: self._start(role) for role in roles}

    def until_ready(self) -> "Site":
        """Wait until every process says that it is ready."""
        for process in self._processes.values():
            process.until_status("/readyz", 200)
        return self

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database as its administrator."""
        with psycopg.connect(self._database.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def down(self, role: str) -> Iterator[None]:
        """Kill a process, and start another one in its place afterwards."""
        self._processes[role].close()
        try:
            yield
        finally:
            self._processes[role] = self._start(role)

    def close(self) -> None:
        """End everything in order, so that nothing is left behind."""
        for process in self._processes.values():
            process.process.terminate()
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait()
            process.close()

    def _start(self, role: str) -> Program:
        port = self._ports[role]
        command = (FORKED, *COMMANDS[role], "--port", str(port))
        return Program(self._folder, *command, port=port, **self._environment(role), **self._given)

    def _environment(self, role: str) -> dict[str, str]:
        login = DatabaseRole.SERVE_INTERNAL if role == "serve" else DatabaseRole(f"graticule_{role}")
        shared = {"GRATICULE_HOME": str(self.home), "GRATICULE_DATABASE_URL": self._database.url(login)}
        if role == "worker":
            return shared
        addresses = {"GRATICULE_PUBLIC_URL": self._address("gateway")}
        if "serve" in self._ports:
            addresses["GRATICULE_SERVE_URL"] = self._address("serve")
        return shared | addresses | self._secrets(role)

    def _secrets(self, role: str) -> dict[str, str]:
        callers = {"GRATICULE_ADMIN_KEY": ADMIN_KEY, "GRATICULE_SERVICE_KEY": SERVICE_KEY}
        if role == "orchestrator":
            return callers | {"GRATICULE_OWNER_DATABASE_URL": self._database.url()}
        viewing = {"GRATICULE_SERVE_KEY": SERVE_KEY}
        if role == "serve":
            return viewing
        targets = [f"{name}={self._address(name)}" for name in self._ports if name in {"worker", "serve"}]
        reached = {
            "GRATICULE_ORCHESTRATOR_URL": self._address("orchestrator"),
            "GRATICULE_PROXY_TARGETS": ",".join(targets),
        }
        return callers | viewing | reached

    def _address(self, role: str) -> str:
        return f"http://127.0.0.1:{self._ports[role]}"
