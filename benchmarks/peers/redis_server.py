"""A Redis of its own for the peer that needs one: installed when missing, private to the run, durable."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.environments import Announce, InstallationFailed

PACKAGE = "redis-server"
READY_WITHIN_SECONDS = 10.0


def find_redis(announce: Announce) -> str:
    """Give the path of the server; on Debian and its kin it is installed when it is not there."""
    if found := shutil.which(PACKAGE):
        return found
    apt = _apt_get()
    for command in ([*apt, "update"], [*apt, "install", "--yes", "--no-install-recommends", PACKAGE]):
        announce(" ".join(command))
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if found := shutil.which(PACKAGE):
        return found
    raise InstallationFailed(f"`{' '.join(apt)} install {PACKAGE}` did not bring a {PACKAGE}; install it by hand.")


def _apt_get() -> list[str]:
    """Give the command that can install Redis, or refuse."""
    if shutil.which("apt-get") is None:
        raise InstallationFailed(
            f"Celery needs Redis, and this machine has neither {PACKAGE} nor apt-get. "
            "Install Redis by hand, or leave Celery out: --only dbos,dbos_steps,pgqueuer,procrastinate."
        )
    if os.geteuid() == 0:
        prefix = []
    elif shutil.which("sudo"):
        prefix = ["sudo"]
    else:
        raise InstallationFailed(
            f"Celery needs Redis, which only root can install: `apt-get install {PACKAGE}`. "
            "Or leave Celery out: --only dbos,dbos_steps,pgqueuer,procrastinate."
        )
    return [*prefix, "apt-get", "--quiet"]


@contextmanager
def running_redis(server: str, folder: Path) -> Iterator[str]:
    """Run a server that only this folder's socket reaches; every write is on disk before it is answered."""
    folder.mkdir(parents=True, exist_ok=True)
    socket = folder / "redis.sock"
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
    try:
        _wait_for(socket, process)
        yield f"redis+socket://{socket}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(socket: Path, process: "subprocess.Popen[bytes]") -> None:
    began = time.monotonic()
    while not socket.exists():
        if process.poll() is not None or time.monotonic() - began > READY_WITHIN_SECONDS:
            raise InstallationFailed(f"{PACKAGE} did not start in {socket.parent}.")
        time.sleep(0.05)
