"""Build what is released, a source distribution and a wheel, both with the console inside: `make dist`.

The wheel is made from the source distribution, which needs no Node. One that is made from the checkout must be the same
to the byte: whoever has the sources can see that the wheel was made from them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.setup import ROOT, Console

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE = ROOT / "src" / "graticule"
NOT_PACKAGED = ("__pycache__", ".pyc")


class DistError(Exception):
    """What was asked for cannot be released; the message is one line for the user."""


def main(arguments: Sequence[str]) -> int:
    """Build into `dist`, or into the folder that is named; return the exit status."""
    target = Path(arguments[0]) if arguments else ROOT / "dist"
    try:
        made = build(target)
    except DistError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    if further := uncommitted(ROOT):
        print(f"dist: this is no release, for no commit has {', '.join(further)}.", file=sys.stderr)
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    return 0


def build(target: Path, checkout: Path = ROOT) -> list[Path]:
    """Build both into a folder, once they are found to be right, and give their files."""
    require_console(Console(checkout))
    with tempfile.TemporaryDirectory() as folder:
        built, again = Path(folder) / "built", Path(folder) / "again"
        run_build(checkout, built)
        run_build(checkout, again, "--wheel")
        (wheel,) = built.glob("*.whl")
        require_whole_package(wheel)
        require_same(wheel, again / wheel.name)
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("graticule-*"):
            old.unlink()
        return [Path(shutil.copy(path, target)) for path in sorted(built.iterdir())]


def require_console(console: Console) -> None:
    """Refuse to release a package without the console and the map pages, or with those of other sources."""
    if not console.has_packages() or not console.has_bundle():
        raise DistError("the console was not built from these sources. Run `make setup`, which needs npm for it.")


def run_build(checkout: Path, target: Path, *only: str) -> None:
    """Let uv build: with the build backend that is installed, and the time of the last commit in all files."""
    command = ["-m", "uv", "build", "--quiet", "--no-build-isolation", "--no-create-gitignore", *only]
    done = subprocess.run(
        [sys.executable, *command, "--out-dir", str(target), str(checkout)],
        env={**os.environ, "SOURCE_DATE_EPOCH": time_of(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DistError(f"the build failed.\n{done.stdout}")


def time_of(checkout: Path) -> str:
    """Give the time that all files are to have, in seconds: what the environment says, or that of the last commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    done = subprocess.run(
        ["git", "-C", str(checkout), "log", "-1", "--format=%ct"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "1577836800"  # without a history: the year 2020, for zip files know none before 1980


def uncommitted(checkout: Path) -> list[str]:
    """Name what differs from the last commit, and what is in none: both would be in the source distribution."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "status", "--porcelain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return [line[3:] for line in done.stdout.splitlines()]


def require_whole_package(wheel: Path, package: Path = PACKAGE) -> None:
    """See that the wheel has all files of the package, and nothing beside them but what describes it."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {
        str(path.relative_to(package.parent))
        for path in package.rglob("*")
        if path.is_file() and not any(part in str(path) for part in NOT_PACKAGED)
    }
    if packed != wanted:
        raise DistError(f"lacking in the wheel: {sorted(wanted - packed)}; too much: {sorted(packed - wanted)}.")


def require_same(wheel: Path, other: Path) -> None:
    """See that two wheels are the same to the byte."""
    if wheel.read_bytes() != other.read_bytes():
        with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(other) as two:
            contents = [{each.filename: each.CRC for each in archive.infolist()} for archive in (one, two)]
        names = sorted({name for name, _ in contents[0].items() ^ contents[1].items()})
        raise DistError(f"the wheel of the source distribution is not the one that the checkout gives: {names}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
