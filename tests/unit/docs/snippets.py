"""Every fenced block of every page."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.unit.docs.pages import DOCS

PROJECT = DOCS.parent
_OPENING = re.compile(r"^( *)(`{3,}|~{3,})([^\s`]*)", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A block: where it stands, what it is, and what it says."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Give all pages that people read, by their folders."""
    folders = (DOCS, PROJECT / "deploy", PROJECT / "examples", PROJECT / "benchmarks", PROJECT / ".github")
    return [*sorted(PROJECT.glob("*.md")), *(path for folder in folders for path in sorted(folder.rglob("*.md")))]


@cache
def snippets() -> tuple[Snippet, ...]:
    """Give the blocks of all pages, in order."""
    return tuple(each for path in pages() for each in _blocks(path))


def _blocks(path: Path) -> list[Snippet]:
    name, text = str(path.relative_to(PROJECT)), path.read_text(encoding="utf-8")
    found, place = [], 0
    while opening := _OPENING.search(text, place):
        indent, fence, language = opening.groups()
        start = text.index("\n", opening.end()) + 1
        closing = re.compile(rf"^ *{fence}[ \t]*$", re.MULTILINE).search(text, start)
        assert closing is not None, f"{name}: the block after line {text.count(chr(10), 0, start)} does not end"
        body = re.sub(rf"^{indent}", "", text[start : closing.start()], flags=re.MULTILINE)
        found.append(Snippet(name, text.count("\n", 0, start), language, body))
        place = closing.end()
    return found
