"""docs/reference/commands.md names every command, and no other."""

from collections.abc import Iterator
from typing import Any

from tests.unit.docs.pages import codes, page, table
from typer.main import get_command

from graticule.cli.main import app

PAGE = page("commands.md")


def commands(command: Any, *names: str) -> Iterator[str]:
    """Give the names of all commands that do something."""
    further = getattr(command, "commands", {})
    for name, each in further.items():
        yield from commands(each, *names, name)
    if not further:
        yield " ".join(names)


def told() -> set[str]:
    """Read the first column: a name after that of a group is one of the same group."""
    found: set[str] = set()
    for row in table(PAGE, "| command | what |"):
        group = ""
        for name in codes(row[0]):
            group, _, last = name.rpartition(" ") if " " in name else (group, "", name)
            found.add(f"{group} {last}".strip())
    return found


def test_every_command_is_told_and_no_other() -> None:
    assert told() == set(commands(get_command(app)))


def test_the_command_line_in_short_is_one_screen() -> None:
    assert len(PAGE.splitlines()) < 50
