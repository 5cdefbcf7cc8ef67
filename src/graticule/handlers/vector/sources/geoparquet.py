"""GeoParquet files, read by Arrow: pyogrio's GDAL has no driver for them."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from graticule.handlers.vector.described import WGS84, Chunk
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.blob_stream import blob_stream
from graticule.handlers.vector.sources.layer import Declared, SourceBatch, with_columns
from graticule.handlers.vector.sources.ogr import BATCH_BYTES, BATCH_ROWS
from graticule.handlers.vector.sources.projections import wkt_of_json
from graticule.handlers.vector.sources.source import SourceFile

LONGEST_TEXT: Final = 16 * 1024 * 1024  # bytes in a footer
FASTEST_GROWTH: Final = 4  # from a batch to the next
MOST_PARTS: Final = 1_000_000  # of a list in a footer
BUFFER_BYTES: Final = 1024 * 1024  # that are read at once of each column
MOST_COLUMNS: Final = 2000  # with those within others
_INDEX: Final = re.compile(r"__index_level_[0-9]+__")  # what pandas adds


@dataclass(frozen=True, slots=True)
class GeoColumns:
    """What the file says of its geometries."""

    primary: str
    described: dict[str, Any]  # of the primary column
    others: frozenset[str]  # other columns that are no attributes: of geometries, and of boxes

    @property
    def crs(self) -> str | None:
        """The CRS of the coordinates; one that is left out is a known one, one that is null is not."""
        if "crs" not in self.described:
            return WGS84
        given = self.described["crs"]
        return None if given is None else wkt_of_json(given, f"column {self.primary}")

    @property
    def geometry_type(self) -> str:
        """The type that all have, in GDAL's words."""
        types = {str(each) for each in self.described.get("geometry_types") or []}
        plain = {each.removesuffix(" Z").removeprefix("Multi") for each in types}
        if len(plain) != 1 or len({each.endswith(" Z") for each in types}) != 1:
            return "Unknown"
        is_multi = any(each.startswith("Multi") for each in types)
        has_z = any(each.endswith(" Z") for each in types)
        return f"{'2.5D ' if has_z else ''}{'Multi' if is_multi else ''}{plain.pop()}"


class ParquetReader:
    """Reads the features of some row groups."""

    def __init__(self, file: pq.ParquetFile, geo: GeoColumns, groups: range) -> None:
        self._file = file
        self._geo = geo
        self._groups = groups
        fields = [field for field in file.schema_arrow if _is_attribute(field.name, geo)]
        self._names = [field.name for field in fields]
        self.crs = geo.crs
        self.geometry_type = geo.geometry_type
        self.count: int | None = sum(file.metadata.row_group(group).num_rows for group in groups)
        self.fields = pa.schema(map(_plain, fields))

    def batches(self) -> Iterator[SourceBatch]:
        """Give the features."""
        with telling_errors():
            names = [*self._names, self._geo.primary]
            read = self._file.iter_batches(1, row_groups=list(self._groups), columns=names, use_threads=False)
            for batch in read:
                columns = [batch.column(name) for name in self._names]
                values = [column.cast(field.type) for column, field in zip(columns, self.fields, strict=True)]
                attributes = with_columns(batch, values, self.fields)
                wkb = _wkb(batch.column(self._geo.primary))
                self._file.reader.set_batch_size(_next_rows(len(wkb), attributes.nbytes + wkb.nbytes))
                yield SourceBatch(attributes, wkb)


def _next_rows(rows: int, size: int) -> int:
    """Tell how many rows are read next, after so many of that size.

    What a file says of its size tells nothing: values that repeat are written once. So it begins with few.
    """
    fitting = BATCH_BYTES * rows // max(1, size)
    return max(1, min(BATCH_ROWS, FASTEST_GROWTH * rows, fitting))


@contextmanager
def open_parquet(file: SourceFile, chunk: Chunk | None = None) -> Iterator[ParquetReader]:
    """Open a file, or a chunk of its row groups."""
    with _opened(file) as opened:
        with telling_errors():
            geo = _geo_columns(opened)
            groups = range(opened.metadata.num_row_groups)
            if chunk is not None and chunk.begin is not None and chunk.end is not None:
                groups = groups[chunk.begin : chunk.end]
            reader = ParquetReader(opened, geo, groups)
        yield reader


def declared(file: SourceFile) -> Declared:
    """Tell what a file says of itself."""
    with open_parquet(file) as reader:
        return Declared(layer=file.stem, crs=reader.crs, field_count=len(reader.fields))


def ranges(file: SourceFile, rows: int) -> list[tuple[int, int, int]]:
    """Put row groups together to parts of about so many rows each."""
    with _opened(file) as opened:
        counts = [opened.metadata.row_group(group).num_rows for group in range(opened.metadata.num_row_groups)]
    parts: list[tuple[int, int, int]] = []
    begin = held = 0
    for place, count in enumerate(counts):
        if held and held + count > rows:
            parts.append((begin, place, held))
            begin, held = place, 0
        held += count
    return [*parts, (begin, len(counts), held)] if counts else parts


@contextmanager
def telling_errors() -> Iterator[None]:
    """Turn what Arrow says of a file into its rejection."""
    try:
        yield
    except (pa.ArrowMemoryError, MemoryError):
        raise rejected(Code.TOO_LARGE_FEATURE, "Some of the features are too large to be held.") from None
    except (pa.ArrowException, OSError, KeyError, TypeError, UnicodeError, IndexError) as error:
        raise rejected(Code.CORRUPT, "The file cannot be read.") from error


@contextmanager
def _opened(file: SourceFile) -> Iterator[pq.ParquetFile]:
    with closing(blob_stream(file.storage, file.path)) as stream:
        with telling_errors():
            opened = pq.ParquetFile(
                stream,
                buffer_size=BUFFER_BYTES,
                pre_buffer=False,
                thrift_string_size_limit=LONGEST_TEXT,
                thrift_container_size_limit=MOST_PARTS,
            )
        if opened.metadata.num_columns > MOST_COLUMNS:
            what = f"The file has {opened.metadata.num_columns} columns; at most {MOST_COLUMNS} are read."
            raise rejected(Code.TOO_MANY_FIELDS, what)
        yield opened


def _geo_columns(file: pq.ParquetFile) -> GeoColumns:
    text = (file.metadata.metadata or {}).get(b"geo")
    if text is None:
        raise rejected(Code.NOT_A_VECTOR, "The file is Parquet, but no GeoParquet: it says nothing of geometries.")
    try:
        geo = json.loads(text)
        primary, columns = str(geo["primary_column"]), geo["columns"]
        described = dict(columns[primary])
        covering = (described.get("covering") or {}).get("bbox") or {}
        others = {*map(str, columns), *(str(path[0]) for path in covering.values())} - {primary}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise rejected(Code.CORRUPT, "What the file says of its geometries cannot be read.", "geo") from None
    _check_column(file.schema_arrow, primary, described)
    return GeoColumns(primary, described, frozenset(others))


def _check_column(schema: pa.Schema, primary: str, described: dict[str, Any]) -> None:
    if schema.names.count(primary) != 1:
        raise rejected(Code.CORRUPT, "The column of geometries is missing.", f"column {primary}")
    if described.get("encoding") != "WKB":
        what = f"The geometries are written as {str(described.get('encoding'))[:40]}; only WKB is read."
        raise rejected(Code.CORRUPT, what, f"column {primary}")
    kind = _storage(schema.field(primary).type)
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise rejected(Code.CORRUPT, f"The column of geometries has the type {kind}.", f"column {primary}")


def _is_attribute(name: str, geo: GeoColumns) -> bool:
    return name != geo.primary and name not in geo.others and not _INDEX.fullmatch(name)


def _plain(field: pa.Field) -> pa.Field:
    """Give a field as it is handed on: with values and no places in a dictionary, and times of one zone."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        return field.with_type(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return field.with_type(pa.timestamp(kind.unit, "UTC"))
    return field


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _wkb(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column, pa.ExtensionArray) else column
