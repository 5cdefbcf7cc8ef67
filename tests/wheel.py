"""What `make dist` makes, made once in a run."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.conftest import HOME_VARIABLE

ROOT: Final = Path(__file__).resolve().parents[1]


def run_dist(*arguments: str, checkout: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run what `make dist` runs."""
    command = [sys.executable, "-m", "scripts.dist", *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def released() -> tuple[Path, Path]:
    """Give the source distribution and the wheel; the first process that asks builds them."""
    place = Path(os.environ[HOME_VARIABLE]) / "dist"  # removed with the run's cluster, by the run that began it
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(place.glob("*.whl")):
            done = run_dist(str(place))
            assert done.returncode == 0, done.stderr
    (source,), (built,) = place.glob("*.tar.gz"), place.glob("*.whl")
    return source, built


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Give the wheel."""
    return released()[1]
