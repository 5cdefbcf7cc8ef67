"""Patterns of inputs: matched in time that grows with the text alone, whatever the pattern is."""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Give a function that tells whether a text contains a match; `ValueError` when this is no pattern.

    Pydantic's expressions know neither look-around nor references back: what they know needs no second try.
    """
    try:
        adapter = TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].partition(":")[2].strip()
        raise ValueError(reason) from None

    def matches(text: str) -> bool:
        try:
            adapter.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches
