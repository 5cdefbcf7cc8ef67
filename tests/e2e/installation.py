"""`graticule up` and single processes, run as a user runs them, with what they print kept in files."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
from tests.e2e.eventually import eventually
from tests.e2e.processes import (
    RunningProcess,
    all_processes,
    clean_environment,
    end_all,
    find_process,
    free_ports,
    graticule_command,
    processes_of,
)
from tests.forks import ForkedCommand

from graticule.embedded.cluster import running_cluster_url
from graticule.embedded.credentials import ADMIN

READY_LINE = "Ctrl-C stops everything."
# Stands for the command `graticule` in a process that need not import it first: where the start is not the point.
FORKED = "graticule, imported already"
# Tests that run in the background ignore SIGINT, and so would each program that they start.
HEARING_INTERRUPTS = ("env", "--default-signal=INT")


class Program:
    """A program of ours in a process of its own, and what it has printed so far."""

    def __init__(self, folder: Path, *command: str, port: int = 0, **environment: str) -> None:
        stem = f"{len(list(folder.glob('*.out')))}"
        self._out, self._err = folder / f"{stem}.out", folder / f"{stem}.err"
        self.port = port
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process: ForkedCommand | subprocess.Popen[bytes] = (
                ForkedCommand(command[1:], folder, clean_environment(**environment), self._out, self._err)
                if command[0] == FORKED
                else subprocess.Popen(
                    (*HEARING_INTERRUPTS, *command),
                    cwd=folder,
                    env=clean_environment(**environment),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def errors(self) -> str:
        return self._err.read_text()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def get(self, path: str, port: int | None = None, **options: Any) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{port or self.port}{path}", timeout=10, verify=False, **options)

    def status(self, path: str, port: int | None = None) -> int:
        """Give the status of an answer, or 0 when nobody answers."""
        try:
            return self.get(path, port).status_code
        except httpx.TransportError:
            return 0

    def until_status(self, path: str, status: int, port: int | None = None) -> httpx.Response:
        """Wait until this path answers with this status, and give that answer."""

        def asked() -> httpx.Response | None:
            assert self.running, f"ended with {self.process.returncode}: {self.errors}"
            with contextlib.suppress(httpx.TransportError):
                answer = self.get(path, port)
                return answer if answer.status_code == status else None
            return None

        return eventually(asked, lambda: f"{status} of {path}; {self.errors}")

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = 30) -> int:
        """Send a signal to the whole process group, as a terminal does, and wait for the exit code."""
        os.killpg(self.pid, number)
        return self.wait(seconds)

    def wait(self, seconds: float = 30) -> int:
        return self.process.wait(seconds)

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self.running:
            self.process.kill()
        self.process.wait()

    def _ended(self) -> bool:
        assert self.running, f"ended with {self.process.returncode}: {self.errors}"
        return False


class Up(Program):
    """`graticule up` on a data folder; most tests need no services, which take a while to start."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        port: int | None = None,
        serve: bool = False,
        program: str = graticule_command(),
        **environment: str,
    ) -> None:
        self.home = home
        self.environment = environment
        chosen = port or free_ports()
        services = "--serve" if serve else "--no-serve"
        command = (program, "up", "--port", str(chosen), "--home", str(home), services, *arguments)
        self._began = time.monotonic()
        super().__init__(home.parent, *command, port=chosen, **environment)

    def until_ready(self) -> "Up":
        """Wait until it says that everything runs."""
        eventually(lambda: READY_LINE in self.output or self._ended(), lambda: f"ready; {self.errors}", 60)
        self.seconds = time.monotonic() - self._began
        return self

    def beside(self, *command: str, port: int = 0) -> Program:
        """Start another program on the same data folder, with the same variables."""
        environment = {**self.environment, "GRATICULE_HOME": str(self.home)}
        return Program(self.home.parent, *command, port=port, **environment)

    @property
    def ports(self) -> dict[str, int]:
        return {"gateway": self.port, "orchestrator": self.port + 1, "worker": self.port + 2}

    @property
    def children(self) -> dict[str, RunningProcess]:
        """Give the processes that it has started, by name."""
        return {_name(process): process for process in all_processes() if process.parent == self.pid}

    def child(self, name: str) -> RunningProcess:
        return eventually(lambda: self.children.get(name), lambda: f"a running {name}; {self.errors}")

    @contextlib.contextmanager
    def child_down(self, name: str) -> Iterator[None]:
        """Kill a child, and let its supervisor rest meanwhile, which would start another one at once."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            killed = self.child(name)
            killed.kill()
            eventually(lambda: not killed.running, f"the end of the {name}")
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def everyone(self) -> list[RunningProcess]:
        """Give every process of this installation, itself included."""
        itself = find_process(self.pid)
        return [*processes_of(self.home), *([itself] if itself else [])]

    def is_ready(self) -> bool:
        return all(self.status("/readyz", port) == 200 for port in self.ports.values())

    def database_url(self, role: str = ADMIN, database: str = "graticule") -> str:
        return eventually(lambda: running_cluster_url(self.home, role, database), "a running database")

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database as its administrator."""
        with psycopg.connect(self.database_url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted((self.home / "logs").iterdir()))

    @property
    def admin_key(self) -> str:
        return (self.home / "admin.key").read_text().strip()

    def close(self) -> None:
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        super().close()
        end_all(self.home)


def _name(process: RunningProcess) -> str:
    command = process.command
    if "graticule" in command:
        return command[command.index("graticule") + 1]
    return Path(command[0]).name if command else ""
