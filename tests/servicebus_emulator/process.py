"""The emulator in a process of its own, for benchmarks and for tests with several processes."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.servicebus_emulator.queue import QueueOptions

_ROOT: Final = Path(__file__).parents[2]
_SECONDS_TO_END: Final = 10


@dataclass(frozen=True)
class QueueSeen:
    """What is in a queue, as the emulator's process told it."""

    active: int
    locked: int
    deferred: int
    scheduled: int
    dead: int
    messages: list[dict[str, Any]] = field(repr=False)  # each with its id, state and deliveries
    dead_letters: list[dict[str, Any]] = field(repr=False)  # each with its id, reason and description


class EmulatorProcess:
    """A running emulator; what it is asked for is done when the call returns."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        ready = self._read()
        self.connection_string: str = ready["connection_string"]
        self.port: int = ready["port"]
        self.tls_port: int | None = ready["tls_port"]
        self.admin_port: int | None = ready["admin_port"]
        self.faults = FaultsOfProcess(self)

    def queue(self, name: str) -> QueueSeen:
        """Give what is in a queue now."""
        return QueueSeen(**self.ask("queue", name))

    def ask(self, *command: Any) -> dict[str, Any]:
        """Give the answer to a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The emulator has ended.")
        answer: dict[str, Any] = json.loads(line)
        return answer


class FaultsOfProcess:
    """The faults of an emulator in another process; `Faults` tells what they do."""

    def __init__(self, process: EmulatorProcess) -> None:
        self._process = process

    @property
    def cuts(self) -> int:
        """Give how many connections were cut because of a frame."""
        return int(self._process.ask("cuts")["cuts"])

    def cut(self) -> None:
        """Close all connections abruptly now."""
        self._do("cut")

    def cut_after(self, frames: int) -> None:
        """Cut the connection on which the last of so many frames arrives."""
        self._do("cut_after", frames)

    def cut_at_random(self, probability: float, seed: int = 0) -> None:
        """Cut connections at random."""
        self._do("cut_at_random", probability, seed)

    def delay(self, seconds: float) -> None:
        """Let everything that the broker says arrive later."""
        self._do("delay", seconds)

    def busy(self, count: int = 0, *, seconds: float = 0) -> None:
        """Refuse the next operations, so many or for so long."""
        self._do("busy", count, seconds=seconds)

    def expire_locks(self, queue: str) -> None:
        """End all locks of a queue."""
        self._do("expire_locks", queue)

    def stop(self) -> None:
        """Be a good broker again."""
        self._do("stop")

    def _do(self, fault: str, *values: Any, **named: Any) -> None:
        self._process.ask("faults", fault, named, *values)


@contextmanager
def running_emulator(
    queues: Mapping[str, QueueOptions],
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    accept_jwt: bool = False,
) -> Iterator[EmulatorProcess]:
    """Run the emulator as its own process, which needs nothing but Python."""
    options = json.dumps({name: asdict(each) for name, each in queues.items()})
    command = [sys.executable, "-S", "-m", "tests.servicebus_emulator", "--queues", options]
    if certificate is not None and key is not None:
        command += ["--certificate", str(certificate), "--key", str(key)]
    if accept_jwt:
        command.append("--accept-jwt")
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield EmulatorProcess(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
