"""GeoParquet files, read by Arrow: pyogrio's GDAL has no driver for them."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from graticule.handlers.blob_stream import blob_stream
from graticule.handlers.findings import Finding, Rejected
from graticule.handlers.vector.described import WGS84, Chunk
from graticule.handlers.vector.rejecting import Code, finding, rejected
from graticule.handlers.vector.sources import geoarrow, wkt
from graticule.handlers.vector.sources.crs_texts import is_name
from graticule.handlers.vector.sources.layer import Declared, SourceBatch, with_columns
from graticule.handlers.vector.sources.ogr import BATCH_BYTES, BATCH_ROWS
from graticule.handlers.vector.sources.projections import wkt_of_code, wkt_of_json
from graticule.handlers.vector.sources.source import SourceFile
from graticule.handlers.zip_archive import FREE_BYTES, MAX_RATIO

LONGEST_TEXT: Final = 16 * 1024 * 1024  # bytes in a footer
FASTEST_GROWTH: Final = 4  # from a batch to the next
MOST_PARTS: Final = 1_000_000  # of a list in a footer
BUFFER_BYTES: Final = 1024 * 1024  # that are read at once of each column
MOST_COLUMNS: Final = 2000  # with those within others
ROW_BYTES: Final = 100  # of a row in a table and its indexes, beyond its values
_WKB: Final = "WKB"
_TYPES_OF: Final = {
    "wkb": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
    "wkt": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
}
_KNOWN_VERSIONS: Final = ("0.", "1.")
_PARQUET_TYPES: Final = {"GEOMETRY", "GEOGRAPHY"}
_GEOARROW: Final = "geoarrow."
_EXTENSION_NAME, _EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_LONGITUDE_FIRST: Final = {"OGC:CRS84", "CRS84", "OGC:CRS84H"}
_INDEX: Final = re.compile(r"__index_level_[0-9]+__")  # what pandas adds


@dataclass(frozen=True, slots=True)
class GeoColumns:
    """What the file says of its geometries."""

    primary: str
    encoding: str
    crs: str | None  # a code or WKT
    geometry_types: frozenset[str]
    has_curved_edges: bool  # lines follow the globe between their vertices
    others: frozenset[str]  # other columns that are no attributes: of geometries, and of boxes

    @property
    def geometry_type(self) -> str:
        """The type that all have, in GDAL's words."""
        plain = {each.removesuffix(" Z").removeprefix("Multi") for each in self.geometry_types}
        if len(plain) != 1 or len({each.endswith(" Z") for each in self.geometry_types}) != 1:
            return "Unknown"
        is_multi = any(each.startswith("Multi") for each in self.geometry_types)
        has_z = any(each.endswith(" Z") for each in self.geometry_types)
        return f"{'2.5D ' if has_z else ''}{'Multi' if is_multi else ''}{plain.pop()}"


class ParquetReader:
    """Reads the features of some row groups."""

    def __init__(self, file: pq.ParquetFile, geo: GeoColumns, groups: range, first_fid: int, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._first_fid = first_fid
        self._geo = geo
        self._groups = groups
        fields = [field for field in file.schema_arrow if _is_attribute(field.name, geo)]
        self._names = [field.name for field in fields]
        self.crs, self.column, self.has_curved_edges = geo.crs, geo.primary, geo.has_curved_edges
        self.geometry_type = geo.geometry_type
        self.count: int | None = sum(file.metadata.row_group(group).num_rows for group in groups)
        self.fields = pa.schema(map(_plain, fields))

    def batches(self) -> Iterator[SourceBatch]:
        """Yield the features; `Rejected` when they take much more room than the file: equal values are written once."""
        first, size = self._first_fid, 0
        with telling_errors():
            names = [*self._names, self._geo.primary]
            read = self._file.iter_batches(1, row_groups=list(self._groups), columns=names, use_threads=False)
            for batch in read:
                columns = [batch.column(name) for name in self._names]
                values = [column.cast(field.type) for column, field in zip(columns, self.fields, strict=True)]
                attributes = with_columns(batch, values, self.fields)
                wkb = _wkb(batch.column(self._geo.primary), self._geo, first)
                first += len(wkb)
                read_now = attributes.nbytes + wkb.nbytes
                size += read_now + ROW_BYTES * len(wkb)
                if size > self._max_bytes:
                    what = f"The features of the file take more than {self._max_bytes // 1024**2} MiB."
                    raise rejected(Code.DECOMPRESSION_BOMB, what)
                self._file.reader.set_batch_size(_next_rows(len(wkb), read_now))
                yield SourceBatch(attributes, wkb)


def _next_rows(rows: int, size: int) -> int:
    """Tell how many rows are read next, after so many of that size.

    What a file says of its size tells nothing: values that repeat are written once. So it begins with few.
    """
    fitting = BATCH_BYTES * rows // max(1, size)
    return max(1, min(BATCH_ROWS, FASTEST_GROWTH * rows, fitting))


@contextmanager
def open_parquet(file: SourceFile, chunk: Chunk | None = None, first_fid: int = 1) -> Iterator[ParquetReader]:
    """Open a file, or a chunk of its row groups, whose first row has this number."""
    with _opened(file) as opened:
        with telling_errors():
            geo = _geo_columns(opened)
            groups = range(opened.metadata.num_row_groups)
            if chunk is not None and chunk.begin is not None and chunk.end is not None:
                groups = groups[chunk.begin : chunk.end]
            reader = ParquetReader(opened, geo, groups, first_fid, max(FREE_BYTES, MAX_RATIO * file.state().size))
        yield reader


def declared(file: SourceFile) -> tuple[Declared, list[Finding]]:
    """Tell what a file says of itself."""
    with open_parquet(file) as reader:
        found = Declared(layer=file.stem, crs=reader.crs, field_count=len(reader.fields))
        return found, [_curved_edges(reader.column)] if reader.has_curved_edges else []


def _curved_edges(column: str) -> Finding:
    return finding(Code.CURVED_EDGES, "The edges between vertices follow the globe, not the map.", f"column {column}")


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
    """Find the column of geometries: by the metadata of GeoParquet, by Parquet's own types, or by those of GeoArrow."""
    found = _of_metadata(file) or _of_parquet_types(file) or _of_arrow_types(file)
    if found is None:
        what = "The file is Parquet, but has no column of geometries: neither GeoParquet metadata nor a geometry type."
        raise rejected(Code.NOT_A_VECTOR, what)
    _check_column(file.schema_arrow, found)
    return found


def _of_metadata(file: pq.ParquetFile) -> GeoColumns | None:
    text = (file.metadata.metadata or {}).get(b"geo")
    if text is None:
        return None
    geo: Any = None
    try:
        geo = json.loads(text)
        primary, columns = str(geo["primary_column"]), geo["columns"]
        described = dict(columns[primary])
        covering = (described.get("covering") or {}).get("bbox") or {}
        others = {*map(str, columns), *(str(path[0]) for path in covering.values())} - {primary}
        types = described.get("geometry_types", described.get("geometry_type")) or []  # the latter until 0.4
        names = frozenset(map(str, [types] if isinstance(types, str) else types))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise _unreadable_metadata(geo) from None
    crs = _crs(described["crs"], file, primary) if "crs" in described else WGS84
    encoding = str(described.get("encoding", _WKB))
    return GeoColumns(primary, encoding, crs, names, described.get("edges") == "spherical", frozenset(others))


def _unreadable_metadata(geo: Any) -> Rejected:
    version = str(geo.get("version", geo.get("schema_version", "")))[:20] if isinstance(geo, dict) else ""
    if version and not version.startswith(_KNOWN_VERSIONS):
        return rejected(Code.UNSUPPORTED_VERSION, f"The file is GeoParquet {version}.", "geo")
    return rejected(Code.CORRUPT, "The GeoParquet metadata of the file cannot be read.", "geo")


def _of_parquet_types(file: pq.ParquetFile) -> GeoColumns | None:
    """Find columns of Parquet's own types GEOMETRY and GEOGRAPHY; the first is the primary one."""
    columns = (file.schema.column(place) for place in range(len(file.schema)))
    found = [each for each in columns if each.logical_type.type in _PARQUET_TYPES and "." not in each.path]
    if not found:
        return None
    name, kind = found[0].path, json.loads(found[0].logical_type.to_json())
    crs = _crs(kind["crs"], file, name) if kind.get("crs") else WGS84
    others = frozenset(each.path for each in found[1:])
    return GeoColumns(name, _WKB, crs, frozenset(), found[0].logical_type.type == "GEOGRAPHY", others)


def _of_arrow_types(file: pq.ParquetFile) -> GeoColumns | None:
    """Find columns of the extension types of GeoArrow; one without a CRS has none."""
    fields = [field for field in file.schema_arrow if _extension(field).startswith(_GEOARROW)]
    if not fields:
        return None
    try:
        described = json.loads((fields[0].metadata or {}).get(_EXTENSION_METADATA) or b"{}")
    except (ValueError, RecursionError):
        raise rejected(Code.CORRUPT, "The GeoArrow metadata cannot be read.", f"column {fields[0].name}") from None
    described = described if isinstance(described, dict) else {}
    crs = _crs(described.get("crs"), file, fields[0].name)
    others = frozenset(field.name for field in fields[1:])
    has_curved_edges = described.get("edges", "planar") != "planar"
    return GeoColumns(fields[0].name, _extension(fields[0]), crs, frozenset(), has_curved_edges, others)


def _extension(field: pa.Field) -> str:
    return str((field.metadata or {}).get(_EXTENSION_NAME, b""), errors="replace")


def _crs(given: Any, file: pq.ParquetFile, column: str) -> str | None:
    """Return a CRS as a code or WKT: PROJJSON, WKT (GeoParquet until 0.4), a code, or what Parquet's types refer to."""
    where = f"column {column}"
    if given is None or isinstance(given, dict):
        return None if given is None else wkt_of_json(given, where)
    text = str(given).strip()
    scheme, _, rest = text.partition(":")
    if scheme == "srid" and rest.isdecimal():
        return f"EPSG:{int(rest)}" if int(rest) else None
    if scheme == "projjson":
        text = (file.metadata.metadata or {}).get(rest.encode(), b"").decode(errors="replace").strip()
    if text.upper() in _LONGITUDE_FIRST:
        return WGS84
    if not text.startswith("{"):
        return wkt_of_code(text.upper()) if is_name(text) else text
    try:
        return wkt_of_json(json.loads(text), where)
    except (ValueError, RecursionError):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, "The CRS of the column is not PROJJSON.", where) from None


def _check_column(schema: pa.Schema, geo: GeoColumns) -> None:
    where = f"column {geo.primary}"
    if schema.names.count(geo.primary) != 1:
        raise rejected(Code.CORRUPT, "The column of geometries is missing.", where)
    kind, encoding = _storage(schema.field(geo.primary).type), _plain_encoding(geo.encoding)
    if encoding not in geoarrow.LEVELS and encoding not in _TYPES_OF:
        what = f"The geometries have the encoding {geo.encoding[:40]}, which is not one of GeoParquet 1.1."
        raise rejected(Code.UNSUPPORTED_VERSION, what, where)
    if not _has_type_of(kind, encoding):
        what = f"The column has the type {str(kind)[:200]}, which is not that of the encoding {geo.encoding[:40]}."
        raise rejected(Code.CORRUPT, what, where)


def _has_type_of(kind: pa.DataType, encoding: str) -> bool:
    if encoding in geoarrow.LEVELS:
        return geoarrow.has_type_of(kind, encoding)
    return any(is_such(kind) for is_such in _TYPES_OF[encoding])


def _plain_encoding(name: str) -> str:
    return name.casefold().removeprefix(_GEOARROW).removeprefix("ogc.")


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


def _wkb(column: pa.Array, geo: GeoColumns, first: int) -> pa.Array:
    stored = column.storage if isinstance(column, pa.ExtensionArray) else column
    encoding = _plain_encoding(geo.encoding)
    if encoding in geoarrow.LEVELS:
        return geoarrow.write_wkb(stored, encoding)
    if encoding == "wkt":
        return wkt.write_wkb(stored.cast(pa.string()), f"column {geo.primary}", first)
    return stored if pa.types.is_binary(stored.type) else stored.cast(pa.large_binary())
