"""`-p key=value`: values take the type that the workflow declares, and nothing is guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from graticule.cli.inputs import read_inputs_file, split_pairs, typed_inputs
from graticule.core.errors import InvalidInput


def typed(kind: str, value: str) -> Any:
    return typed_inputs({"x": value}, {"x": {"type": kind}})["x"]


@pytest.mark.parametrize("value", ["38272", "007", "true", "null", "[1]", '{"a": 1}', "", " a ", "@file", "a=b"])
def test_a_text_stays_the_text_that_it_is(value: str) -> None:
    assert typed("string", value) == value


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("integer", "42", 42),
        ("integer", "-1", -1),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("number", "7", 7),
        ("boolean", "true", True),
        ("boolean", "No", False),
        ("boolean", "0", False),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": [null]}', {"a": [None]}),
    ],
)
def test_other_types_are_read(kind: str, value: str, expected: Any) -> None:
    found = typed(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "4.5"),
        ("integer", "many"),
        ("integer", ""),
        ("number", "nan"),
        ("number", "inf"),
        ("boolean", "perhaps"),
        ("array", "a,b"),
        ("array", '{"a": 1}'),
        ("array", "[NaN]"),
        ("object", "[]"),
    ],
)
def test_what_does_not_fit_is_named_with_its_type(kind: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"'x' is declared as {kind}"):
        typed(kind, value)


def test_an_input_that_is_not_declared_is_sent_as_text_and_the_server_tells() -> None:
    assert typed_inputs({"typo": "1"}, {"x": {"type": "integer"}}) == {"typo": "1"}


def test_a_document_can_be_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "bands.json").write_text("[1, 2]")
    assert typed("array", f"@{tmp_path}/bands.json") == [1, 2]
    with pytest.raises(InvalidInput, match="cannot be read"):
        typed("array", f"@{tmp_path}/none.json")


def test_pairs_are_split_at_the_first_sign_of_equality() -> None:
    assert split_pairs(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize("pairs", [["a"], ["=b"], ["a=1", "a=2"]])
def test_pairs_that_say_nothing_or_too_much_are_refused(pairs: list[str]) -> None:
    with pytest.raises(InvalidInput):
        split_pairs(pairs)


def test_a_file_of_inputs_is_an_object(tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text(json.dumps({"a": "1"}))
    assert read_inputs_file(str(file)) == {"a": "1"}
    for content in ("[]", "{", '{"a": NaN}', "\x00"):
        file.write_text(content)
        with pytest.raises(InvalidInput, match=r"inputs\.json"):
            read_inputs_file(str(file))
