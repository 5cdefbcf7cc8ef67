"""The container file taken apart: its stages, and the instructions of each."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parents[3] / "deploy" / "containers" / "Dockerfile"
_INSTRUCTION = re.compile(r"([A-Z]+) (.*)", re.DOTALL)


@dataclass(frozen=True)
class Stage:
    """One stage: what it begins with, and what follows."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        """Give what all instructions of a kind say."""
        return [said for kind, said in self.instructions if kind == word]

    def last(self, word: str) -> str | None:
        """Give what the last instruction of a kind says, which is the one that counts."""
        return next(reversed(self.all(word)), None)


def _lines(text: str) -> list[str]:
    """Give one line for each instruction; comments are none, also between the lines of one."""
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [line for line in re.sub(r"\\\n\s*", "", bare).splitlines() if line]


def stages(text: str | None = None) -> dict[str, Stage]:
    """Give the stages by name."""
    found: dict[str, Stage] = {}
    stage: Stage | None = None
    for line in _lines(FILE.read_text(encoding="utf-8") if text is None else text):
        read = _INSTRUCTION.fullmatch(line)
        assert read, line
        word, said = read.groups()
        if word == "FROM":
            base, name = said.split(" AS ")
            stage = found[name] = Stage(name, base)
        elif stage is not None:
            stage.instructions.append((word, said))
    return found


def lineage(name: str) -> list[Stage]:
    """Give a stage after all that it is made from."""
    known = stages()
    found = [known[name]]
    while found[0].base in known:
        found.insert(0, known[found[0].base])
    return found


def environment(name: str) -> dict[str, str]:
    """Give the variables that an image sets."""
    said = [each for stage in lineage(name) for each in stage.all("ENV")]
    return dict(pair.split("=", 1) for each in said for pair in each.split())


def last(name: str, word: str) -> str:
    """Give what counts of a kind of instruction in an image."""
    found = next((said for stage in reversed(lineage(name)) if (said := stage.last(word)) is not None), None)
    assert found is not None, f"{name} has no {word}"
    return found


def words(said: str) -> list[str]:
    """Read an instruction in the form that starts no shell."""
    found = json.loads(said)
    assert isinstance(found, list)
    return found
