"""The pages of the documentation, taken apart: their code blocks, their tables, and their links."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def page(name: str) -> str:
    """Give the text of a page, in whatever folder it is: no two have the same name."""
    (found,) = DOCS.rglob(name)
    return found.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Give the code blocks of one language, in order."""
    return [body for marked, body in _BLOCK.findall(text) if marked == language]


def file_of(block: str) -> str | None:
    """Give the file name that stands in the first line of a block as a comment."""
    found = re.match(r"# ([\w.]+\.(?:yaml|py))", block)
    return found[1] if found else None


def workflows(text: str) -> list[str]:
    """Give the blocks that are whole workflows, without those that are shown as broken."""
    return [block for block in blocks(text, "yaml") if block.startswith("workflow_id:")]


def table(text: str, header: str) -> list[list[str]]:
    """Give the rows of the table whose header line begins so."""
    lines = text.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(header))
    rows = lines[first + 2 :]
    after = next((place for place, line in enumerate(rows) if not line.startswith("|")), len(rows))
    return [_cells(line) for line in rows[:after]]


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line)[1:-1]]


def code(cell: str) -> str:
    """Give what stands between the backticks of a cell that is nothing but code."""
    assert cell.startswith("`"), cell
    assert cell.endswith("`"), cell
    return cell[1:-1]


def codes(text: str) -> list[str]:
    """Give everything between single backticks."""
    return re.findall(r"`([^`]+)`", _BLOCK.sub("", text))


def links(text: str) -> list[str]:
    """Give the targets of all links to other pages and headings."""
    return [target for target in _LINK.findall(text) if "://" not in target]


def anchors(text: str) -> set[str]:
    """Give the anchors of the headings."""
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
