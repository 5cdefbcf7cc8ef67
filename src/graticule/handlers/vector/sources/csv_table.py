"""Tables of texts that have a column for each coordinate, or one of WKT.

They are read by Arrow and not by GDAL, which knows no encoding but UTF-8 here, takes what lies beside a table for its
types and its CRS, and reads numbers with a leading zero as numbers.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import shapely

from graticule.handlers.blob_stream import blob_stream
from graticule.handlers.findings import Finding
from graticule.handlers.vector.described import WGS84, Opening
from graticule.handlers.vector.preparing.parsing import naming_feature
from graticule.handlers.vector.preparing.wkb import Writer, read
from graticule.handlers.vector.rejecting import Code, finding, rejected
from graticule.handlers.vector.sources.encodings import FALLBACK, UTF8, is_encoded, known_encoding, mark_of
from graticule.handlers.vector.sources.layer import Declared, SourceBatch, with_columns
from graticule.handlers.vector.sources.ogr import BATCH_ROWS
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.source import HEAD_BYTES, SourceFile
from graticule.handlers.vector.sources.texts import TYPES, TypeFinder, parsed
from graticule.handlers.vector.sources.wkt import SRID, without_blanks, write_wkb

# Arrow reads 32 blocks ahead, and holds a few as columns: 150 MB of rows take 250 MB with the smallest blocks, and
# 440 MB with the largest. No row may be longer than a block.
SMALLEST_BLOCK: Final = 1024**2
LARGEST_BLOCK: Final = 8 * 1024**2
DELIMITERS: Final = (",", ";", "\t", "|")
LONGITUDES: Final = ("longitude", "lon", "lng", "long")
LATITUDES: Final = ("latitude", "lat")
PAIRS: Final = ((LONGITUDES, LATITUDES), (("x",), ("y",)), (("easting",), ("northing",)))
GEOMETRIES: Final = ("wkt", "geom", "geometry", "the_geom", "shape")
_TYPES: Final = (
    *("point", "linestring", "polygon", "geometrycollection", "circularstring", "compoundcurve", "curvepolygon"),
    *("curve", "surface", "tin", "triangle", "polyhedralsurface"),
)
_WKT: Final = rf"(?i)^\s*(srid\s*=\s*[0-9]{{1,6}}\s*;\s*)?(multi)?({'|'.join(_TYPES)})\s*(z|m|zm)?\s*(\(|empty)"
_POINT: Final = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)  # how the WKB of a point begins
_POINT_BYTES: Final = 21
_MOST_TOLD: Final = 20  # columns
_Needed = Callable[[pa.Array], pa.BooleanScalar]  # of several answers: all of them, or any


@dataclass(frozen=True, slots=True)
class Table:
    """How a table of texts is written, and where its coordinates are: in the column of WKT, or in two."""

    file: SourceFile
    encoding: str
    delimiter: str
    names: list[str]
    header_rows: int  # with the empty ones before it
    block_bytes: int
    wkt: int | None = None
    xy: tuple[int, int] | None = None

    @property
    def attributes(self) -> list[int]:
        """The places of the columns that are attributes: all but the WKT."""
        return [place for place in range(len(self.names)) if place != self.wkt]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Give the rows as texts."""
        bad: list[Any] = []
        with _telling_errors(bad), closing(blob_stream(self.file.storage, self.file.path)) as stream:
            for block in pyarrow.csv.open_csv(stream, *self._options(bad)):
                for begin in range(0, block.num_rows, BATCH_ROWS):
                    yield block.slice(begin, BATCH_ROWS)

    def shapes(self, rows: pa.RecordBatch, first: int) -> pa.Array:
        """Return the geometries of rows, of which the first is that of this feature, as WKB."""
        if self.wkt is not None:
            return write_wkb(rows.column(self.wkt), f"column {self.names[self.wkt]}", first)
        x, y = (_numbers(rows.column(place), self.names[place], self.delimiter, first) for place in self.xy or ())
        return _points(x, y)

    def _options(self, bad: list[Any]) -> tuple[Any, Any, Any]:
        places = [str(place) for place in range(len(self.names))]
        return (
            pyarrow.csv.ReadOptions(
                use_threads=False,  # else many blocks are held at once
                block_size=self.block_bytes,
                column_names=places,
                skip_rows_after_names=self.header_rows,
                encoding=self.encoding,
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                invalid_row_handler=partial(_refused, bad),
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


class TableReader:
    """Reads the features of a table."""

    count: int | None = None

    def __init__(self, table: Table, types: dict[int, str], first_fid: int) -> None:
        self._table = table
        self._first_fid = first_fid
        self._types = [types[index] for index in range(len(table.attributes))]
        self.geometry_type = "Unknown" if table.xy is None else "Point"
        names = [table.names[place] for place in table.attributes]
        self.fields = pa.schema([(name, TYPES[kind]) for name, kind in zip(names, self._types, strict=True)])

    def batches(self) -> Iterator[SourceBatch]:
        """Give the features."""
        first = self._first_fid
        for rows in self._table.rows():
            texts = [rows.column(place) for place in self._table.attributes]
            given = zip(texts, self._types, self.fields.names, strict=True)
            attributes = with_columns(rows, [parsed(*each) for each in given], self.fields)
            yield SourceBatch(attributes, self._table.shapes(rows, first))
            first += len(rows)


def surveyed(file: SourceFile, options: SourceOptions) -> tuple[Declared, list[Finding]]:
    """Look through the whole of a table: its encoding, its types, and where its features are."""
    encoding, findings = _encoding(file, options.encoding)
    table = _located(_table(file, encoding, options), options)
    finders = [TypeFinder() for _ in table.attributes]
    reach, srids, first = np.zeros(2), set(), 1
    for rows in table.rows():
        for finder, place in zip(finders, table.attributes, strict=True):
            finder.look(rows.column(place))
        if table.wkt is not None:
            reach = np.fmax(reach, _reach(table.shapes(rows, first), first))
            srids |= _srids(rows.column(table.wkt))
        first += len(rows)
    crs = _srid_crs(srids, options.source_crs) or _usual_crs(table, sorted(reach.tolist()))
    return _declared(table, crs, finders), findings


@contextmanager
def open_table(file: SourceFile, opening: Opening, first_fid: int = 1) -> Iterator[TableReader]:
    """Open a table as it was found to be."""
    asked = SourceOptions(x_column=opening.x_column, y_column=opening.y_column, wkt_column=opening.wkt_column)
    plain = _table(file, opening.encoding or UTF8, asked)
    yield TableReader(_located(plain, asked), opening.types, first_fid)


def _encoding(file: SourceFile, wanted: str | None) -> tuple[str, list[Finding]]:
    head = file.storage.read(file.path, 0, HEAD_BYTES)
    encoding = known_encoding(wanted) if wanted else mark_of(head) or UTF8
    if is_encoded(file.storage.stream(file.path), encoding):
        return encoding, []
    if wanted:
        raise rejected(Code.UNKNOWN_ENCODING, f"The texts are not all in {wanted}.", "encoding")
    return FALLBACK, [finding(Code.OTHER_ENCODING, f"The texts are not in UTF-8; they are read as {FALLBACK}.")]


def _table(file: SourceFile, encoding: str, options: SourceOptions) -> Table:
    """Find out by the first rows how a table is written."""
    head = file.storage.read(file.path, 0, HEAD_BYTES)
    is_whole = len(head) < HEAD_BYTES
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    samples = {delimiter: _sample(text, delimiter, is_whole=is_whole) for delimiter in DELIMITERS}
    usual = "\t" if file.path.casefold().endswith(".tsv") else ","

    def fitness(delimiter: str) -> tuple[bool, bool, bool, int, bool]:
        sample = samples[delimiter]
        has_place = _has_place(sample.names, options)
        is_fit = has_place and sample.is_even
        return is_fit, has_place, sample.is_even, len(sample.names), delimiter == usual

    delimiter = max(DELIMITERS, key=fitness)
    return Table(
        file, encoding, delimiter, samples[delimiter].names, samples[delimiter].header_rows, _block_bytes(file)
    )


def _block_bytes(file: SourceFile) -> int:
    """Give a size that the longest line fits into; a row of several lines may be longer still."""
    longest = line = 0
    for piece in file.storage.stream(file.path):
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n"))
        if len(ends):
            longest = max(longest, line + int(ends[0]), int(np.diff(ends).max(initial=0)))
        line = len(piece) - int(ends[-1]) if len(ends) else line + len(piece)
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, 2 * max(longest, line)))


class _Sample(NamedTuple):
    """The first rows of a table, as one delimiter divides them."""

    names: list[str]
    header_rows: int
    is_even: bool  # all rows have as many values as there are names


def _sample(text: str, delimiter: str, *, is_whole: bool) -> _Sample:
    """Find the names in the first row that is not empty, and look whether the rows after it are like it."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        raise rejected(Code.UNREADABLE_ROW, "The first rows of the table cannot be read.", "row 1") from None
    number, header = next(((number, row) for number, row in enumerate(rows, 1) if row), (1, []))
    others = [row for row in rows[number : None if is_whole else -1] if row]  # the last may be cut
    is_even = all(len(row) == len(header) for row in others)
    return _Sample([name.strip() for name in header], number, is_even)


def _has_place(names: list[str], options: SourceOptions) -> bool:
    """Return whether columns that may have coordinates are among these names."""
    if options.wkt_column is not None:
        return options.wkt_column in names
    if options.x_column is not None or options.y_column is not None:
        return {options.x_column, options.y_column} <= {*names}
    plain = {name.casefold() for name in names}
    return not plain.isdisjoint(GEOMETRIES) or any(plain & {*xs} and plain & {*ys} for xs, ys in PAIRS)


def _located(table: Table, options: SourceOptions) -> Table:
    """Find the columns of the coordinates: those that are named, or else those with the usual names."""
    if options.wkt_column is not None:
        return replace(table, wkt=_place(table, options.wkt_column))
    if options.x_column is not None and options.y_column is not None:
        return replace(table, xy=(_place(table, options.x_column), _place(table, options.y_column)))
    if options.x_column is not None or options.y_column is not None:
        raise rejected(Code.NO_COORDINATES, "Only one of x_column and y_column is named.", "columns")
    found = _usual_wkt(table, pc.all) or _usual_pair(table) or _usual_wkt(table, pc.any)
    if found is None:
        raise rejected(Code.NO_COORDINATES, f"No column has coordinates; there are: {_told(table)}.", "columns")
    return found


def _place(table: Table, name: str) -> int:
    if name not in table.names:
        raise rejected(Code.NO_COORDINATES, f"There is no column {name[:100]!r}; there are: {_told(table)}.", "columns")
    return table.names.index(name)


def _told(table: Table) -> str:
    return ", ".join(table.names[:_MOST_TOLD])


def _usual_wkt(table: Table, needed: _Needed) -> Table | None:
    plain = [name.casefold() for name in table.names]
    for name in GEOMETRIES:
        if name in plain and _is_wkt(table, plain.index(name), needed):
            return replace(table, wkt=plain.index(name))
    return None


def _is_wkt(table: Table, place: int, needed: _Needed) -> bool:
    """Tell whether all or any of the first values that a column has are WKT."""
    for rows in table.rows():
        values = without_blanks(rows.column(place)).drop_null()
        if len(values):
            return bool(needed(pc.match_substring_regex(values, _WKT)).as_py())
    return False


def _usual_pair(table: Table) -> Table | None:
    plain = [name.casefold() for name in table.names]
    for xs, ys in PAIRS:
        x, y = next((name for name in xs if name in plain), None), next((name for name in ys if name in plain), None)
        if x is not None and y is not None:
            return replace(table, xy=(plain.index(x), plain.index(y)))
    return None


def _declared(table: Table, crs: str | None, finders: list[TypeFinder]) -> Declared:
    x, y = _pair(table)
    names = [table.names[place] for place in table.attributes]
    return Declared(
        layer=table.file.stem,
        crs=crs,
        field_count=len(finders),
        types={place: finder.found for place, finder in enumerate(finders)},
        mixed_zones=[name for name, finder in zip(names, finders, strict=True) if finder.has_mixed_zones],
        encoding=table.encoding,
        x_column=x,
        y_column=y,
        wkt_column=None if table.wkt is None else table.names[table.wkt],
    )


def _pair(table: Table) -> tuple[str | None, str | None]:
    x, y = table.xy or (None, None)
    return (None, None) if x is None or y is None else (table.names[x], table.names[y])


def _srids(column: pa.Array) -> set[str]:
    """Give the numbers of CRSs that stand before WKT, as PostGIS writes it; "0" for none."""
    texts = without_blanks(column).drop_null()
    found = pc.struct_field(pc.extract_regex(texts, SRID), "srid")
    return set(pc.fill_null(pc.unique(found), "0").to_pylist())


def _srid_crs(srids: set[str], wanted: str | None) -> str | None:
    if len(srids) > 1 and wanted is None:
        what = f"The geometries have several SRIDs: {', '.join(sorted(srids)[:_MOST_TOLD])}."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, "SRID")
    return next((f"EPSG:{srid}" for srid in srids if int(srid)), None) if len(srids) == 1 else None


def _usual_crs(table: Table, reach: list[float]) -> str | None:
    """Give WGS 84 when columns are called after longitude and latitude, or WKT can be nothing else."""
    x, y = _pair(table)
    if x is not None and y is not None:
        return WGS84 if x.casefold() in LONGITUDES and y.casefold() in LATITUDES else None
    lower, higher = reach
    return WGS84 if lower <= 90 and higher <= 180 else None


def _reach(column: pa.Array, first: int) -> Any:
    """Give how far both coordinates are from 0; they are no numbers when nothing has a place."""
    values = column.to_numpy(zero_copy_only=False)
    try:
        shapes = shapely.from_wkb(values, on_invalid="ignore")
    except (NotImplementedError, shapely.errors.GEOSException):  # a curve, or a surface of many faces
        shapes = np.array(
            [None if value is None else _shape(value, first + place) for place, value in enumerate(values)]
        )
    return np.abs(shapely.total_bounds(shapes)).reshape(2, 2).max(axis=0)


def _shape(value: bytes | None, number: int) -> Any:
    if value is None:
        return None
    with naming_feature(number):
        geometry = read(value)
    written = Writer(has_z=geometry.has_z, has_m=geometry.has_m).written_or_empty(geometry)
    return shapely.from_wkb(written, on_invalid="ignore")


def _numbers(column: pa.Array, name: str, delimiter: str, first: int) -> pa.Array:
    """Give coordinates as numbers; where no comma parts columns, one may stand before decimals."""
    texts = without_blanks(column)
    texts = texts if delimiter == "," else pc.replace_substring(texts, ",", ".")
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        place, text = next((place, each) for place, each in enumerate(texts.to_pylist()) if not _is_number(each))
        what = f"The value {str(text)[:100]!r} of feature {first + place} is not a number."
        raise rejected(Code.UNREADABLE_ROW, what, f"feature {first + place}, column {name}") from None


def _is_number(text: str | None) -> bool:
    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _points(x: pa.Array, y: pa.Array) -> pa.Array:
    """Write points as WKB; one that lacks a coordinate is none."""
    wkb = np.empty((len(x), _POINT_BYTES), np.uint8)
    wkb[:, : len(_POINT)] = _POINT
    pairs = np.column_stack([pc.fill_null(each, math.nan).to_numpy(zero_copy_only=False) for each in (x, y)])
    wkb[:, len(_POINT) :] = pairs.astype("<f8").view(np.uint8)
    kind = pa.binary(_POINT_BYTES)
    points = pa.Array.from_buffers(kind, len(x), [None, pa.py_buffer(wkb)]).cast(pa.binary())
    return pc.if_else(pc.and_(pc.is_valid(x), pc.is_valid(y)), points, None)


def _refused(bad: list[Any], row: Any) -> str:
    bad.append(row)
    return "error"


@contextmanager
def _telling_errors(bad: list[Any]) -> Iterator[None]:
    """Turn what Arrow says of a table into its rejection; rows that it refuses are noted."""
    try:
        yield
    except (pa.ArrowException, UnicodeError) as error:
        if bad:
            row = bad[0]
            what = f"A row has {row.actual_columns} values, but the header has {row.expected_columns}: {row.text}"
            raise rejected(Code.UNREADABLE_ROW, what, f"row {row.number}") from None
        if "straddling" in str(error):
            what = f"A row has more than {LARGEST_BLOCK // 1024**2} MiB, or a quotation mark has no end."
            raise rejected(Code.TOO_LARGE_FEATURE, what) from None
        raise rejected(Code.CORRUPT, "The table cannot be read to the end.") from error
