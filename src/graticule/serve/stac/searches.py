"""What can be asked of the catalogue, and within which bounds; the same for GET and POST."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import unquote_plus

from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, ConfigDict, Field, PositiveInt, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from stac_fastapi.pgstac.types.search import PgstacSearch

from graticule.core import json_codec
from graticule.serve.stac.filters import (
    CRS84,
    LONGEST_NAME,
    checked_filter,
    checked_name,
    parsed_filter,
)
from graticule.serve.stac.shapes import MOST_VERTICES, check_depth, checked_vertices

USUAL_LIMIT: Final = 10
MOST_ITEMS: Final = 1000  # on a page; who asks for more gets a page of these
LIMIT_DESCRIBED: Final = f"Maximum number of results per page. Values above {MOST_ITEMS} are treated as {MOST_ITEMS}."
MOST_IDS: Final = 100
LONGEST_ID: Final = 256
MOST_FIELDS: Final = 100
MOST_SORTED: Final = 10
LONGEST_TOKEN: Final = 1200
LONGEST_WORDS: Final = 200
MOST_SKIPPED: Final = 1_000_000
_KEYS: Final = frozenset({"id", "collection"})  # without them nobody knows whose fields they are


def page_limit(limit: int | None) -> int:
    """Give how many a page holds."""
    return min(limit or USUAL_LIMIT, MOST_ITEMS)


def check_text(values: Any) -> None:
    """Refuse what no text can hold, such as half of a character, which JSON can name."""
    try:
        json_codec.encode(values, default=str)
    except TypeError as error:
        raise ValueError("The search has a text that cannot be written.") from error


class Search(PgstacSearch):  # type: ignore[misc]  # the library is untyped
    """A search for items."""

    model_config = ConfigDict(extra="forbid")

    # pgstac's settings are ours; the library passes them in the search itself.
    conf: SkipJsonSchema[dict[str, Any] | None] = None
    limit: Annotated[PositiveInt, AfterValidator(page_limit)] | None = Field(
        USUAL_LIMIT, description=LIMIT_DESCRIBED, json_schema_extra={"maximum": MOST_ITEMS}
    )

    @model_validator(mode="before")
    @classmethod
    def validate_spatial(cls, values: Any) -> Any:
        """Check as the library does, which takes for granted that a body is an object."""
        if not isinstance(values, dict):
            raise ValueError("A search is an object.")  # noqa: TRY004 - pydantic tells of no other kind
        check_depth(values)
        check_text(values)
        if values.get("intersects") and values.get("bbox") is not None:
            raise ValueError("A search has either 'bbox' or 'intersects'.")
        return values

    @field_validator("conf", mode="before")
    @classmethod
    def _is_ours(cls, given: Any) -> None:
        if given is not None:
            raise ValueError("There is no 'conf' here.")

    @field_validator("ids", "collections")
    @classmethod
    def _are_few(cls, given: list[str] | None) -> list[str] | None:
        if given and (len(given) > MOST_IDS or any(len(each) > LONGEST_ID for each in given)):
            raise ValueError(f"At most {MOST_IDS} of up to {LONGEST_ID} characters can be named at once.")
        return given

    @field_validator("bbox", mode="before")
    @classmethod
    def _is_on_earth(cls, given: Any) -> Any:
        return flat_box(given) if isinstance(given, Sequence) and not isinstance(given, str) else given

    @field_validator("intersects", mode="before")
    @classmethod
    def _is_simple(cls, given: Any) -> Any:
        if given is not None and checked_vertices(given) > MOST_VERTICES:
            raise ValueError(f"A shape has at most {MOST_VERTICES} vertices.")
        return given

    @field_validator("token", check_fields=False)
    @classmethod
    def _is_a_token(cls, given: str | None) -> str | None:
        if given is not None and len(given) > LONGEST_TOKEN:
            raise ValueError("This token was not given out here.")
        return given

    @field_validator("sortby", check_fields=False)
    @classmethod
    def _sorts_by_names(cls, given: Any) -> Any:
        check_order([each.field for each in given or ()])
        return given

    @field_validator("fields", check_fields=False)
    @classmethod
    def _fields_are_names(cls, given: Any) -> Any:
        if given is None:
            raise ValueError("The fields to include and to exclude are missing.")
        check_fields([*(given.include or ()), *(given.exclude or ())])
        given.include = given.include | _KEYS if given.include else set()
        given.exclude = (given.exclude or set()) - _KEYS
        return given

    @field_validator("filter_expr", check_fields=False)
    @classmethod
    def _is_understood(cls, given: Any) -> Any:
        return None if given is None else checked_filter(given)

    @field_validator("filter_crs", check_fields=False)
    @classmethod
    def _is_lonlat(cls, given: str | None) -> str | None:
        check_crs(given)
        return None  # pgstac knows no other


def search_of(model: type[Search], given: Mapping[str, Any]) -> Search:
    """Read a search from the parameters of an address; what is wrong with it is told as with a body."""
    try:
        return model(**given)
    except ValidationError as error:
        faults = [{**fault, "loc": ("query", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from error


def flat_box(box: Sequence[Any]) -> list[float]:
    """Return west, south, east and north of a box in degrees; west may be greater than east, across the antimeridian.

    The heights of a box of six numbers are checked and left out: items have footprints without heights, and pgstac
    cannot search with them.
    """
    numbers = [each for each in box if isinstance(each, (int, float)) and math.isfinite(each)]
    if len(numbers) != len(box) or len(numbers) not in {4, 6}:
        raise ValueError("A box has 4 or 6 numbers.")
    half = len(numbers) // 2
    (west, south, *bottom), (east, north, *top) = numbers[:half], numbers[half:]
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise ValueError("A box has its west, south, east and north in degrees.")
    if bottom > top:
        raise ValueError("The minimum height of a bbox must not exceed its maximum height.")
    return [west, south, east, north]


def check_order(names: Sequence[str]) -> None:
    """Raise if nothing can be ordered by these."""
    if len(names) > MOST_SORTED:
        raise ValueError(f"At most {MOST_SORTED} properties can be ordered by.")
    for name in names:
        checked_name(name)


def check_fields(names: Sequence[str]) -> None:
    """Raise if these are too many fields, or cannot be any."""
    if len(names) > MOST_FIELDS or any(len(name) > LONGEST_NAME or "\x00" in name for name in names):
        raise ValueError(f"At most {MOST_FIELDS} fields of up to {LONGEST_NAME} characters can be chosen.")


def check_crs(given: str | None) -> None:
    """Raise if coordinates are not longitudes and latitudes."""
    if given is not None and given not in CRS84:
        raise ValueError("Coordinates are longitudes and latitudes (CRS84).")


def arguments_of(
    given: Mapping[str, Any],
    *,
    intersects: str | None = None,
    fields: list[str] | None = None,
    sortby: list[str] | None = None,
    filter_query: str | None = None,
    filter_lang: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Give the parameters of an address in the form that a body has."""
    filter_crs = others.pop("filter_crs", None)
    check_crs(filter_crs)
    read = {
        "intersects": _from_json(intersects, "intersects"),
        "fields": _fields(fields),
        "sortby": _order(sortby),
        "filter": _filter(filter_query, filter_lang),
    }
    return {name: value for name, value in {**given, **others, **read}.items() if value not in (None, [])}


def _filter(text: str | None, language: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    return checked_filter(_from_json(text, "filter")) if language == "cql2-json" else parsed_filter(text)


def _from_json(text: str | None, name: str) -> Any:
    if not text:
        return None
    for written in (text, unquote_plus(text)):  # some clients encode it twice
        with suppress(ValueError):
            read = json_codec.decode(written)
            check_depth(read)
            return read
    raise ValueError(f"The parameter {name!r} is not valid JSON.")


def _fields(names: list[str] | None) -> dict[str, list[str]] | None:
    named = [name for name in names or () if name.strip("+- ")]
    if not named:
        return None
    return {
        "include": [name.removeprefix("+") for name in named if not name.startswith("-")],
        "exclude": [name.removeprefix("-") for name in named if name.startswith("-")],
    }


def _order(names: list[str] | None) -> list[dict[str, str]]:
    stripped = [name.strip() for name in names or () if name.strip()]
    return [
        {"field": name.lstrip("+-").strip(), "direction": "desc" if name.startswith("-") else "asc"}
        for name in stripped
    ]
