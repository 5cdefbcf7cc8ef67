"""Where commands write: results to standard output, the story to standard error. Text is printed to the letter."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

out = Console(highlight=False, markup=False, emoji=False)
story = Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(sentence: str) -> None:
    """Tell what is being done."""
    _tell("·", "dim", sentence)


def done(sentence: str) -> None:
    """Tell what came out well."""
    _tell("✓", "green", sentence)


def warn(sentence: str) -> None:
    """Tell what the user should look at."""
    _tell("!", "yellow", sentence)


def fail(message: str, hint: str | None = None) -> None:
    """Tell what went wrong, and how to mend it."""
    _tell("✗", "red", message)
    if hint:
        story.print(f"  {hint}", soft_wrap=True)


def print_columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; a terminal cuts a line at its end, and a program gets all of it."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for number, row in enumerate([heads, *rows]):
        line = "  ".join(f"{_flat(cell):<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        style = "bold" if number == 0 else ""
        out.print(Text(line, style, no_wrap=True, overflow="ellipsis"), soft_wrap=not out.is_terminal)


def _flat(cell: str) -> str:
    return " ".join(cell.splitlines())


def _tell(sign: str, style: str, sentence: str) -> None:
    story.print(Text.assemble((sign, style), f" {sentence}"), soft_wrap=True)
