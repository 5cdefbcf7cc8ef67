"""The rules of the code base, and that the tools which watch over them do refuse."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "graticule"
TOOLS = Path(sys.executable).parent


def run_tool(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the lint tools in a folder."""
    command = [str(TOOLS / name), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def sound_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the code, of which others are made."""
    ignored = shutil.ignore_patterns("__pycache__", "static", "*.sql")  # no tool reads them, and they are large
    return Path(shutil.copytree(REPOSITORY / "src", tmp_path_factory.mktemp("sound") / "src", ignore=ignored))


@pytest.fixture
def project(tmp_path: Path, sound_source: Path) -> Path:
    """Give the code with the project's settings, to be spoilt; its files are links, which `append` replaces."""
    shutil.copytree(sound_source, tmp_path / "src", copy_function=os.link)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "README.md").touch()
    return tmp_path


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Give a copy of one module with the project's settings, for tools that look at nothing else."""
    core = tmp_path / "src" / "graticule" / "core"
    core.mkdir(parents=True)
    (core / "__init__.py").touch()
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return Path(shutil.copy(SOURCE / "core" / "ids.py", core))


def append(file: Path, text: str) -> None:
    """Add to a file of a test; others may be links to the same one, and keep what they have."""
    before = file.read_text()
    file.unlink()
    file.write_text(f"{before}\n\n{text}\n")


# Import layers


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the import layers of the code in a folder, and not those of the installed one."""
    script = "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command; "
    return subprocess.run(
        [sys.executable, "-c", script + "lint_imports_command()", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_go_downwards_only() -> None:
    found = lint_imports(REPOSITORY)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("core/ids.py", "import graticule.repositories.jobs", "Imports go downwards only"),
        ("config.py", "from graticule.services import bootstrap", "Imports go downwards only"),
        ("repositories/jobs.py", "import graticule.http.problems", "Imports go downwards only"),
        ("gateway/app.py", "from graticule.api import access", "Imports go downwards only"),
        ("api/access.py", "import graticule.cli.console", "Imports go downwards only"),
        ("gateway/app.py", "import rasterio", "The API processes carry no GDAL"),
        ("services/readiness.py", "import pyogrio", "The API processes carry no GDAL"),
    ],
)
def test_an_import_that_is_not_allowed_is_refused(project: Path, module: str, statement: str, contract: str) -> None:
    append(project / "src" / "graticule" / module, statement)
    found = lint_imports(project)
    assert found.returncode == 1, found.stdout + found.stderr
    assert f"{contract} BROKEN" in found.stdout


def test_a_package_of_no_layer_is_refused(project: Path) -> None:
    package = project / "src" / "graticule" / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text('"""Everything that has no name of its own."""\n')
    found = lint_imports(project)
    assert found.returncode == 1
    assert "helpers" in found.stdout


# Style and types


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('def shown(value) -> str:\n    """Show it."""\n    return str(value)', "ANN001"),
        ('def shown(value: int):\n    """Show it."""\n    return str(value)', "ANN201"),
        ("def shown(value: int) -> str:\n    return str(value)", "D103"),
        ("class Shown:\n    pass", "D101"),
        ('def told() -> None:\n    """Tell it."""\n    print("told")', "T201"),
        ('def asked(name: str) -> str:\n    """Ask it."""\n    return f"SELECT * FROM t WHERE n = {name}"', "S608"),
    ],
)
def test_a_function_that_lacks_something_is_refused(tmp_path: Path, module: Path, code: str, rule: str) -> None:
    assert run_tool(tmp_path, "ruff", "check", "--no-cache", str(module)).returncode == 0
    append(module, code)
    found = run_tool(tmp_path, "ruff", "check", "--no-cache", "--output-format", "concise", str(module))
    assert found.returncode == 1
    assert rule in found.stdout


def test_a_module_without_a_docstring_is_refused(tmp_path: Path, module: Path) -> None:
    file = module.with_name("new.py")
    file.write_text("NUMBER = 1\n")
    found = run_tool(tmp_path, "ruff", "check", "--no-cache", "--output-format", "concise", str(file))
    assert found.returncode == 1
    assert "D100" in found.stdout


TYPE_ERRORS = {
    "[assignment]": 'COUNT: int = "many"',
    "[no-untyped-def]": "def shown(value): return value",
    "[type-arg]": "def shown(value: list) -> None: ...",
    "[ignore-without-code]": "COUNT: int = 'x'  # type: ignore",
}


def test_type_errors_are_refused(project: Path, tmp_path: Path) -> None:
    """Each in a module of its own, by one run: most of a run's time goes into what it reads of the libraries."""
    core = project / "src" / "graticule" / "core"
    modules = {rule: core / f"spoilt_{number}.py" for number, rule in enumerate(TYPE_ERRORS)}
    for module in modules.values():
        module.write_text('"""Not spoilt yet."""\n')
    check = ("mypy", "--cache-dir", str(tmp_path / "cache"), *map(str, modules.values()))
    assert run_tool(project, *check).returncode == 0
    for rule, module in modules.items():
        append(module, TYPE_ERRORS[rule])
    found = run_tool(project, *check)
    assert found.returncode == 1, found.stdout + found.stderr
    told = [line for line in found.stdout.splitlines() if ": error: " in line]
    for rule, module in modules.items():
        assert [line.rpartition(" ")[2] for line in told if module.name in line] == [rule], found.stdout


# make lint


@pytest.fixture
def stub_tools(tmp_path: Path) -> Path:
    """Give an environment whose tools note that they were called, and fail when they are told to."""
    (tmp_path / "bin").mkdir()
    for name in ("ruff", "mypy", "lint-imports", "python"):
        tool = tmp_path / "bin" / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*"\ntest "{name} $1" != "$FAILS"\n')
        tool.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "fails", ["nothing", "ruff check", "ruff format", "mypy ", "lint-imports ", "python scripts/console.py"]
)
def test_make_lint_runs_every_tool_and_fails_when_one_does(stub_tools: Path, fails: str) -> None:
    command = ["make", "--no-print-directory", "lint", f"VENV={stub_tools}", "PYTHON=true"]
    found = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | {"FAILS": fails}, capture_output=True, text=True, check=False
    )
    calls = [line.strip() for line in found.stdout.splitlines()]
    console = "python scripts/console.py check"
    assert calls == ["ruff check .", "ruff format --check .", "mypy", "lint-imports", console], found.stderr
    assert (found.returncode == 0) == (fails == "nothing")


# SQL

STATEMENT = re.compile(
    r"\s*(?:SELECT\s.+?\sFROM\s|SELECT\s+\S+\(|SELECT\s+\d|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s)",
    re.IGNORECASE | re.DOTALL,
)
WITH_SQL = ("schema", "repositories")


def literals(file: Path) -> Iterator[tuple[int, str]]:
    """Give the text literals of a module with their lines, but for docstrings."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # text that nobody uses
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def test_the_search_for_sql_finds_it(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""SELECT 1 FROM here."""\nA = "SELECT a FROM b"\nB = f"update {A} set x"\nC = "select one"\n')
    assert [line for line, text in literals(file) if STATEMENT.match(text)] == [2]
    for text in ("insert into t values (1)", "\n DELETE FROM t", "UPDATE t SET a = 1", "SELECT count(*) AS n FROM t"):
        assert STATEMENT.match(text)


def test_sql_stands_in_the_repositories_and_in_the_schema_only() -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{line}: {text.strip()[:60]}"
        for file in sorted(SOURCE.rglob("*.py"))
        if file.relative_to(SOURCE).parts[0] not in WITH_SQL
        for line, text in literals(file)
        if STATEMENT.match(text)
    ]
    assert found == []


# Files

TEXT = {".py", ".sql", ".toml", ".md", ".lock", ".yml", ".yaml", ".txt", ".cfg", ".ini", ".json", ".sh", ".html", ".js"}
NOT_OURS = {".venv", ".git", ".graticule", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"} | {
    *("node_modules", "build", "dist")
}
# Put together here, so that this file does not name them.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("pypi", "python", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("conda", "anaconda", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("rubygems", "org"),
        ("repo1", "maven", "org"),
    )
]


def files() -> Iterator[Path]:
    """Give the text files of the repository that are ours; folders that are not are many times as large."""
    for folder, folders, names in os.walk(REPOSITORY):
        folders[:] = sorted(set(folders) - NOT_OURS)
        for path in (Path(folder, name) for name in sorted(set(names) - NOT_OURS)):
            if path.is_file() and (path.suffix in TEXT or path.name in {"Makefile", "Dockerfile"}):
                yield path


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the business of each machine."""
    found = [
        f"{path.relative_to(REPOSITORY)}: {host}"
        for path in files()
        for text in [path.read_text(encoding="utf-8", errors="replace")]
        for host in REGISTRIES
        if host in text
    ]
    assert found == []


def test_modules_have_one_subject_and_are_not_long() -> None:
    modules = [path for path in files() if path.suffix == ".py" and path.is_relative_to(SOURCE)]
    assert modules
    assert [str(path) for path in modules if len(path.read_text().splitlines()) > 600] == []
    assert [str(path) for path in modules if path.stem in {"utils", "helpers", "common", "manager"}] == []


# Dependencies


def pinned() -> dict[str, tuple[str, list[str]]]:
    """Give the entries of the lock file: version, and hashes, by name."""
    entries: dict[str, tuple[str, list[str]]] = {}
    text = re.sub(r"\\\n", " ", (REPOSITORY / "requirements.lock").read_text())
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        requirement, *options = line.split(" --hash=")
        entry = Requirement(requirement.strip())
        assert entry.url is None, line
        specifiers = list(entry.specifier)
        assert [each.operator for each in specifiers] == ["=="], line
        assert not specifiers[0].version.endswith("*"), line
        entries[canonicalize_name(entry.name)] = (specifiers[0].version, [option.strip() for option in options])
    return entries


def asked_for() -> list[Requirement]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    return [requirement for line in lines if (requirement := Requirement(line)).name != project["name"]]


def test_every_pinned_package_has_a_version_and_hashes() -> None:
    entries = pinned()
    assert len(entries) > 50
    sha256 = re.compile(r"sha256:[0-9a-f]{64}")
    sound = {name for name, (_, hashes) in entries.items() if hashes and all(map(sha256.fullmatch, hashes))}
    assert entries.keys() - sound == set()


def test_the_lock_file_names_no_address() -> None:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_the_wheel_asks_for_ranges() -> None:
    operators = {str(each): {bound.operator for bound in each.specifier} for each in asked_for()}
    assert {name: found for name, found in operators.items() if not found or found & {"==", "==="}} == {}


@pytest.mark.parametrize("requirement", asked_for(), ids=str)
def test_the_lock_file_satisfies(requirement: Requirement) -> None:
    version, _ = pinned()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)
