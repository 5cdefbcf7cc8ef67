"""The command line in this process: arguments and variables in; exit code and both outputs out."""

import io
import os
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

from tests.conftest import plain_logs
from typer.main import get_command

from graticule.cli.main import main

OURS = re.compile(r"GRATICULE_|POSTGRES_|PG|RUN_MODE$|LOG_|SERVICE_BUS_|USE_MANAGED_")
# The tree of commands is the same for every run, and to make it takes longer than most commands do.
made_command = cache(get_command)


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


def run(*arguments: str, variables: Mapping[str, str] | None = None) -> Result:
    """Run `graticule` with these arguments, and with these settings only."""
    clean = {name: value for name, value in os.environ.items() if not OURS.match(name)}
    out, err = io.StringIO(), io.StringIO()
    mask = os.umask(0o022)
    with (
        patch.dict(os.environ, clean | dict(variables or {}), clear=True),
        patch.object(sys, "argv", ["graticule", *arguments]),
        patch("typer.main.get_command", made_command),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = _exit_code()
    os.umask(mask)  # what a command set for its own process is not for the tests that follow
    plain_logs()
    return Result(code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # as the interpreter does with what nobody caught
        traceback.print_exc()
        return 1
    return 0


def assert_told_in_two_lines(result: Result) -> tuple[str, str]:
    """A foreseen error: what went wrong and how to mend it, and nothing else."""
    assert result.code == 1, result
    assert "Traceback" not in result.err
    lines = result.err.splitlines()
    assert len(lines) == 2, result.err
    assert lines[0].startswith("✗ ")
    assert lines[1].startswith("  ")
    return lines[0], lines[1]
