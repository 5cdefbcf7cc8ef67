"""Markdown in pieces."""

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table, or nothing when it has no rows."""
    lines = [_row(row) for row in rows]
    return "\n".join([_row(header), "|---" * len(header) + "|", *lines]) + "\n" if lines else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def code(text: object) -> str:
    """Give code that is part of a sentence."""
    return f"`{text}`"


def heading(level: int, text: str, anchor: str) -> str:
    """Give a heading under an anchor of its own."""
    return f"{'#' * level} {text} {{ #{anchor} }}"


def anchor_of(*words: str) -> str:
    """Give the anchor of what has these names."""
    return re.sub(r"[^\w.]+", "-", "-".join(words)).strip("-").lower()


def block(language: str, text: str) -> str:
    """Give a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def page(title: str, *parts: str) -> str:
    """Give a page: its title, and all parts of it that say something."""
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"
