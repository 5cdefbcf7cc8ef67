"""`--ref key=value`: a partner's identifiers from the command line."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from graticule.cli.inputs import split_pairs
from graticule.core.errors import InvalidInput

RefOption = Annotated[
    list[str] | None,
    typer.Option("--ref", metavar="KEY=VALUE", help="One of the partner's identifiers; a number: KEY:=VALUE."),
]


def read_refs(pairs: Sequence[str] | None) -> dict[str, str | int]:
    """Read refs: `key=value` is text, `key:=7` is a number. To the identity of a dataset, 7 and "7" are two things."""
    return dict(_ref(name, value) for name, value in split_pairs(pairs or []).items())


def _ref(name: str, value: str) -> tuple[str, str | int]:
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], int(value)
    except ValueError:
        raise InvalidInput(f"{value!r} is not a whole number.", hint=f"Write --ref {name[:-1]}=… for text.") from None


def told_refs(refs: Mapping[str, object]) -> str:
    """Write refs in a line."""
    return " ".join(f"{name}={value}" for name, value in sorted(refs.items()))
