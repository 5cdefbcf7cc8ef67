"""What is copied and restored as pages show it is private to the user, whatever the umask of the shell is."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.unit.docs.shell import commands
from tests.unit.docs.snippets import Snippet, snippets

COPIES = [
    each
    for each in snippets()
    if each.language in ("console", "sh")
    and any(program in each.text for program in ("tar --", "pg_dump --", "cp keys/"))
]
# What stands for the programs that the tests of the documentation do not run: they write with the umask of the shell.
PROGRAMS = {
    "graticule": "exit 0",
    "docker": "echo a dump",
    "pg_dump": 'for each; do case $each in --file=*) echo a dump > "${each#--file=}";; esac; done',
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder as the pages mean it, in which everything was left open to others."""
    for name in (".graticule/storage/bronze/ddh/a.tif", "keys/admin.key", "keys/webhook.key"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("of a partner")
        file.chmod(0o644)
    (tmp_path / "restored").mkdir()
    for name, script in PROGRAMS.items():
        program = tmp_path / "programs" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return tmp_path


def run(place: Path, *shown: Snippet) -> dict[str, str]:
    """Run blocks in shells with the usual umask; return what they have made, with its mode."""
    before = {*place.rglob("*")}
    environment = {"PATH": f"{place / 'programs'}:{os.environ['PATH']}", "HOME": str(place)}
    for snippet in shown:
        script = "\n".join(["set -e", "umask 022", *commands(snippet)])
        subprocess.run(["bash", "-c", script], cwd=place, env=environment, check=True, capture_output=True, timeout=30)
    made = sorted({*place.rglob("*")} - before)
    return {str(path.relative_to(place)): stat.filemode(path.stat().st_mode) for path in made}


def is_private(mode: str) -> bool:
    return mode[4:] == "------"


@pytest.mark.parametrize("snippet", [each for each in COPIES if "--extract" not in each.text], ids=str)
def test_a_copy_is_private(place: Path, snippet: Snippet) -> None:
    made = run(place, snippet)
    assert made
    assert [name for name, mode in made.items() if not is_private(mode)] == []


def test_what_is_restored_is_private(place: Path) -> None:
    made = run(place, *(each for each in COPIES if each.page == "docs/how-to/backup.md"))
    assert {"restored/storage/bronze/ddh/a.tif", "restored/admin.key", "restored/webhook.key"} <= made.keys()
    assert [name for name, mode in made.items() if not is_private(mode)] == []


def test_the_pages_show_dumps_archives_and_how_they_come_back() -> None:
    assert [each.page for each in COPIES] == [*["docs/how-to/backup.md"] * 3, "docs/how-to/containers.md"]
