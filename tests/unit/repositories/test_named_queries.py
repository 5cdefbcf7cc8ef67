"""Named SQL: the loader, and that every query of every file is used by the module beside it."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.integration.repositories.registry import modules

import graticule.repositories
from graticule.repositories.queries import load_queries
from graticule.schema import catalogue, deploy

FOLDER = Path(graticule.repositories.__path__[0])


TWO = "-- A file.\n\n-- name: one\n-- Why.\nSELECT 1;\n\n-- name: two_b\nSELECT 2\nFROM x;\n"


@pytest.fixture
def _two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graticule.repositories.queries.files", lambda _: tmp_path)
    (tmp_path / "things.sql").write_text(TWO, encoding="utf-8")
    (tmp_path / "twice.sql").write_text("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n", encoding="utf-8")
    (tmp_path / "empty.sql").write_text("", encoding="utf-8")


@pytest.mark.usefixtures("_two")
def test_a_query_is_all_from_its_name_to_the_next_without_the_semicolon() -> None:
    queries = load_queries("things.sql")
    assert list(queries) == ["one", "two_b"]
    assert queries["one"] == "-- Why.\nSELECT 1"
    assert queries["two_b"] == "SELECT 2\nFROM x"


@pytest.mark.usefixtures("_two")
def test_an_unknown_name_is_told_with_the_file_and_the_names_that_it_has() -> None:
    with pytest.raises(KeyError, match=r"things\.sql has no query named 'three'; it has: one, two_b\."):
        load_queries("things.sql")["three"]


@pytest.mark.usefixtures("_two")
def test_a_name_that_stands_twice_is_refused_when_the_file_is_read() -> None:
    with pytest.raises(ValueError, match=r"twice\.sql names a query twice"):
        load_queries("twice.sql")


@pytest.mark.usefixtures("_two")
def test_a_file_without_queries_has_none() -> None:
    assert list(load_queries("empty.sql")) == []


def test_a_file_that_is_not_there_is_an_error_at_import() -> None:
    with pytest.raises(FileNotFoundError):
        load_queries("no_such_file.sql")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.name)
def test_every_query_is_used_by_the_module_beside_its_file(file: Path) -> None:
    source = file.with_suffix(".py").read_text(encoding="utf-8")
    names = list(load_queries(file.name))
    assert names
    assert [name for name in names if f'"{name}"' not in source] == []


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_query_that_a_module_names_is_in_its_file(module: ModuleType) -> None:
    named = re.compile(r'(?:self\._(?:one|all|execute|transition)\(\s*|queries\[)"([a-z_]+)"')
    beside = FOLDER / f"{module.__name__.rpartition('.')[2]}.sql"
    known = set(load_queries(beside.name)) if beside.exists() else set()
    assert set(named.findall(inspect.getsource(module))) <= known


def test_the_schemas_queries_are_all_used() -> None:
    source = inspect.getsource(deploy) + inspect.getsource(catalogue)
    assert [name for name in deploy.STATE if f'"{name}"' not in source] == []
    read_by_loop = {name for name in catalogue.QUERIES if f'rows["{name}"]' in source}
    assert set(catalogue.QUERIES) == read_by_loop | {"sizes"}
    assert 'CATALOGUE["sizes"]' in source


def test_no_statement_stands_outside_the_sql_files_of_the_repositories() -> None:
    statement = re.compile(r'"(?:SELECT|INSERT|UPDATE|DELETE)\b(?!.*\{\})')
    made_from_models = {"statements.py", "database.py"}  # the statements of every table, and the ping
    offenders = [
        file.name
        for file in FOLDER.glob("*.py")
        if file.name not in made_from_models and statement.search(file.read_text(encoding="utf-8"))
    ]
    assert offenders == []
