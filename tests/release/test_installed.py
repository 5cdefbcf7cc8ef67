"""The wheel in an empty environment, far from the sources: `graticule up`, a job, and the end."""

import json
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import open_folder
from tests.e2e.installation import Up
from tests.e2e.processes import clean_environment, processes_of
from tests.wheel import ROOT

LEFT_OUT = (
    "Rasters and vectors are not processed: `pip install 'graticule[worker]'` brings what that needs.",
    "Tiles, features and the catalogue are not served: `pip install 'graticule[serve]'` brings what that needs.",
)


def uv(*arguments: str) -> str | None:
    """Run uv, and tell what went wrong, if something did."""
    command = [sys.executable, "-m", "uv", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with the versions that all tests have, which uv keeps since it installed them for the tests."""
    environment = tmp_path_factory.mktemp("environment")
    assert uv("venv", "--clear", "--python", sys.executable, str(environment)) is None
    install = ("pip", "install", "--python", str(environment), str(wheel))
    locked = ("--constraint", str(ROOT / "requirements.lock"))
    if uv(*install, *locked, "--offline") is not None:
        assert uv(*install, *locked) is None
    lend_compiled(environment)
    return environment / "bin" / "graticule"


def lend_compiled(environment: Path) -> None:
    """Spare the processes that start at once the compiling of all that they import: of the same files, it was done."""
    ours = Path(sysconfig.get_path("purelib"))
    theirs = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    for compiled in ours.rglob("__pycache__"):
        beside = theirs / compiled.parent.relative_to(ours)
        if beside.is_dir():
            shutil.copytree(compiled, beside / "__pycache__", dirs_exist_ok=True)


@pytest.fixture(scope="module")
def up(program: Path) -> Iterator[Up]:
    """Start it from nothing, as a user does, with a base install."""
    with open_folder() as folder:
        running = Up(folder / "home", serve=True, program=str(program))
        try:
            yield running.until_ready()
        finally:
            running.close()


def asked(program: Path, up: Up, *arguments: str) -> str:
    """Give what a command prints that a user types in the same folder."""
    done = subprocess.run(
        [program, *arguments],
        cwd=up.home.parent,
        env=clean_environment(GRATICULE_HOME=str(up.home)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_user_who_installs_the_wheel_can_start_and_submit_and_stop(program: Path, up: Up) -> None:
    assert all(told in up.errors for told in LEFT_OUT)
    assert f"{'services':<15} none" in up.output
    assert up.get("/", headers={"Accept": "text/html"}).text.startswith("<!doctype html>")
    job = json.loads(asked(program, up, "submit", "hello_world", "-p", "name=wheel", "--watch", "--json"))
    assert job["status"] == "completed"
    assert up.end(signal.SIGINT) == 0, up.errors
    assert processes_of(up.home) == []
    assert up.errors.endswith("Everything is stopped; the data stays in the data folder.\n")
