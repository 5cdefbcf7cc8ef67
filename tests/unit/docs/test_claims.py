"""Every claim of security.md and the README is held by tests that claims.yaml names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from tests.unit.docs.pages import DOCS

PROJECT = DOCS.parent
CLAIMS: dict[str, dict[str, list[str]]] = yaml.safe_load((Path(__file__).parent / "claims.yaml").read_text())
PAGES = {name: (PROJECT / name).read_text(encoding="utf-8") for name in CLAIMS}
PHRASES = [(name, phrase) for name, claims in CLAIMS.items() for phrase in claims]


def statements(text: str) -> list[list[str]]:
    """Return the paragraphs, bullets and tables of a page; of a table its lines, else one text in one line."""
    prose = re.sub(r"^```.*?^```$|^#+ [^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [_lines(part.strip()) for part in re.split(r"\n\s*\n|\n(?=- )", prose) if part.strip()]


def _lines(part: str) -> list[str]:
    if part.startswith("|"):
        return [line for line in part.splitlines() if not line.startswith("|-")]
    return [" ".join(part.split())]


@cache
def functions(path: str) -> set[str]:
    """Return the names of the functions of a test file."""
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("name", PAGES)
def test_every_statement_is_held_or_claims_nothing(name: str) -> None:
    for first, *rows in statements(PAGES[name]):
        unknown = [line for line in rows or [first] if not any(phrase in line for phrase in CLAIMS[name])]
        assert not unknown or any(phrase in first for phrase in CLAIMS[name]), unknown


@pytest.mark.parametrize(("name", "phrase"), PHRASES)
def test_every_phrase_stands_in_one_place_of_its_page(name: str, phrase: str) -> None:
    lines = [line for part in statements(PAGES[name]) for line in part]
    assert sum(phrase in line for line in lines) == 1


@pytest.mark.parametrize(("name", "phrase"), PHRASES)
def test_every_test_that_is_named_exists(name: str, phrase: str) -> None:
    for test in CLAIMS[name][phrase]:
        path, _, function = test.partition("::")
        assert function.startswith("test_"), test
        assert function in functions(path), test
