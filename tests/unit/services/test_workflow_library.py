"""The workflows of folders: a bad file hides no other, and of two with one id the later folder's is used."""

from pathlib import Path

import pytest

from graticule.core.errors import NotFound
from graticule.dag.compile import KnownHandler, Severity
from graticule.services.workflow_library import WorkflowLibrary, load, shipped_folder

HANDLERS = {"echo": KnownHandler("functionapp-tasks", 600)}


def write(folder: Path, file: str, workflow_id: str = "one", text: str | None = None, version: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / file
    header = f"workflow_id: {workflow_id}\nversion: {version}\n"
    path.write_text(f"{header}nodes: {{start: {{next: a}}, a: {{handler: echo, next: end}}}}" if text is None else text)
    return path


def test_all_files_of_a_folder_are_loaded(tmp_path: Path) -> None:
    first, second = write(tmp_path, "b.yaml", "one"), write(tmp_path, "a.yml", "two")
    write(tmp_path, "notes.txt", text="no workflow")
    write(tmp_path, ".hidden.yaml", "three")
    library = load([tmp_path], HANDLERS)
    assert set(library.graphs) == {"one", "two"}
    assert library.files == {"one": first, "two": second}
    assert library.problems == ()
    assert library.get("one").workflow_id == "one"


def test_an_unknown_workflow_is_told_with_one_that_is_alike(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "raster_ingest")
    with pytest.raises(NotFound, match=r"no workflow 'raster_ingets'.*'raster_ingest'"):
        load([tmp_path], HANDLERS).get("raster_ingets")
    with pytest.raises(NotFound) as caught:
        load([tmp_path], HANDLERS).get("x" * 100_000)
    assert len(str(caught.value)) < 300


def test_a_bad_file_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", text="workflow_id: bad\nnodes: {start: {next: nowhere}}\n")
    write(tmp_path, "binary.yaml").write_bytes(b"\xff\xfe\x00")
    write(tmp_path, "huge.yaml", text="#" * (5 << 20))
    (tmp_path / "folder.yaml").mkdir()
    write(tmp_path, "sound.yaml", "sound")
    library = load([tmp_path], HANDLERS)
    assert set(library.graphs) == {"sound"}
    files = {Path(problem.file).name for problem in library.problems if problem.severity is Severity.ERROR}
    assert files == {"bad.yaml", "binary.yaml", "huge.yaml", "folder.yaml"}
    assert any(problem.line == 2 and problem.node == "start" for problem in library.problems)


def missing(library: WorkflowLibrary, workflow_id: str) -> NotFound:
    with pytest.raises(NotFound) as caught:
        library.get(workflow_id)
    return caught.value


def test_a_workflow_whose_file_is_broken_is_told_with_the_file_and_its_first_error(tmp_path: Path) -> None:
    text = "workflow_id: bad\nodd: 1\nnodes:\n  start: {next: nowhere}\n  other: {handler: none}\n"
    file = write(tmp_path / "a folder", "ingest.yaml", text=text)
    library = load([file.parent], HANDLERS)
    first, *others = library.problems
    error = missing(library, "bad")
    assert error.message == f"The workflow 'bad' did not load: {first}"
    assert f"{file}:2" in error.message
    assert not any(problem.message in str(error) for problem in others)
    assert f"graticule workflow validate '{file}'" in (error.hint or "")
    assert "did not load" not in missing(library, "ingest").message  # it declares another id


def test_the_first_problem_that_is_told_of_a_broken_file_is_an_error(tmp_path: Path) -> None:
    inputs = "{n: {type: integer, required: true, default: 1}}"
    write(tmp_path, "bad.yaml", text=f"workflow_id: bad\ninputs: {inputs}\nnodes: {{start: {{next: nowhere}}}}\n")
    library = load([tmp_path], HANDLERS)
    assert library.problems[0].severity is Severity.WARNING
    (told,) = [each for each in library.problems if str(each) in missing(library, "bad").message]
    assert told.severity is Severity.ERROR


@pytest.mark.parametrize("content", [b"workflow_id: [", b"workflow_id: Bad Name\nnodes: {}", b"\xff\xfe\x00", b""])
def test_a_file_without_a_readable_id_is_found_by_its_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "unreadable.yml"
    file.write_bytes(content)
    library = load([tmp_path], HANDLERS)
    assert str(file) in missing(library, "unreadable").message


@pytest.mark.parametrize("names", [("one.yaml", "z.yaml"), ("one.yaml", "a.yaml")])
def test_a_broken_file_that_declares_the_id_counts_before_one_of_that_name(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    write(tmp_path, names[0], text="workflow_id: [")
    declaring = write(tmp_path, names[1], text="workflow_id: one\nnodes: {}")
    assert str(declaring) in missing(load([tmp_path], HANDLERS), "one").message


def test_a_workflow_that_stands_in_two_files_is_told_with_both(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a.yaml"), write(tmp_path, "b.yaml")
    error = missing(load([tmp_path], HANDLERS), "one")
    assert str(first) in error.message
    assert second.name in error.message
    assert "validate" not in str(error)  # each file by itself is sound


def test_the_later_folder_wins_with_a_warning(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", "x.yaml", version=1), write(tmp_path / "b", "y.yaml", version=2)
    library = load([tmp_path / "a", tmp_path / "b"], HANDLERS)
    assert library.get("one").version == "2"
    assert library.files["one"] == second
    (warning,) = library.problems
    assert warning.severity is Severity.WARNING
    assert warning.file == str(second)
    assert str(first) in warning.message


def test_a_bad_file_of_a_later_folder_replaces_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a", "x.yaml")
    write(tmp_path / "b", "x.yaml", text="workflow_id: one\nnodes: {}\n")
    library = load([tmp_path / "a", tmp_path / "b"], HANDLERS)
    assert library.get("one").version == "1"
    assert [problem.severity for problem in library.problems] == [Severity.ERROR]


def test_two_files_of_one_folder_with_one_id_are_both_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml")
    write(tmp_path, "b.yaml")
    write(tmp_path, "c.yaml", "other")
    library = load([tmp_path], HANDLERS)
    assert set(library.graphs) == {"other"}
    assert sorted((Path(problem.file).name, problem.severity) for problem in library.problems) == [
        ("a.yaml", Severity.ERROR),
        ("b.yaml", Severity.ERROR),
    ]
    assert "b.yaml" in library.problems[0].message


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "a", "x.yaml")
    library = load([tmp_path / "none", tmp_path / "a"], HANDLERS)
    assert set(library.graphs) == {"one"}
    assert [(problem.file, problem.severity) for problem in library.problems] == [
        (str(tmp_path / "none"), Severity.ERROR)
    ]


def test_a_folder_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml")
    library = load([tmp_path, tmp_path], HANDLERS)
    assert set(library.graphs) == {"one"}
    assert library.problems == ()


def test_the_shipped_workflows_are_found_in_the_package() -> None:
    found = {path.stem for path in shipped_folder().glob("*.yaml")}
    assert {"hello_world", "echo_test", "demo"} <= found


def test_a_file_is_compiled_again_when_it_has_changed_and_only_then(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "one")
    write(tmp_path, "b.yaml", "two")
    first = load([tmp_path], HANDLERS)
    write(tmp_path, "a.yaml", "one", version=22)
    second = load([tmp_path], HANDLERS)
    assert second.get("one").version == "22"
    assert second.get("two") is first.get("two")
