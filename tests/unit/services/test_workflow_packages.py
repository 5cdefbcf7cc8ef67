"""The workflows of installed packages: under free names only, and what is wrong is told with the package."""

import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from graticule.core.errors import NotFound
from graticule.dag.compile import KnownHandler, Severity
from graticule.services.workflow_library import WorkflowLibrary, load, shipped_folder
from graticule.services.workflow_packages import ENTRY_POINT_GROUP, find_packages

HANDLERS = {"echo": KnownHandler("functionapp-tasks", 600)}
SOUND = "workflow_id: {}\nnodes: {{start: {{next: a}}, a: {{handler: echo, next: end}}}}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder on the path in which packages are installed, for one test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def install(site: Path, name: str, **files: str) -> EntryPoint:
    """Install a package with workflow files, in a folder of its own inside it; give its entry point."""
    folder = site / name / "workflows"
    folder.mkdir(parents=True)
    (site / name / "__init__.py").touch()
    for stem, text in files.items():
        (folder / f"{stem}.yaml").write_text(text)
    return EntryPoint(name, f"{name}.workflows", ENTRY_POINT_GROUP)


def library(*named: EntryPoint, folders: tuple[Path, ...] = ()) -> WorkflowLibrary:
    return load([shipped_folder(), *folders], HANDLERS, find_packages(named))


def of_packages(found: WorkflowLibrary, site: Path) -> list[tuple[str, str, Severity]]:
    """Give the problems that are not of shipped files: the place below the site, the code and the severity."""
    told = [problem for problem in found.problems if not Path(problem.file).is_relative_to(shipped_folder())]
    return [(str(problem.file).removeprefix(f"{site}/"), problem.code, problem.severity) for problem in told]


def test_the_workflows_of_a_package_are_found_by_its_entry_point(installed: Path) -> None:
    install(installed, "acme", measure=SOUND.format("measure"))
    information = installed / "acme-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nacme = acme.workflows\n")
    found = library(*entry_points(group=ENTRY_POINT_GROUP))
    assert found.files["measure"] == installed / "acme" / "workflows" / "measure.yaml"
    assert of_packages(found, installed) == []


def test_a_bad_file_of_a_package_is_reported_and_hides_no_other(installed: Path) -> None:
    texts = {"bad": "workflow_id: bad\nnodes: {start: {next: nowhere}}\n", "sound": SOUND.format("sound")}
    found = library(install(installed, "acme", **texts))
    assert {"sound", "echo_test"} <= set(found.graphs)
    with pytest.raises(NotFound, match=r"'bad' did not load: .*acme/workflows/bad\.yaml"):
        found.get("bad")


def test_a_package_takes_the_place_of_none_of_ours(installed: Path) -> None:
    found = library(install(installed, "acme", echo=SOUND.format("echo_test")))
    assert found.files["echo_test"].parent == shipped_folder()
    assert of_packages(found, installed) == [("acme/workflows/echo.yaml", "name_taken", Severity.ERROR)]


def test_a_folder_of_the_operator_takes_the_place_of_a_package(installed: Path) -> None:
    named = install(installed, "acme", one=SOUND.format("one"))
    (installed / "own").mkdir()
    own = installed / "own" / "one.yaml"
    own.write_text(SOUND.format("one"))
    found = library(named, folders=(own.parent,))
    assert found.files["one"] == own
    assert of_packages(found, installed) == [("acme/workflows/one.yaml", "name_taken", Severity.WARNING)]


def test_of_two_packages_with_one_name_neither_is_used(installed: Path) -> None:
    text = SOUND.format("one")
    found = library(install(installed, "acme", one=text), install(installed, "bolt", one=text))
    assert "one" not in found.graphs
    assert of_packages(found, installed) == [
        ("acme/workflows/one.yaml", "duplicate_workflow", Severity.ERROR),
        ("bolt/workflows/one.yaml", "duplicate_workflow", Severity.ERROR),
    ]
    with pytest.raises(NotFound, match=f"{installed}/bolt/workflows/one.yaml too"):
        found.get("one")


def test_a_package_without_files_is_reported(installed: Path) -> None:
    found = library(install(installed, "acme"))
    assert of_packages(found, installed) == [("acme/workflows", "no_workflows", Severity.ERROR)]


def test_a_package_that_cannot_be_found_is_reported_and_hides_no_other(installed: Path) -> None:
    sound = install(installed, "acme", one=SOUND.format("one"))
    install(installed, "broken")
    (installed / "broken" / "__init__.py").write_text("raise RuntimeError('out of order')")
    (installed / "module.py").touch()
    values = ["nowhere", "broken.workflows", "module", "no name"]
    found = library(*(EntryPoint("its name", value, ENTRY_POINT_GROUP) for value in values), sound)
    assert "one" in found.graphs
    assert of_packages(found, installed) == [(value, "unreadable", Severity.ERROR) for value in values]
    told = [problem.message for problem in found.problems if problem.file in values]
    assert all("'its name'" in message for message in told)
    assert "out of order" in told[1]


def test_two_entry_points_of_one_package_are_one(installed: Path) -> None:
    named = install(installed, "acme", one=SOUND.format("one"))
    found = library(named, EntryPoint("again", named.value, ENTRY_POINT_GROUP))
    assert "one" in found.graphs
    assert of_packages(found, installed) == []
