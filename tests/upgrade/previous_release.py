"""The release before this one, taken out of the history: so that its code runs, and not the tree's."""

import io
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.e2e.processes import clean_environment

PREVIOUS_RELEASE: Final = "d33dcc6a3464c168c5105ebd1671427d3a5b56eb"  # moves on with each release
REPOSITORY: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class PreviousRelease:
    """Its code, in a folder."""

    source: Path

    @property
    def environment(self) -> dict[str, str]:
        """Give what makes Python import this code, before what is installed."""
        return {"PYTHONPATH": str(self.source)}

    def command(self, *arguments: str) -> tuple[str, ...]:
        """Give a command of `graticule`, as this release has it."""
        return (sys.executable, "-m", "graticule", *arguments)

    def run(self, *command: str, **environment: str) -> str:
        """Run something to its end, and give what it printed."""
        ran = subprocess.run(
            command,
            cwd=self.source.parent,
            env=clean_environment(**environment, **self.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def unpack(folder: Path, commit: str = PREVIOUS_RELEASE) -> PreviousRelease:
    """Write the code of a commit into a folder, and see that Python takes it from there."""
    archive = subprocess.run(
        ["git", "-C", REPOSITORY, "archive", "--format=zip", commit, "src"], capture_output=True, check=False
    )
    if archive.returncode != 0:
        pytest.fail(
            f"The previous release, commit {commit}, is not in the history of this clone."
            f" Bring it here with `git fetch --unshallow`. (git says: {archive.stderr.decode().strip()})",
            pytrace=False,
        )
    with zipfile.ZipFile(io.BytesIO(archive.stdout)) as files:
        files.extractall(folder)
    release = PreviousRelease(folder / "src")
    imported = release.run(sys.executable, "-c", "import graticule; print(graticule.__file__)")
    assert Path(imported.strip()).is_relative_to(folder), imported
    return release
