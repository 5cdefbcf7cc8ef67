"""The formats that partners send, each with what it can hold, how it is written, and what becomes of its kinds."""

import csv
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.parquet
import shapely
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry
from tests.integration.handlers.vector.tables import (
    KINDS,
    Abilities,
    Column,
    ServedNumber,
    Table,
    is_xml,
    single_precision,
)
from tests.integration.handlers.vector.writers import write_layer

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.sources.json_escapes import EscapeCheck

WHOLE: Final = {"integer", "smallint", "bigint"}
TYPES: Final[Mapping[str, set[str]]] = {
    "boolean": {"boolean"},
    "int16": {"smallint"},
    "int32": {"integer"},
    "int64": {"bigint"},
    "float32": {"real"},
    "float64": {"double precision"},
    "text": {"text"},
    "date": {"date"},
    "time": {"time without time zone"},
    "timestamp": {"timestamp without time zone"},
    "timestamptz": {"timestamp with time zone"},
    "binary": {"bytea"},
    "json": {"jsonb"},
    "integers": {"jsonb"},
    "texts": {"jsonb"},
}


@dataclass(frozen=True)
class Expected:
    """What is to come out of a column: one of these types, and these values as JSON has them."""

    types: set[str]
    values: list[Any]


class Format(ABC):
    """A format."""

    ending: ClassVar[str]
    able: ClassVar[Abilities]
    options: ClassVar[Mapping[str, str]] = {}
    types: ClassVar[Mapping[str, set[str]]] = {}  # where they are not those of all

    @abstractmethod
    def write(self, file: Path, table: Table) -> None:
        """Write a table."""

    def expected(self, column: Column) -> Expected:
        """Tell what becomes of a column."""
        types = {**TYPES, **self.types}[column.kind]
        return Expected(types, [None if value is None else self.value(column.kind, value) for value in column.values])

    def value(self, kind: str, value: Any) -> Any:
        """Tell how JSON has a value."""
        return as_json(kind, value)

    def is_own(self, field: str) -> bool:
        """Tell whether a field was written as a column, and not for the sake of the format."""
        return True

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        """Compare a value with what was served."""
        return is_same(kind, expected, found)


def as_json(kind: str, value: Any) -> Any:
    """Give a value as JSON has it."""
    match value:
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case float() if kind == "float32":
            return single_precision(value)
    return value


def is_same(kind: str, expected: Any, found: Any) -> bool:
    """Compare values, and that they are of one type; times are the same when they mean the same moment."""
    if expected is None or found is None:
        return expected is found
    if kind in {"timestamp", "timestamptz"}:
        one, other = datetime.fromisoformat(expected), datetime.fromisoformat(found)
        return one == other and (one.tzinfo is None) == (other.tzinfo is None)
    if kind == "time":
        return time.fromisoformat(expected) == time.fromisoformat(found)
    if kind in {"json", "integers", "texts"}:
        return bool(json.loads(json.dumps(expected)) == found)
    kind_found = float if isinstance(found, ServedNumber) else type(found)
    return type(expected) is kind_found and bool(expected == found)


def wkb_of(shapes: Sequence[BaseGeometry | None]) -> list[bytes | None]:
    return [None if shape is None else shapely.to_wkb(shape, output_dimension=4, flavor="iso") for shape in shapes]


def fields_of(table: Table) -> list[tuple[str, str, list[Any]]]:
    """Give the columns as GDAL's writer takes them."""
    return [(column.name, column.kind, _plain_values(column)) for column in table.columns]


def _plain_values(column: Column) -> list[Any]:
    if column.kind != "json":
        return column.values
    return [None if value is None else json.dumps(value) for value in column.values]


class GeoPackage(Format):
    """Has no times. SQLite tells no names apart by the case of plain letters."""

    ending = "gpkg"
    able = Abilities(
        is_dated_by_gdal=True,
        # GDAL's way to write a column with an empty name, or with that of its own two, is to fail.
        is_name=lambda name: name.strip(" ") != "" and name.lower() not in {"fid", "geom", "a geometry"},
        name_key=lambda name: "".join(letter.lower() if letter.isascii() else letter for letter in name),
    )
    types: ClassVar = {"time": {"text"}}

    def write(self, file: Path, table: Table) -> None:
        write_layer(
            file, "GPKG", fields_of(table), wkb_of(table.shapes), geometry_type=table.geometry_type, SPATIAL_INDEX="NO"
        )

    def value(self, kind: str, value: Any) -> Any:
        return _clock(value) if kind == "time" else as_json(kind, value)

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        return bool(expected == found) if kind == "time" else is_same(kind, expected, found)


def _clock(value: time) -> str:
    """Write a time as GDAL does: with thousandths of a second where there are any."""
    return value.isoformat("milliseconds" if value.microsecond else "seconds")


class FlatGeobuf(Format):
    """Has date-times alone: GDAL writes dates as such, times as texts, and lists and JSON as texts. A layer of several
    types is written without heights. It has no index, which would put the rows in another order.
    """

    ending = "fgb"
    able = Abilities(
        is_dated_by_gdal=True,
        kinds=[kind for kind in KINDS if kind not in {"integers", "texts"}],
        is_name=lambda name: name.lower() not in {"", "fid"},  # GDAL would write the latter as the number of a feature
        name_key=str.lower,  # GDAL would write the values of one into the other
        mixes_heights=False,
    )
    types: ClassVar = {"time": {"text"}, "json": {"text", "jsonb"}, "date": {"timestamp without time zone", "date"}}

    def write(self, file: Path, table: Table) -> None:
        write_layer(
            file,
            "FlatGeobuf",
            fields_of(table),
            wkb_of(table.shapes),
            geometry_type=_strict_type(table),
            SPATIAL_INDEX="NO",
        )

    def value(self, kind: str, value: Any) -> Any:
        return _clock(value) if kind == "time" else as_json(kind, value)

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        if kind == "json" and isinstance(found, str):
            return bool(json.loads(found) == json.loads(json.dumps(expected)))
        if kind == "date" and found is not None:
            return bool(str(found).removesuffix("T00:00:00") == expected)
        return bool(expected == found) if kind == "time" else is_same(kind, expected, found)


def _strict_type(table: Table) -> str:
    """Give the type of a layer that takes no single shapes among those of several parts."""
    types = {shape.geom_type for shape in table.shapes if shape is not None}
    return table.geometry_type if len(types) == 1 else "Unknown"


class Shapefile(Format):
    """Has texts of 254 bytes without space around them, of which none is null; numbers of up to 18 digits, of one
    width whatever their size; no times, bytes or lists; and one kind of shape. Polygons always have parts.
    """

    ending = "zip"
    _MOST: Final = 10**17 - 1
    able = Abilities(
        kinds=["boolean", "int16", "int32", "text", "date"],
        extra={
            "long": st.integers(-_MOST, _MOST) | st.sampled_from([_MOST, -_MOST, 2**53 + 1]),
            "decimal": st.integers(-(10**12), 10**12).map(lambda number: number / 1000),
        },
        # A name has 10 bytes, and what GDAL makes of longer ones, and of a colon, is the writer's matter.
        is_name=lambda name: 0 < len(name.encode()) <= 10 and name == name.strip() and is_xml(name) and ":" not in name,
        is_text=lambda text: text == text.strip() and len(text.encode()) <= 254,
        name_key=lambda name: name.upper(),
        mixes_shapes=False,
        fewest_columns=1,  # GDAL makes one up where there is none
    )
    types: ClassVar = {"int16": WHOLE, "int32": WHOLE, "long": {"bigint"}, "decimal": {"double precision"}}

    def write(self, file: Path, table: Table) -> None:
        folder = file.parent / file.stem
        shapes, kind = table.shapes, table.geometry_type
        if kind.startswith("MultiPoint"):  # a type of its own, beside points
            shapes = [None if shape is None else shapely.MultiPoint(shapely.get_parts(shape)) for shape in shapes]
        fields = [
            (name, {"long": "int64", "decimal": "float64"}.get(kind, kind), values)
            for name, kind, values in fields_of(table)
        ]
        write_layer(folder / "a.shp", "ESRI Shapefile", fields, wkb_of(shapes), geometry_type=kind, ENCODING="UTF-8")
        zipped(file, sorted(folder.iterdir()))

    def value(self, kind: str, value: Any) -> Any:
        return (value or None) if kind == "text" else as_json(kind, value)  # an empty text is none


def zipped(file: Path, parts: Sequence[Path]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in parts:
            archive.write(part, part.name)


class GeoJson(Format):
    """Has no bytes, and one kind of whole number and of number; dates and times are texts that GDAL recognises."""

    ending = "geojson"
    able = Abilities(
        kinds=[kind for kind in KINDS if kind not in {"binary", "float32"}],
        # GDAL takes the largest whole number for a larger one that was cut, and reads 20 characters as a fraction.
        longest_integers=(1 - 10**18, 2**63 - 2),
    )
    types: ClassVar = {
        "int16": WHOLE,
        "int32": WHOLE,
        "int64": WHOLE,
        "time": {"time without time zone", "text"},
    }

    def write(self, file: Path, table: Table) -> None:
        content = {"type": "FeatureCollection", "features": features_of(table)}
        text = json.dumps(content)
        # What is misread would be refused.
        file.write_text(json.dumps(content, ensure_ascii=False) if is_misread(text) else text, "utf-8")


def features_of(table: Table) -> list[dict[str, Any]]:
    """Give the features as GeoJSON has them."""
    names = [column.name for column in table.columns]
    rows = zip(*(_json_values(column) for column in table.columns), strict=True) if names else [()] * len(table.shapes)
    return [
        {
            "type": "Feature",
            "properties": dict(zip(names, row, strict=True)),
            "geometry": None if shape is None else shapely.geometry.mapping(shape),
        }
        for row, shape in zip(rows, table.shapes, strict=True)
    ]


def _json_values(column: Column) -> list[Any]:
    return [None if value is None else as_json(column.kind, value) for value in column.values]


def is_misread(text: str) -> bool:
    """Tell whether a JSON text has an escape that is refused."""
    try:
        EscapeCheck().look(text.encode())
    except Rejected:
        return True
    return False


class GeoJsonLines(GeoJson):
    """One feature on each line."""

    ending = "geojsonl"

    def write(self, file: Path, table: Table) -> None:
        lines = (json.dumps(feature, ensure_ascii=False) for feature in features_of(table))
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


class GeoParquet(Format):
    """Holds all there is, and more."""

    ending = "parquet"
    _DECIMAL: Final = pa.decimal128(38, 9)
    _ARROW: Final = {
        "boolean": pa.bool_(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float32": pa.float32(),
        "float64": pa.float64(),
        "text": pa.string(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
        "binary": pa.binary(),
        "integers": pa.list_(pa.int64()),
        "texts": pa.list_(pa.string()),
        "large text": pa.large_string(),
        "dictionary": pa.dictionary(pa.int8(), pa.string()),
        "uint8": pa.uint8(),
        "uint32": pa.uint32(),
        "uint64": pa.uint64(),
        "decimal": _DECIMAL,
        "struct": pa.struct([("a", pa.int64()), ("b c", pa.list_(pa.string()))]),
        "milliseconds": pa.timestamp("ms"),
        "nanoseconds": pa.timestamp("ns"),
    }
    able = Abilities(
        kinds=[kind for kind in KINDS if kind != "json"],
        microseconds=1,
        is_name=lambda name: name != "a geometry",
        extra={
            "large text": st.text("aü🗺", max_size=5),
            "dictionary": st.sampled_from(["a", "b", ""]),
            "uint8": st.integers(0, 255),
            "uint32": st.integers(0, 2**32 - 1) | st.just(2**32 - 1),
            "uint64": st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
            # Twenty digits before the point are what is taken; more are refused.
            "decimal": st.integers(-(10**28), 10**28).map(lambda number: Decimal(number).scaleb(-9)),
            "struct": st.fixed_dictionaries(
                {"a": st.integers(-(2**63), 2**63 - 1), "b c": st.lists(st.text("aü", max_size=3), max_size=2)}
            ),
            "milliseconds": st.datetimes().map(
                lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
            ),
            "nanoseconds": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),  # noqa: DTZ001 - it has no zone
        },
    )
    types: ClassVar = {
        "large text": {"text"},
        "dictionary": {"text"},
        "uint8": WHOLE,
        "uint32": {"bigint"},
        "uint64": {"numeric"},
        "decimal": {"numeric"},
        "struct": {"jsonb"},
        "milliseconds": {"timestamp without time zone"},
        "nanoseconds": {"timestamp without time zone"},
    }

    def write(self, file: Path, table: Table) -> None:
        arrays = [pa.array(column.values, self._ARROW[column.kind]) for column in table.columns]
        names = [column.name for column in table.columns]
        made = pa.Table.from_arrays([*arrays, pa.array(wkb_of(table.shapes), pa.binary())], [*names, "a geometry"])
        about = {"encoding": "WKB", "geometry_types": []}
        geo = {"version": "1.1.0", "primary_column": "a geometry", "columns": {"a geometry": about}}
        pa.parquet.write_table(made.replace_schema_metadata({"geo": json.dumps(geo)}), file, row_group_size=3)

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        if kind == "decimal" and None not in (expected, found):
            return bool(Decimal(found.text if isinstance(found, ServedNumber) else found) == expected)
        other = {"milliseconds": "timestamp", "nanoseconds": "timestamp", "struct": "json"}
        return is_same(other.get(kind, kind), expected, found)


ELEMENTS: Final = frozenset(
    {"id", "name", "description", "timestamp", "begin", "end", "altitudemode", "tessellate", "extrude"}
    | {"visibility", "draworder", "icon", "snippet", "geometry"}
)


class Kml(Format):
    """Has the kinds of a KML schema, and texts as XML has them; what is empty is none."""

    ending = "kml"
    _SCHEMA: Final = {"boolean": "bool", "int32": "int", "float64": "double", "text": "string"}
    able = Abilities(
        kinds=list(_SCHEMA),
        # GDAL makes columns of its own of these elements, and gives a name to what has none.
        is_name=lambda name: is_xml(name) and name == name.strip() != "" and name.lower() not in ELEMENTS,
        is_text=lambda text: is_xml(text) and text == text.strip(),
        name_key=str.lower,
    )
    types: ClassVar = {"boolean": {"boolean", *WHOLE}}

    def write(self, file: Path, table: Table) -> None:
        fields = "".join(
            f"<SimpleField name={quoteattr(column.name)} type={quoteattr(self._SCHEMA[column.kind])}/>"
            for column in table.columns
        )
        marks = "".join(self._mark(table, row) for row in range(len(table.shapes)))
        schema = f'<Schema name="s" id="s">{fields}</Schema>'
        text = f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document id="d">{schema}{marks}</Document></kml>'
        file.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', "utf-8")

    def _mark(self, table: Table, row: int) -> str:
        data = "".join(
            f"<SimpleData name={quoteattr(column.name)}>{escape(self._text(column.values[row]))}</SimpleData>"
            for column in table.columns
            if column.values[row] is not None
        )
        extended = f'<ExtendedData><SchemaData schemaUrl="#s">{data}</SchemaData></ExtendedData>'
        shape = table.shapes[row]
        return f"<Placemark>{extended}{'' if shape is None else kml_of(shape)}</Placemark>"

    def is_own(self, field: str) -> bool:
        return field.lower() not in ELEMENTS

    @staticmethod
    def _text(value: Any) -> str:
        return str(int(value)) if isinstance(value, bool) else str(value)

    def value(self, kind: str, value: Any) -> Any:
        return (value or None) if kind == "text" else value

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        if kind == "boolean":
            return bool(expected == found)
        return is_same(kind, expected, None if found == "" else found)


def kml_of(shape: BaseGeometry) -> str:
    """Write a shape as KML has it."""
    if shape.geom_type.startswith("Multi"):
        return f"<MultiGeometry>{''.join(map(kml_of, shape.geoms))}</MultiGeometry>"  # type: ignore[attr-defined]
    if isinstance(shape, shapely.Polygon):
        inner = "".join(f"<innerBoundaryIs>{_ring(ring)}</innerBoundaryIs>" for ring in shape.interiors)
        return f"<Polygon><outerBoundaryIs>{_ring(shape.exterior)}</outerBoundaryIs>{inner}</Polygon>"
    return f"<{shape.geom_type}>{_coordinates(shape)}</{shape.geom_type}>"


def _ring(ring: BaseGeometry) -> str:
    return f"<LinearRing>{_coordinates(ring)}</LinearRing>"


def _coordinates(shape: BaseGeometry) -> str:
    positions = " ".join(",".join(map(repr, map(float, position))) for position in shape.coords)
    return f"<coordinates>{positions}</coordinates>"


COORDINATES: Final = frozenset({"the shape", "x of it", "y of it"})


class CsvOfWkt(Format):
    """Has texts, and whoever reads them guesses: a value may come as what it looks like. What is empty is none."""

    ending = "csv"
    options: ClassVar = {"wkt_column": "the shape", "source_crs": "EPSG:4326"}
    able = Abilities(
        kinds=["boolean", "int32", "int64", "float64", "text", "date", "timestamp", "timestamptz"],
        # Control characters are what tells other files from texts.
        is_name=lambda name: name not in COORDINATES and name == name.strip() != "" and is_xml(name),
        is_text=lambda text: is_xml(text.replace("\n", "").replace("\t", "")),
    )
    guessed: Final = {"text", "boolean", "date", "double precision", *WHOLE, *TYPES["timestamp"], *TYPES["timestamptz"]}

    def write(self, file: Path, table: Table) -> None:
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(column.name for column in table.columns), *self.header()])
            for row, shape in enumerate(table.shapes):
                writer.writerow([*(_cell(column.values[row]) for column in table.columns), *self.cells(shape)])

    def header(self) -> list[str]:
        return ["the shape"]

    def is_own(self, field: str) -> bool:
        return field not in COORDINATES

    def cells(self, shape: BaseGeometry | None) -> list[str]:
        return ["" if shape is None else shapely.to_wkt(shape, rounding_precision=-1)]

    def expected(self, column: Column) -> Expected:
        return Expected(self.guessed, [_cell(value) or None for value in column.values])

    def is_same(self, kind: str, expected: Any, found: Any) -> bool:
        if expected is None or found in (expected, None):
            return found in (expected, "")
        return bool(
            self._read(kind, expected) == self._read(kind, str(found).lower() if kind == "boolean" else str(found))
        )

    @staticmethod
    def _read(kind: str, text: str) -> Any:
        if kind.startswith("timestamp"):
            return datetime.fromisoformat(text)
        return {"float64": float, "int32": int, "int64": int}.get(kind, str)(text)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


class CsvOfPoints(CsvOfWkt):
    """Has points, in two columns."""

    options: ClassVar = {"x_column": "x of it", "y_column": "y of it", "source_crs": "EPSG:4326"}
    able = Abilities(
        kinds=CsvOfWkt.able.kinds,
        is_name=CsvOfWkt.able.is_name,
        is_text=CsvOfWkt.able.is_text,
        shapes=["Point"],
        parts=[[1]],
        has_heights=False,
    )

    def header(self) -> list[str]:
        return ["x of it", "y of it"]

    def cells(self, shape: BaseGeometry | None) -> list[str]:
        return ["", ""] if shape is None else [repr(number) for number in shapely.get_coordinates(shape)[0].tolist()]


FORMATS: Final[tuple[Format, ...]] = (
    GeoPackage(),
    FlatGeobuf(),
    Shapefile(),
    GeoJson(),
    GeoJsonLines(),
    GeoParquet(),
    Kml(),
    CsvOfWkt(),
    CsvOfPoints(),
)
