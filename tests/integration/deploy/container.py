"""What a container engine does for a process, as far as the kernel does it for any: its own view of the file system.

The process is number 1 of a PID namespace and an unprivileged user without a capability. All file systems are read-only
to it but those that it is given. The network is that of the machine: the database is there.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

USER = 10001
DATA = "/var/lib/graticule"
UNPRIVILEGED = (
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
    *("--inh-caps=-all", "--bounding-set=-all"),
)
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation=private")
# The interpreter may be in somebody's home, which the user of a container could not enter.
REACHABLE_PYTHON = """
mkdir --parents {scratch}/python
mount --bind {python} {scratch}/python
mount --types tmpfs --options mode=0755 tmpfs {home}
mkdir --parents {python}
mount --bind {scratch}/python {python}
"""
CHECKOUT = Path(__file__).resolve().parents[3]
READ_ONLY = """
cut --delimiter=' ' --fields=5 /proc/self/mountinfo | while read -r place; do
    mount --options remount,bind,ro "$place" 2>/dev/null || true
done
"""


def require_root() -> None:
    """Leave a test out where nobody may make namespaces."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("only root can make namespaces, by unshare and setpriv")


def _script(folder: Path, opt: Path | None, writable: Mapping[str, Path]) -> str:
    """Give the commands that make the view: /opt, a data folder, and all else as it is and read-only."""
    python = sys.base_prefix
    home = "/" + python.split("/")[1]
    lines = ["set -eu"]
    if home != "/usr":
        lines.append(REACHABLE_PYTHON.format(scratch=folder, python=python, home=home))
    if opt is not None:
        lines.append(f"mount --bind {opt} /opt")
    lines += [
        "mount --types tmpfs --options mode=0755 tmpfs /var/lib",
        f"mkdir --parents {DATA}/storage/external",
        *(f"mount --bind {source} {place}" for place, source in writable.items() if place != "/tmp"),
        READ_ONLY,
        # Last: the folders of the tests are in the one of the machine.
        *(_mount_tmp(writable["/tmp"]) if "/tmp" in writable else ()),
        *(f"mount --options remount,bind,rw {place}" for place in writable),
        'exec "$@"',
    ]
    return "\n".join(lines)


def _mount_tmp(folder: Path) -> list[str]:
    """Return what mounts a folder over /tmp; a checkout below it, where the programs are, stays visible."""
    mount = f"mount --bind {folder} /tmp"
    if not CHECKOUT.is_relative_to("/tmp"):
        return [mount]
    (folder / CHECKOUT.relative_to("/tmp")).mkdir(parents=True, exist_ok=True)
    checkout = shlex.quote(str(CHECKOUT))
    return [f"mount --bind {checkout} /mnt", mount, f"mount --bind /mnt {checkout}"]


def files_left(tmp: Path) -> list[Path]:
    """Return what a process left in its /tmp; the place of a checkout that is below /tmp is not its own."""
    return [each for each in tmp.iterdir() if not CHECKOUT.is_relative_to(Path("/tmp") / each.name)]


def volume(folder: Path) -> Path:
    """Make a folder that the user of a container may write to, as an engine makes a volume."""
    folder.mkdir(parents=True, mode=0o755)
    os.chown(folder, USER, USER)
    return folder


def command(
    words: list[str], folder: Path, *, opt: Path | None = None, writable: Mapping[str, Path] | None = None
) -> list[str]:
    """Give the command that runs another as a container would."""
    script = _script(folder, opt, writable or {})
    return [*ALONE, "sh", "-c", script, "container", *UNPRIVILEGED, *words]


def as_root(script: str, opt: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step of the container file as it stands, where /opt is another folder."""
    step = f"set -eu; mount --bind {shlex.quote(str(opt))} /opt; cd /opt/build; {script}"
    return subprocess.run(
        ["unshare", "--mount", "--propagation=private", "sh", "-c", step],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )


class Running:
    """A process in its container."""

    def __init__(self, started: subprocess.Popen[str]) -> None:
        self._started = started
        self._lines: list[str] = []

    def told(self, event: str) -> dict[str, object]:
        """Wait for an event in its log, and give it."""
        assert self._started.stderr is not None
        for line in self._started.stderr:
            self._lines.append(line)
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("event") == event:
                return dict(said)
        raise AssertionError(f"it ended before {event!r}:\n{''.join(self._lines)}")

    def terminate(self) -> int:
        """Send SIGTERM to process 1 of the container, and give the status with which it ends."""
        (first,) = Path(f"/proc/{self._started.pid}/task/{self._started.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        _, rest = self._started.communicate(timeout=60)
        self._lines.append(rest)
        return self._started.returncode

    @property
    def log(self) -> str:
        """What it has said so far."""
        return "".join(self._lines)


@contextmanager
def running(words: list[str], environment: Mapping[str, str]) -> Iterator[Running]:
    """Give a process in its container; it is gone afterwards."""
    with subprocess.Popen(
        words, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            yield Running(started)
        finally:
            started.kill()  # and with it, by the kernel, all that is in the namespace
