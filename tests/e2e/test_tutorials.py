"""docs/tutorials, and what operators run every day: all of it on one installation, with a package of the reader's own.

The package is installed before the one start that this costs, where a reader would start anew; and into a folder on
PYTHONPATH, for the environment of the tests is not the reader's.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import FirstStart, copy_home, open_folder
from tests.e2e.console_session import Session, Step, is_shown, steps
from tests.e2e.installation import FORKED, Up
from tests.e2e.processes import clean_environment
from tests.unit.docs.pages import DOCS, blocks, file_of

TUTORIALS = DOCS / "tutorials"
EXAMPLE = DOCS.parent / "examples" / "tides"
OWN_PACKAGE = (TUTORIALS / "own-package.md").read_text(encoding="utf-8")
BEFORE_IT_RUNS, WHILE_IT_RUNS = OWN_PACKAGE.split("## Run it\n")
FILES = {
    "pyproject.toml": "pyproject.toml",
    "handlers.py": "src/tides/handlers.py",
    "tide_summary.yaml": "src/tides/workflows/tide_summary.yaml",
    "test_tides.py": "tests/test_tides.py",
}
INSTALL = "pip install -e ../tides"


def written_files() -> dict[str, str]:
    """Give the files that the reader writes, by their path in the package."""
    found: dict[str, str] = {}
    for language in ("toml", "python", "yaml"):
        for block in blocks(OWN_PACKAGE, language):
            head, _, body = block.partition("\n")
            path = FILES[head.removeprefix("# ").removesuffix(", continued")]
            found[path] = f"{found[path]}\n\n{body}" if path in found else body
    return found


def test_the_package_of_the_page_is_the_example() -> None:
    for path, text in written_files().items():
        example = (EXAMPLE / path).read_text(encoding="utf-8")
        if path.startswith("tests/"):  # the page has some of them
            assert [part for part in text.split("\n\n\n") if part.strip() not in example] == []
        else:
            assert text == example, path


@pytest.fixture
def session(first_start: FirstStart) -> Iterator[Session]:
    """Give a terminal in a folder that is like a clone in which `make demo` has run."""
    with open_folder() as made:
        clone = made / "graticule"
        clone.mkdir(mode=0o755)
        copy_home(first_start.home, clone / ".graticule")
        (clone / ".venv").symlink_to(Path(sys.executable).parents[1])
        yield Session(
            clone,
            clean_environment(
                PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                PYTHONPATH=str(made / "installed"),
            ),
        )


@pytest.mark.timeout(300)
def test_a_reader_goes_through_all_tutorials(session: Session) -> None:
    write_package(session)
    up = Up(
        session.folder / ".graticule",
        program=FORKED,
        serve=True,
        PYTHONPATH=session.variables["PYTHONPATH"],
    )
    session.called_here |= {f":{8000 + ahead}/": f":{up.port + ahead}/" for ahead in range(4)}
    try:
        up.until_ready()
        for name in ("first-job.md", "first-partner.md", "reviewing.md"):
            play(session, up, name)
        session.play(WHILE_IT_RUNS, "own-package.md")
        session.play((DOCS / "how-to" / "operating.md").read_text(encoding="utf-8"), "operating.md")
    finally:
        up.close()


def write_package(session: Session) -> None:
    """Do what the page says up to the start: write the files, install the package, run its tests."""
    made, *later = steps(BEFORE_IT_RUNS)
    session.take(made, "own-package.md")
    for path, text in written_files().items():
        (session.folder.parent / "tides" / path).write_text(text)
    target = session.variables["PYTHONPATH"]
    for step in later:
        session.take(installing(step, target) if step.command == INSTALL else step, "own-package.md")
    assert any(step.command == INSTALL for step in later)


def installing(step: Step, target: str) -> Step:
    """Install into a folder of the test, with what is here: nothing is fetched."""
    return Step(f"uv pip install --no-deps --no-build-isolation --target {target} ../tides", step.shown)


def play(session: Session, up: Up, name: str) -> None:
    """Go through a page. What it says of the start is compared with the one that there was."""
    for step in steps((TUTORIALS / name).read_text(encoding="utf-8")):
        if step.command == "graticule up":
            told = up.errors[up.errors.index("✓ Ready") :] + up.output
            assert is_shown(step.shown, told.replace(str(session.folder), "/home/you/graticule")), told
        else:
            session.take(step, name)


def test_every_file_of_the_page_has_a_place() -> None:
    named = [file_of(block) for language in ("python", "yaml") for block in blocks(OWN_PACKAGE, language)]
    assert None not in named
    assert all(re.search(rf"`\.\./tides/{path}`", OWN_PACKAGE) for path in FILES.values())
