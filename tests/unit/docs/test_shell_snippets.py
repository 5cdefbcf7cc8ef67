"""Every command that a page shows is one: its program is there, with these options, routes, targets and variables."""

import re
import subprocess
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.unit.docs.requests import check_request
from tests.unit.docs.shell import commands, simple_commands
from tests.unit.docs.snippets import PROJECT, Snippet, snippets
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import Settings

SHOWN = [each for each in snippets() if each.language in ("console", "sh")]
# What a shell and a machine have; nothing of it is ours to check.
ORDINARY = frozenset(
    {
        *("bash", "cat", "chmod", "cp", "date", "diff", "du", "echo", "grep", "head", "jq", "kill", "ls", "mkdir"),
        *("mv", "openssl", "pg_dump", "pg_restore", "pip", "printf", "psql", "rm", "sed", "sort", "source", "sudo"),
        *("tail", "tar", "tee", "touch", "umask", "wait", "wc"),
    }
)
# What no machine of the tests has, or what needs an account: their lines are read by a shell, and not run.
NOT_RUN = {
    "az": "Azure",
    "docker": "a container engine",
    "func": "Azure Functions",
    "kubectl": "Kubernetes",
    "npm": "the console's own server, while its sources are worked on",
    "hatchling": "`make dist`, which the tests run",
}
# By the command line, not by processes.
READ_ELSEWHERE = frozenset({"GRATICULE_API_KEY", "GRATICULE_API_URL", "GRATICULE_HOME", "GRATICULE_PORT"})


@cache
def command_line() -> Any:
    return get_command(app)


def check_graticule(words: list[str]) -> None:
    """Parse the arguments as the command line does, without running anything."""
    command, names, rest = command_line(), [words[0]], words[1:]
    while further := getattr(command, "commands", None):
        if not rest:
            assert command.invoke_without_command, f"{' '.join(names)} needs a command"
            return
        assert rest[0] in further or rest[0] in ("--help", "--version"), (
            f"there is no command {' '.join(names)} {rest[0]}"
        )
        if rest[0] not in further:
            return
        names.append(rest.pop(0))
        command = further[names[-1]]
    if "--help" not in rest:
        command.make_context(" ".join(names), rest)


def check_make(words: list[str]) -> None:
    """See that the targets are there, and that the program behind them has the options that it is given."""
    text = (PROJECT / "Makefile").read_text(encoding="utf-8")
    for word in words[1:]:
        if "=" not in word:
            assert re.search(rf"^{word}(?: [\w-]+)*:", text, re.MULTILINE), f"there is no target {word}"
    arguments = next((word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")), "")
    recipes = re.findall(rf"^{words[1]}:.*\n((?:\t.*\n)*)", text, re.MULTILINE)
    for module in re.findall(r"python -m ([\w.]+)", "".join(recipes)):
        check_module(module, arguments.split())


def check_python(words: list[str]) -> None:
    """See that a module of ours is there, with these options."""
    if words[1:2] == ["-m"] and words[2].split(".")[0] in ("tests", "benchmarks", "scripts", "graticule"):
        check_module(words[2], words[3:])


def check_module(module: str, arguments: list[str]) -> None:
    place = PROJECT.joinpath(*module.split("."))
    source = next(path for path in (place.with_suffix(".py"), place / "__main__.py") if path.exists())
    text = source.read_text(encoding="utf-8")
    missing = [word for word in arguments if word.startswith("--") and f'"{word}"' not in text]
    assert missing == [], f"{module} has no {missing}"


def check_cd(words: list[str]) -> None:
    assert not words[1:] or words[1].startswith(("..", "/", "$")) or (PROJECT / words[1]).is_dir(), words[1]


def check_pytest(words: list[str]) -> None:
    paths = [word for word in words[1:] if word.startswith("tests/")]
    assert all((PROJECT / path).exists() for path in paths), paths


CHECKED: dict[str, Callable[[list[str]], None]] = {
    "graticule": check_graticule,
    "curl": check_request,
    "make": check_make,
    "python": check_python,
    "python3": check_python,
    "cd": check_cd,
    "pytest": check_pytest,
}


def check_variables(variables: dict[str, str]) -> None:
    """See that variables of ours are settings."""
    known = {f"GRATICULE_{name.upper()}" for name in Settings.model_fields} | READ_ELSEWHERE
    named = {name for name in variables if name.startswith("GRATICULE_") and "$" not in name}
    assert named <= known, named - known


def check_program(words: list[str]) -> None:
    """See that somebody knows the program of a command, and that it takes what it is given."""
    program = words[0].removeprefix(".venv/bin/")
    if program in CHECKED:
        CHECKED[program]([program, *words[1:]])
    else:
        of_the_page = program.startswith("$")
        assert of_the_page or program in ORDINARY | NOT_RUN.keys(), f"nobody knows {program}"


@pytest.mark.parametrize("snippet", SHOWN, ids=str)
def test_every_command_is_one(snippet: Snippet) -> None:
    typed = list(commands(snippet))
    assert typed, "a terminal shows commands after `$ `; what is none is `text`"
    for variables, words in (each for command in typed for each in simple_commands(command)):
        check_variables(variables)
        if words:
            check_program(words)


@pytest.mark.parametrize("page", sorted({snippet.page for snippet in SHOWN}))
def test_a_shell_can_read_them(page: str) -> None:
    script = "\n".join(command for snippet in SHOWN if snippet.page == page for command in commands(snippet))
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_not_run_is_shown_somewhere() -> None:
    typed = (each for snippet in SHOWN for command in commands(snippet) for each in simple_commands(command))
    programs = {words[0].removeprefix(".venv/bin/") for _, words in typed if words}
    assert set(NOT_RUN) <= programs


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("graticule submitt demo", "no command"),
        ("graticule submit demo --wacth", "(?i)no such option"),
        ("graticule submit", "Missing"),
        ("GRATICULE_WORKER_QUEUS=a graticule worker", "WORKER_QUEUS"),
        ("curl http://127.0.0.1:8001/api/v1/job", "no GET /api/v1/job"),
        ("curl -X PUT http://127.0.0.1:8001/api/v1/jobs", "no PUT"),
        ("curl http://127.0.0.1:8001/api/v1/jobs?stats=failed", "does not know {'stats'}"),
        ("""curl http://127.0.0.1:8001/api/v1/jobs -d '{"workflow": "demo"}'""", "'workflow' was unexpected"),
        ("make tests", "no target tests"),
        ("make bench ARGS=--onyl", "has no .*--onyl"),
        ("cd deploy/function", "deploy/function"),
        ("rustc main.rs", "nobody knows rustc"),
    ],
)
def test_what_is_wrong_is_found(command: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        test_every_command_is_one(Snippet("page.md", 1, "console", f"$ {command}\n"))
