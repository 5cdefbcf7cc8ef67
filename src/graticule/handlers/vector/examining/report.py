"""What is told of a source: the findings, the facts, and what its table is to be like.

Imports shapely and PROJ: only for where a handler runs.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self

import pyarrow as pa
from pydantic import JsonValue
from pydantic_core import to_json
from pyproj import CRS

from graticule.core.validation import MOST_FACT_BYTES, shortened
from graticule.handlers.findings import Finding, Rejected
from graticule.handlers.vector.described import Column, Opening, Shape, ShapeType
from graticule.handlers.vector.examining.scanning import Box, Noted, Scan
from graticule.handlers.vector.preparing.attributes import column_type
from graticule.handlers.vector.preparing.columns import column_names
from graticule.handlers.vector.preparing.reprojecting import half_turn
from graticule.handlers.vector.rejecting import Code, finding, rejected
from graticule.handlers.vector.sources.choosing import listed
from graticule.handlers.vector.sources.placing import Location, area_of_use, locate
from graticule.handlers.vector.sources.projections import on_the_ground

LONGEST_FIELD: Final = 1000  # characters of a name
LONGEST_TOLD: Final = 64  # characters of a name in the facts
MOST_TOLD: Final = 200  # columns
MOST_LAYERS_TOLD: Final = 50
MOST_RENAMED_TOLD: Final = 5
_SHAPES: Final[dict[str, ShapeType]] = {
    "Point": "MultiPoint",
    "MultiPoint": "MultiPoint",
    "LineString": "MultiLineString",
    "LinearRing": "MultiLineString",
    "MultiLineString": "MultiLineString",
    "Polygon": "MultiPolygon",
    "MultiPolygon": "MultiPolygon",
    "GeometryCollection": "GeometryCollection",
}

_REPAIRS: Final = ("curved", "unclosed", "shortened", "flat")

Facts = dict[str, JsonValue]


@contextmanager
def telling(facts: Facts) -> Iterator[None]:
    """Let a rejection carry what is known by then."""
    try:
        yield
    except Rejected as told:
        raise Rejected(told.findings, bounded({**facts, **told.facts})) from told


def limit_of_longitudes(crs: str) -> float | None:
    """Give 180 degrees in the unit of a CRS with longitudes; None for others."""
    known = CRS.from_user_input(crs)
    return half_turn(known) if known.is_geographic else None


def table_columns(fields: pa.Schema) -> list[Column]:
    """Give the columns of the table, in the order of the fields."""
    names = column_names(fields.names)
    return [
        Column(field=_checked(field.name), name=name, type=column_type(field))
        for field, name in zip(fields, names, strict=True)
    ]


def checked_columns(columns: list[Column]) -> list[Column]:
    """Reject columns that cannot have the names of their fields as comments."""
    for column in columns:
        _checked(column.field)
    return columns


def _checked(field: str) -> str:
    """Give the name of a field, which becomes a comment of its column."""
    if len(field) > LONGEST_FIELD or "\0" in field:
        what = f"A field has a name of more than {LONGEST_FIELD} characters, or with the character NUL."
        raise rejected(Code.UNFIT_VALUE, what, f"field {field}")
    return field


def shape_of(scan: Scan) -> Shape:
    """Give the type of the table's geometries, by those that there are."""
    shapes = {_SHAPES[name] for name in scan.types}
    return Shape(type=shapes.pop() if len(shapes) == 1 else "Geometry", has_z=scan.has_z, has_m=scan.has_m)


def bounds_of(scan: Scan) -> Box:
    """Give where the layer lies, with the coordinates in its own order; one that lies nowhere is rejected."""
    if scan.bounds is None:
        raise rejected(Code.NO_FEATURES, "The layer has no feature with a geometry.")
    return scan.bounds


def turned(bounds: Box) -> Box:
    """Exchange the axes."""
    south, west, north, east = bounds
    return west, south, east, north


def location_of(scan: Scan, crs: str) -> Location:
    """Find where the layer lies; one that lies outside the domain of its projection is rejected."""
    bounds = bounds_of(scan)
    location = locate(crs, bounds)
    if location is None:
        reached = ", ".join(f"{side:g}" for side in bounds)
        what = f"The layer reaches from {reached}, which is outside the domain of {CRS.from_user_input(crs).name}."
        raise rejected(Code.ABSURD_BOUNDS, what, _where(sorted({*scan.outermost})))
    return location


@dataclass(frozen=True, slots=True)
class ExaminedLayer:
    """A layer all of whose features were seen."""

    opening: Opening
    count: int
    geometry_type: str  # what the layer declares
    bounds: Box | None  # in its own units, east before north; None when no feature has a place
    location: Location | None
    beyond: int  # features with longitudes on the other side of the antimeridian

    @classmethod
    def of(cls, opening: Opening, scan: Scan, count: int, geometry_type: str) -> Self:
        """Locate a layer that was scanned last."""
        location = location_of(scan, opening.crs) if scan.bounds else None
        is_swapped = location is not None and location.is_swapped
        bounds = turned(scan.bounds) if scan.bounds and is_swapped else scan.bounds
        placed = opening.model_copy(update={"is_swapped": is_swapped})
        return cls(placed, count, geometry_type, bounds, location, scan.beyond(is_swapped=is_swapped))


def findings(scan: Scan, columns: Sequence[Column], layers: Sequence[ExaminedLayer], target: CRS) -> list[Finding]:
    """Tell what is mended on the way."""
    return [
        *chain.from_iterable(map(_swapped, layers)),
        *chain.from_iterable(map(_outside, layers)),
        *_other_crs([layer.opening for layer in layers], target),
        *_empty(scan),
        *_repaired(scan),
        *_invalid(scan),
        *_mixed(scan),
        *chain.from_iterable(map(_across, layers)),
        *_renamed(columns),
    ]


def merged_findings(layers: Sequence[ExaminedLayer], column: Column, mixed: Sequence[str]) -> Iterator[Finding]:
    """Tell that several layers become one table."""
    names = listed([layer.opening.name for layer in layers])
    what = f"{len(layers)} layers become one table: {names}. Its column `{column.name}` names the layer of each row."
    yield finding(Code.MERGED_LAYERS, what)
    if mixed:
        yield finding(Code.MIXED_TYPES, f"Fields have different types in the layers: {listed(mixed)}.", "columns")


def _swapped(layer: ExaminedLayer) -> Iterator[Finding]:
    if layer.opening.is_swapped:
        yield finding(Code.SWAPPED_AXES, "The coordinates have north before east.", f"layer {layer.opening.name}")


def _outside(layer: ExaminedLayer) -> Iterator[Finding]:
    opening, location = layer.opening, layer.location
    if location is not None and location.is_outside:
        sides = ", ".join(f"{side:.6g}" for side in location.bbox)
        what = f"The layer lies at {sides} (degrees), outside the area of use of its CRS: {area_of_use(opening.crs)}."
        yield finding(Code.OUTSIDE_AREA_OF_USE, what, f"layer {opening.name}")


def _other_crs(openings: Sequence[Opening], target: CRS) -> Iterator[Finding]:
    for name, opening in {opening.crs: opening for opening in reversed(openings)}.items():
        crs = CRS.from_user_input(name)
        if not on_the_ground(crs).equals(target, ignore_axis_order=True):
            where = "CRS" if len(openings) == 1 else f"layer {opening.name}"
            yield finding(
                Code.OTHER_CRS, f"Reprojected from {_code(opening) or crs.name} to {target.to_string()}.", where
            )


def _empty(scan: Scan) -> Iterator[Finding]:
    if count := scan.null.count + scan.empty.count:
        what = (
            f"{_features(count)} no place: {scan.null.count} without a geometry, {scan.empty.count} with an empty one."
        )
        examples = sorted(scan.null.examples + scan.empty.examples, key=lambda example: example.feature)
        yield finding(Code.EMPTY_GEOMETRIES, what, _where(each.feature for each in examples))


def _repaired(scan: Scan) -> Iterator[Finding]:
    curved, unclosed, short, flat = scan.curved, scan.unclosed, scan.shortened, scan.flat
    if curved.count:
        yield finding(Code.CURVED_GEOMETRIES, f"{_features(curved.count)} curves.", _named(curved))
    if unclosed.count:
        what = f"{_features(unclosed.count)} a ring that does not end where it begins."
        yield finding(Code.UNCLOSED_RINGS, what, _named(unclosed))
    if short.count:
        what = f"{_features(short.count)} a ring of fewer than three different points, or a line of one."
        yield finding(Code.SHORT_RINGS, what, _named(short))
    if flat.count:
        what = f"{_features(flat.count)} a geometry without area or length. Its geometry is kept as it is."
        yield finding(Code.FLAT_GEOMETRIES, what, _named(flat))
    if scan.partly_flat.count:
        what = f"{_features(scan.partly_flat.count)} a part without area or length. Only the other parts are kept."
        yield finding(Code.FLAT_GEOMETRIES, what, _named(scan.partly_flat))


def _named(noted: Noted) -> str:
    """Name the first of some features, and say how many more there are."""
    more = noted.count - len(noted.examples)
    return _where(each.feature for each in noted.examples) + (f" and {more:,} more" if more else "")


def _invalid(scan: Scan) -> Iterator[Finding]:
    if count := scan.invalid.count:
        first = scan.invalid.examples[0]
        what = f"{_features(count)} an invalid geometry, the first because of: {first.reason}."
        yield finding(Code.INVALID_GEOMETRIES, what, _named(scan.invalid))


def _mixed(scan: Scan) -> Iterator[Finding]:
    if len({_SHAPES[name] for name in scan.types}) > 1:
        told = ", ".join(f"{count} {name}" for name, count in scan.types.most_common())
        yield finding(Code.MIXED_GEOMETRIES, f"The layer has geometries of several types: {told}.")
    if len(scan.dimensions) > 1:
        told = ", ".join(f"{count} {_dimensions(*each)}" for each, count in scan.dimensions.most_common())
        yield finding(Code.MIXED_DIMENSIONS, f"The layer has geometries of several dimensions: {told}.")


def _across(layer: ExaminedLayer) -> Iterator[Finding]:
    if count := layer.beyond:
        yield finding(Code.ACROSS_ANTIMERIDIAN, f"{_features(count)} longitudes on the other side of the antimeridian.")
    elif layer.location is not None and layer.location.bbox[0] > layer.location.bbox[2]:
        yield finding(Code.ACROSS_ANTIMERIDIAN, "The layer lies on both sides of the antimeridian.")


def _renamed(columns: Sequence[Column]) -> Iterator[Finding]:
    renamed = [each for each in columns if each.field.casefold() != each.name]
    if renamed:
        told = [f"{shortened(each.field, LONGEST_TOLD)} → {each.name}" for each in renamed[:MOST_RENAMED_TOLD]]
        more = ["…"] if len(renamed) > MOST_RENAMED_TOLD else []
        who = "1 column gets another name" if len(renamed) == 1 else f"{len(renamed)} columns get other names"
        yield finding(Code.RENAMED_COLUMNS, f"{who}: {', '.join(told + more)}.", "columns")


def _features(count: int) -> str:
    return f"{count} feature has" if count == 1 else f"{count} features have"


def _where(numbers: Iterable[int]) -> str:
    told = [str(number) for number in numbers]
    return f"{'feature' if len(told) == 1 else 'features'} {', '.join(told)}"


def _dimensions(has_z: bool, has_m: bool) -> str:
    return {(False, False): "XY", (True, False): "XYZ", (False, True): "XYM", (True, True): "XYZM"}[has_z, has_m]


def opening_facts(openings: Sequence[Opening], layers: Sequence[str]) -> Facts:
    """Return what is known when the layers are open, of all that there are; what differs among them is null."""
    first = openings[0]
    has_one_crs = all(opening.crs == first.crs for opening in openings)
    return {
        "driver": first.kind.value,
        "layer": shortened(first.name, LONGEST_TOLD) if len(openings) == 1 else None,
        "layers": [shortened(name, LONGEST_TOLD) for name in layers[:MOST_LAYERS_TOLD]],
        "layer_count": len(layers),
        "encoding": first.encoding,
        "crs": shortened(CRS.from_user_input(first.crs).name, LONGEST_TOLD) if has_one_crs else None,
        "crs_code": _code(first) if has_one_crs else None,
    }


def scan_facts(scan: Scan, columns: Sequence[Column]) -> Facts:
    """Tell what is known when all features were seen."""
    return {
        "feature_count": scan.count,
        "geometry_types": dict(scan.types.most_common()),
        "has_z": scan.has_z,
        "has_m": scan.has_m,
        "bounds": _finite(scan.bounds),
        "invalid": _noted(scan.invalid),
        "empty": _noted(scan.empty),
        "null_geometries": _noted(scan.null),
        **{name: _noted(getattr(scan, name)) for name in _REPAIRS if getattr(scan, name).count},
        "column_count": len(columns),
        "columns": [_told(place, columns, scan) for place in range(min(MOST_TOLD, len(columns)))],
    }


def place_facts(layers: Sequence[ExaminedLayer], bbox: Sequence[float]) -> Facts:
    """Return where the layers are: one in its own units, east before north, and all in degrees."""
    return {"bounds": _finite(layers[0].bounds) if len(layers) == 1 else None, "bbox": list(bbox)}


def declared_type(layers: Sequence[ExaminedLayer]) -> str:
    """Return the type of geometries that the layers declare, in GDAL's words."""
    found = {layer.geometry_type for layer in layers}
    return found.pop() if len(found) == 1 else "Unknown"


def _finite(bounds: Box | None) -> list[JsonValue] | None:
    return list(bounds) if bounds and all(map(math.isfinite, bounds)) else None


def bounded(facts: Facts) -> Facts:
    """Leave out the last columns when all would be too much for a report."""
    columns = facts.get("columns")
    if not isinstance(columns, list):
        return facts
    room = MOST_FACT_BYTES - len(to_json({**facts, "columns": []}))
    kept: list[JsonValue] = []
    for column in columns:
        room -= len(to_json(column)) + 1
        if room < 0:
            break
        kept.append(column)
    return {**facts, "columns": kept}


def _noted(noted: Noted) -> Facts:
    examples: list[JsonValue] = [
        {"feature": each.feature} | ({"reason": each.reason} if each.reason else {}) for each in noted.examples
    ]
    return {"count": noted.count, "examples": examples}


def _told(place: int, columns: Sequence[Column], scan: Scan) -> Facts:
    column, values = columns[place], scan.values[place]
    told: Facts = {
        "field": shortened(column.field, LONGEST_TOLD),
        "name": column.name,
        "type": column.type,
        "nulls": values.nulls,
        "null_share": round(values.nulls / scan.count, 4) if scan.count else 0.0,
    }
    return told if values.longest is None else told | {"longest": values.longest}


def _code(opening: Opening) -> str | None:
    return opening.crs if opening.crs.startswith("EPSG:") else None
