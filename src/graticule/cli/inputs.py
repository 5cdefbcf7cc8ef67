"""`-p key=value`: values from the command line become what the workflow's inputs are declared to be."""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from graticule.core.errors import InvalidInput

BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def split_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Split `key=value` pairs at their first sign of equality."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{pair!r} is not an input.", hint="Write it as -p name=value.")
        if name in found:
            raise InvalidInput(f"The input {name!r} is given twice.", hint="Give it once.")
        found[name] = value
    return found


def typed_inputs(pairs: Mapping[str, str], declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Give each value the type that the workflow declares. One that it does not know stays text: the server tells."""
    return {name: _typed(name, value, declared.get(name, {}).get("type", "string")) for name, value in pairs.items()}


def _typed(name: str, value: str, kind: str) -> Any:
    read = READERS.get(kind)
    if read is None:
        return value
    try:
        return read(value)
    except (ValueError, KeyError):
        raise InvalidInput(
            f"The input {name!r} is declared as {kind}, and {value[:80]!r} is none.", hint=HINTS.get(kind)
        ) from None


def _number(value: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        found = float(value)
    if not math.isfinite(found):
        raise ValueError
    return found


def _boolean(value: str) -> bool:
    return BOOLEANS[value.lower()]


def _document(kind: type) -> Callable[[str], Any]:
    def read(value: str) -> Any:
        text = _read_file(value[1:]) if value.startswith("@") else value
        found = _json(text)
        if not isinstance(found, kind):
            raise ValueError  # noqa: TRY004 - told as any other value that does not fit
        return found

    return read


def _json(text: str) -> Any:
    """Read JSON, without the constants that Python adds to it."""
    return json.loads(text, parse_constant=_not_json)


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": _number,
    "boolean": _boolean,
    "array": _document(list),
    "object": _document(dict),
}
HINTS: Final = {
    "boolean": "Write true or false.",
    "array": 'Write JSON, as in \'["a", "b"]\', or @file.json.',
    "object": "Write JSON, as in '{\"a\": 1}', or @file.json.",
}


def read_inputs_file(path: str) -> dict[str, Any]:
    """Read inputs from a file of JSON, or from standard input (`-`)."""
    text = sys.stdin.read() if path == "-" else _read_file(path)
    try:
        found = _json(text)
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} does not hold an object of inputs.", hint='Write it as {"name": value, …}.')
    return found


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
