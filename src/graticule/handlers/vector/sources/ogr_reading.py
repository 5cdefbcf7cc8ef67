"""Layers that GDAL reads. Imports GDAL: only for where a handler runs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyogrio
import pyogrio.raw
from pyogrio.errors import DataLayerError, DataSourceError, GeometryError

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Opening
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources import geopackage
from graticule.handlers.vector.sources.choosing import listed
from graticule.handlers.vector.sources.layer import Declared, SourceBatch
from graticule.handlers.vector.sources.ogr import BATCH_BYTES, BATCH_ROWS, dataset_name, only_driver, open_options
from graticule.handlers.vector.sources.source import Kind
from graticule.handlers.vector.sources.texts import (
    TEXT,
    TYPES,
    ZoneFinder,
    check_whole_numbers,
    has_raw_texts,
    parsed,
    with_decoded_texts,
    with_short_numbers,
    without_cut_characters,
)

_DATE_TIME, _STRING = "OFTDateTime", "OFTString"
_GEOMETRIES: Final = {b"ogc.wkb", b"geoarrow.wkb"}  # how a stream marks its column of geometries
_OPTIONAL: Final = {  # fields that GDAL gives to all features of a format; of GPX, these are all fields
    Kind.KML: ("id", "Name", "description", "timestamp", "begin", "end"),
    Kind.GPX: (),
}
_DRAWING: Final = {"altitudeMode", "tessellate", "extrude", "visibility", "drawOrder", "icon"}
_MAY_BE_EMPTY: Final = {Kind.KML, Kind.GPX, Kind.TOPOJSON, Kind.FILEGDB}
_TEXTS: Final = {Kind.GEOJSON, Kind.GEOJSON_LINES, Kind.JSON_FG, Kind.TOPOJSON, Kind.GML, Kind.GPX, Kind.KML}
MAX_COUNTED_LAYERS: Final = 20  # in which features are looked for: the file is read for each of them
MAX_GML_LAYERS: Final = 100
_EXTENSION: Final = b"ARROW:extension:name"

MAX_JSON_TEXT: Final = 10_000_000  # characters that GDAL's parser takes
_JSON_FAULT: Final = re.compile(
    r"At line \d+, character \d+: (?P<fault>(?:Unrecognized number: (?P<number>\S{1,40}))?[^\n]{0,100})"
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is read of a layer: what a filter leaves, or so many features from a place on; or all."""

    where: str | None = None
    begin: int = 0
    count: int | None = None


class OgrReader:
    """Reads a layer by GDAL's stream of Arrow batches."""

    def __init__(self, meta: dict[str, Any], stream: pa.RecordBatchReader, opening: Opening, part: Part) -> None:
        self.geometry_type = str(meta["geometry_type"])
        self.count: int | None = part.count
        self._most = part.count
        self._stream = stream
        self._types = opening.types
        self._kind = opening.kind
        self._encoding = opening.encoding
        self._geometry = _geometry_place(stream.schema)
        places = [place for place in range(len(stream.schema)) if place != self._geometry]
        self._places = places if opening.fields is None else [places[place] for place in opening.fields]
        self.fields = pa.schema([self._field(index, place) for index, place in enumerate(self._places)])

    def batches(self) -> Iterator[SourceBatch]:
        """Give the features."""
        with telling_errors():
            for batch in self._wanted():
                yield SourceBatch(self._attributes(batch), _without_blanks(batch.column(self._geometry)))

    def _wanted(self) -> Iterator[pa.RecordBatch]:
        left = self._most
        for batch in self._stream:
            yield batch if left is None else batch.slice(0, left)
            left = None if left is None else left - batch.num_rows
            if left is not None and left <= 0:
                return

    def _field(self, index: int, place: int) -> pa.Field:
        field = self._stream.schema.field(place)
        return field.with_type(TYPES[self._types[index]]) if index in self._types else field

    def _attributes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen = batch.select(self._places)
        for index, name in self._types.items():
            field = self.fields.field(index)
            chosen = chosen.set_column(index, field, parsed(chosen.column(index), name, field.name))
        if self._kind is Kind.GEOJSON_LINES:
            check_whole_numbers(chosen)
        if self._kind in {Kind.GEOJSON, Kind.GEOJSON_LINES}:
            return with_short_numbers(chosen)
        if self._kind is Kind.MAPINFO and self._encoding is not None:
            return with_decoded_texts(chosen, self._encoding)
        return without_cut_characters(chosen) if self._kind is Kind.SHAPEFILE else chosen


def _without_blanks(wkb: pa.Array) -> pa.Array:
    """Return geometries with null for those that GDAL cannot write as WKB, such as a lone ring in KML."""
    is_blank = pc.equal(pc.binary_length(wkb), 0)
    return pc.if_else(is_blank, pa.scalar(None, wkb.type), wkb) if pc.any(is_blank).as_py() else wkb


@contextmanager
def open_ogr(file: str, layer: str | None, opening: Opening, part: Part) -> Iterator[OgrReader]:
    """Open a layer; date-times come as texts, for GDAL's own forget the zone of some."""
    entered = pyogrio.raw.open_arrow(
        dataset_name(file, opening.kind),
        layer=layer,
        use_pyarrow=True,
        batch_size=BATCH_ROWS,
        datetime_as_string=True,
        where=part.where,
        skip_features=part.begin,
        **_options(file, opening.kind, opening.encoding),
    )
    with telling_errors(), only_driver(opening.kind):
        meta, stream = entered.__enter__()
    try:
        yield OgrReader(meta, stream, opening, part)
    finally:
        entered.__exit__(None, None, None)


def declared(file: str, kind: Kind, layer: str | None, encoding: str | None = None) -> Declared:
    """Tell what GDAL knows of a layer; `Rejected` when it cannot be read."""
    info = _info(file, kind, layer, encoding)
    name = str(info["layer_name"])
    if info["geometry_type"] is None:
        raise rejected(Code.NO_GEOMETRY, "The layer has no geometry.", f"layer {name}")
    names = list(map(str, info["fields"]))
    kept = _filled(file, kind, name, names) if kind in _OPTIONAL else None
    places = range(len(names)) if kept is None else kept
    date_times = [index for index, place in enumerate(places) if info["ogr_types"][place] == _DATE_TIME]
    found = _zones(file, kind, name, names, [places[index] for index in date_times]) if date_times else []
    return Declared(
        layer=name,
        crs=info["crs"],
        field_count=len(places),
        fields=kept,
        types=dict(zip(date_times, found, strict=True)),
        mixed_zones=[names[places[index]] for index, kind in zip(date_times, found, strict=True) if kind == TEXT],
        encoding=encoding,
    )


def is_undecoded(file: str, kind: Kind) -> bool:
    """Return whether GDAL gives texts that are not in UTF-8, as it does where a MapInfo table declares no charset."""
    info = _info(file, kind, None, None)
    texts = [place for place, ogr_type in enumerate(info["ogr_types"]) if ogr_type == _STRING]
    batches = _columns(file, kind, str(info["layer_name"]), list(map(str, info["fields"])), texts)
    return bool(texts) and any(map(has_raw_texts, batches))


def feature_count(file: str, layer: str | None, opening: Opening) -> int | None:
    """Tell how many features a layer announces, if it does so."""
    with telling_errors(), only_driver(opening.kind):
        options = _options(file, opening.kind, opening.encoding)
        info = pyogrio.read_info(dataset_name(file, opening.kind), layer=layer, **options)
    count = int(info["features"])
    return count if count >= 0 else None


def layer_names(file: str, kind: Kind) -> list[str]:
    """Return the names of the layers with a geometry column."""
    if kind is Kind.GML:
        return _gml_layers(file)
    try:
        with only_driver(kind):
            listed = pyogrio.list_layers(dataset_name(file, kind))
    except GeometryError:
        raise _unsupported_geometry() from None
    except (DataSourceError, DataLayerError) as error:
        raise _unreadable(kind, error) from error
    return [str(name) for name, geometry_type in listed if geometry_type is not None]


def filled_layers(file: str, kind: Kind, names: list[str]) -> list[str]:
    """Return the layers that have features; a KML folder is a layer, full or empty."""
    if kind not in _MAY_BE_EMPTY or len(names) <= 1:
        return names
    filled = [name for name in names[:MAX_COUNTED_LAYERS] if _count(file, kind, name)] + names[MAX_COUNTED_LAYERS:]
    if not filled:
        raise rejected(Code.NO_FEATURES, f"None of the {len(names)} layers has a feature: {listed(names)}.")
    return filled


def _gml_layers(file: str) -> list[str]:
    """List layers one by one: pyogrio's list takes no options, and GDAL would write a .gfs file beside the source."""
    found = []
    for index in range(MAX_GML_LAYERS):
        try:
            with only_driver(Kind.GML):
                info = pyogrio.read_info(dataset_name(file, Kind.GML), layer=index, **open_options(Kind.GML))
        except GeometryError:
            raise _unsupported_geometry() from None
        except DataLayerError:  # there are no more
            break
        except DataSourceError as error:
            raise _unreadable(Kind.GML, error) from error
        found.append(info)
    return [str(info["layer_name"]) for info in found if info["geometry_type"] is not None]


def _count(file: str, kind: Kind, layer: str) -> int:
    with telling_errors(), only_driver(kind):
        return int(pyogrio.read_info(dataset_name(file, kind), layer=layer, force_feature_count=True)["features"])


def _options(file: str, kind: Kind, encoding: str | None = None) -> dict[str, str]:
    return open_options(kind, encoding) | (geopackage.crs_options(file) if kind is Kind.GEOPACKAGE else {})


@contextmanager
def telling_errors() -> Iterator[None]:
    """Turn what GDAL and Arrow say of a file into its rejection."""
    try:
        yield
    except pa.ArrowMemoryError:
        what = f"A feature has more than {BATCH_BYTES // 1024**2} MiB."
        raise rejected(Code.TOO_LARGE_FEATURE, what) from None
    except GeometryError:
        raise _unsupported_geometry() from None
    except (DataSourceError, DataLayerError) as error:
        raise _rejection_of(error) from error
    except UnicodeError:
        raise rejected(Code.NOT_UTF8, "The name of a field is not in UTF-8.") from None
    except (pa.ArrowException, OSError) as error:
        raise rejected(Code.CORRUPT, "The features cannot be read to the end.") from error


def _info(file: str, kind: Kind, layer: str | None, encoding: str | None) -> dict[str, Any]:
    try:
        with only_driver(kind):
            info: dict[str, Any] = pyogrio.read_info(
                dataset_name(file, kind),
                layer=layer,
                **_options(file, kind, encoding),
            )
    except GeometryError:
        raise _unsupported_geometry() from None
    except (DataSourceError, DataLayerError) as error:
        raise _unreadable(kind, error) from error
    except UnicodeError:
        raise rejected(Code.NOT_UTF8, "The name of a field is not in UTF-8.") from None
    except IndexError:  # pyogrio's, when GDAL tells a type that it does not know
        raise rejected(Code.CORRUPT, "The file cannot be read.") from None
    if info["driver"] != kind:
        raise rejected(Code.NOT_A_VECTOR, f"The file is no {kind.value} file, though it begins like one.")
    return info


def _unreadable(kind: Kind, error: Exception) -> Rejected:
    if kind in _TEXTS and "not recognized" in str(error):  # JSON or XML of another sort
        return rejected(Code.NOT_A_VECTOR, f"The file begins like {kind.value}, but is not a {kind.value} file.")
    return _rejection_of(error)


def _rejection_of(error: Exception) -> Rejected:
    """Say what GDAL's parser of JSON found, as far as it says so; the place it names is not one in the file."""
    found = _JSON_FAULT.search(str(error))
    if found is None:
        return rejected(Code.CORRUPT, "The file cannot be read.")
    if found["fault"].startswith("Too many characters"):
        return rejected(Code.UNFIT_VALUE, f"A text of the file has more than {MAX_JSON_TEXT:,} characters.")
    if found["number"]:
        return rejected(Code.UNFIT_VALUE, f"The file has a number that JSON does not allow: {found['number']}.")
    return rejected(Code.CORRUPT, f"The file is not valid JSON: {found['fault']}.")


def _unsupported_geometry() -> Rejected:
    what = "The layer has geometries of a type that is not a point, line, polygon or curve, such as a triangle."
    return rejected(Code.UNSUPPORTED_GEOMETRY, what)


def _zones(file: str, kind: Kind, layer: str, names: list[str], places: list[int]) -> list[str]:
    """Find out of each field of date-times whether they have a zone: nothing but the values tells it."""
    if kind is Kind.GEOPACKAGE:
        known = geopackage.zones(file, layer, [names[place] for place in places])  # many times as fast
        if known is not None:
            return known
    finders = [ZoneFinder() for _ in places]
    for batch in _columns(file, kind, layer, names, places):
        for finder, column in zip(finders, batch.columns, strict=True):
            finder.look(column)
    return [finder.found for finder in finders]


def _columns(file: str, kind: Kind, layer: str, names: list[str], places: list[int]) -> Iterator[pa.RecordBatch]:
    """Read nothing but some fields."""
    is_clear = len({name.casefold() for name in names}) == len(names)  # GDAL would take `AT` for `at`
    with (
        telling_errors(),
        only_driver(kind),
        pyogrio.raw.open_arrow(
            dataset_name(file, kind),
            layer=layer,
            columns=[names[place] for place in places] if is_clear else None,
            read_geometry=False,
            use_pyarrow=True,
            batch_size=BATCH_ROWS,
            datetime_as_string=True,
            **_options(file, kind),
        ) as (_, stream),
    ):
        for batch in stream:
            yield batch if is_clear else batch.select(places)


def _filled(file: str, kind: Kind, layer: str, names: list[str]) -> list[int]:
    """Return the places of the fields of KML and GPX that are attributes.

    GDAL adds its own to each layer: how features are drawn, and what they may have and mostly have not.
    """
    asked = sorted({names.index(name) for name in _OPTIONAL[kind] or names if name in names})
    filled: set[int] = set()
    for batch in _columns(file, kind, layer, names, asked):
        filled.update(
            place for place, column in zip(asked, batch.columns, strict=True) if column.null_count < len(column)
        )
    return [
        place
        for place, name in enumerate(names)
        if not (kind is Kind.KML and name in _DRAWING) and (place in filled or place not in asked)
    ]


def _geometry_place(schema: pa.Schema) -> int:
    marked = [place for place, field in enumerate(schema) if (field.metadata or {}).get(_EXTENSION) in _GEOMETRIES]
    if not marked:
        raise rejected(Code.NO_GEOMETRY, "The layer has no geometry.")
    return marked[-1]
