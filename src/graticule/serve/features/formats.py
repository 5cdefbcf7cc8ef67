"""Features as GeoJSON, CSV or lines of JSON."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import Depends, Query, Request
from fastapi.responses import Response

from graticule.core import json_codec
from graticule.repositories.served_tables import ServedColumn
from graticule.serve.features.limits import LARGE
from graticule.serve.features.links import GEOJSON

QUOTE: Final = '"'
EMPTY_VALUE: Final = QUOTE * 2  # a line with nothing on it would be no line
JSON_TYPES: Final = frozenset({"json", "jsonb"})


class Format(StrEnum):
    """The forms in which features can be had."""

    GEOJSON = "geojson"
    JSON = "json"  # GeoJSON too
    GEOJSONSEQ = "geojsonseq"
    NDJSON = "ndjson"
    CSV = "csv"


MEDIA_TYPES: Final = {
    Format.GEOJSON: GEOJSON,
    Format.JSON: "application/json",
    Format.GEOJSONSEQ: "application/geo+json-seq",
    Format.NDJSON: "application/x-ndjson",
    Format.CSV: "text/csv",
}
_ACCEPTED: Final = {
    "application/geo+json-seq": Format.GEOJSONSEQ,
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "text/csv": Format.CSV,
}


async def the_format(
    request: Request,
    f: Annotated[
        Format | None, Query(description="The form of the answer; the header Accept decides when it is not given.")
    ] = None,
) -> Format:
    """Tell which form a request asks for; whoever takes anything, or a web page, gets GeoJSON."""
    if f is not None:
        return f
    wanted = (part.split(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    first = next((kind for kind in wanted if kind), "")
    return _ACCEPTED.get(first, Format.GEOJSON)


TheFormat = Annotated[Format, Depends(the_format)]


async def _json_only(
    f: Annotated[Literal["json"] | None, Query(description="The form of the answer, which is JSON.")] = None,
) -> None:
    """Refuse any other form."""


JSON_ONLY: Final = Depends(_json_only)


async def written(write: Callable[[], Response], size: int) -> Response:
    """Write an answer of about so many bytes: a large one in a thread, so that others need not wait for it."""
    return await asyncio.to_thread(write) if size > LARGE else write()


def is_geojson(form: Format) -> bool:
    """Tell whether shapes are written as GeoJSON in this form; the others have them as text."""
    return form in {Format.GEOJSON, Format.JSON, Format.GEOJSONSEQ}


def values_of(row: Any, columns: Iterable[ServedColumn], form: Format) -> dict[str, Any]:
    """Give the values of a row; what is JSON already is taken over as it stands, where there is JSON around it."""
    values = {column.name: row[column.name] for column in columns}
    if form is not Format.CSV:
        for column in columns:
            if column.type in JSON_TYPES and values[column.name] is not None:
                values[column.name] = orjson.Fragment(values[column.name])
    return values


def dumps(content: Any) -> bytes:
    """Write JSON."""
    return json_codec.encode(content, default=_plain)


def json_response(
    content: Any, media_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with JSON."""
    return Response(dumps(content), media_type=media_type, headers=headers)


def sequence(features: Iterable[Any], headers: Mapping[str, str]) -> Response:
    """Answer with a sequence of features (RFC 8142)."""
    body = b"".join(b"\x1e" + dumps(feature) + b"\n" for feature in features)
    return _download(body, Format.GEOJSONSEQ, "features.geojsons", headers)


def records(rows: Iterable[dict[str, Any]], names: list[str], form: Format, headers: Mapping[str, str]) -> Response:
    """Answer with records, one on each line."""
    if form is Format.NDJSON:
        return _download(b"".join(dumps(row) + b"\n" for row in rows), form, "features.ndjson", headers)
    lines = (_csv_line(row[name] for name in names) for row in rows)
    return _download(b"".join((_csv_line(names), *lines)), form, "features.csv", headers)


def _csv_line(values: Iterable[Any]) -> bytes:
    """Write a line as the library for CSV does, which looks at each letter of a large shape by itself."""
    line = ",".join(map(_csv_value, values))
    return f"{line or EMPTY_VALUE}\r\n".encode()


def _csv_value(value: Any) -> str:
    if value is None:
        return ""
    text = value.hex() if isinstance(value, bytes) else str(value)
    needs_quotes = any(special in text for special in ',"\r\n')
    return f'"{text.replace(QUOTE, QUOTE * 2)}"' if needs_quotes else text


def _download(body: bytes, form: Format, name: str, headers: Mapping[str, str]) -> Response:
    told = {**headers, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=MEDIA_TYPES[form], headers=told)


def _plain(value: Any) -> Any:
    """Give what orjson does not know: exact numbers as such, and bytes in hexadecimal."""
    match value:
        case Decimal():
            return orjson.Fragment(str(value)) if value.is_finite() else None
        case bytes():
            return value.hex()
    return str(value)
