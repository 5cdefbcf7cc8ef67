"""What is told of a source: the findings, the facts, and what its table is to be like.

Imports shapely and PROJ: only for where a handler runs.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pydantic import JsonValue
from pydantic_core import to_json
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.core.validation import MOST_FACT_BYTES, shortened
from graticule.handlers.findings import Finding, Rejected
from graticule.handlers.vector.described import WGS84, Column, Opening, Shape, ShapeType
from graticule.handlers.vector.examining.scanning import Box, Noted, Scan
from graticule.handlers.vector.preparing.attributes import column_type
from graticule.handlers.vector.preparing.columns import column_names
from graticule.handlers.vector.preparing.reprojecting import half_turn
from graticule.handlers.vector.rejecting import Code, fixed, rejected
from graticule.handlers.vector.sources.projections import on_the_ground

LONGEST_FIELD: Final = 1000  # characters of a name
LONGEST_TOLD: Final = 64  # characters of a name in the facts
MOST_TOLD: Final = 200  # columns
MOST_LAYERS_TOLD: Final = 50
MOST_RENAMED_TOLD: Final = 5
_POLE, _TURN = 90.0, 360.0
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


def degrees(crs: str, bounds: Box) -> Box:
    """Give bounds in degrees, west > east across the antimeridian; those that lie nowhere are rejected."""
    try:
        box: Box = Transformer.from_crs(crs, WGS84, always_xy=True).transform_bounds(*bounds, errcheck=True)
    except ProjError:
        box = (math.nan,) * 4
    west, south, east, north = box
    if not (-_POLE <= south <= north <= _POLE and -_TURN <= west <= _TURN and -_TURN <= east <= _TURN):
        told = ", ".join(f"{side:g}" for side in bounds)
        raise rejected(Code.ABSURD_BOUNDS, f"The bounds {told} do not lie where the layer's CRS is defined.", "CRS")
    if east - west >= _TURN:
        return -_TURN / 2, south, _TURN / 2, north
    return _around(west), south, _around(east), north


def _around(longitude: float) -> float:
    """Give a longitude between -180 and 180."""
    if abs(longitude) <= _TURN / 2:
        return longitude
    return longitude - math.copysign(_TURN, longitude)


def findings(scan: Scan, columns: Sequence[Column], opening: Opening, target: CRS, bbox: Box) -> list[Finding]:
    """Tell what is mended on the way."""
    return [
        *_swapped(opening),
        *_other_crs(opening, target),
        *_empty(scan),
        *_invalid(scan),
        *_mixed(scan),
        *_across(scan, opening, bbox),
        *_renamed(columns),
    ]


def _swapped(opening: Opening) -> Iterator[Finding]:
    if opening.is_swapped:
        yield fixed(Code.SWAPPED_AXES, "The coordinates have north before east.", f"layer {opening.layer}")


def _other_crs(opening: Opening, target: CRS) -> Iterator[Finding]:
    crs = CRS.from_user_input(opening.crs)
    if not on_the_ground(crs).equals(target, ignore_axis_order=True):
        what = f"It is in {_code(opening) or crs.name}, and {target.to_string()} was asked for."
        yield fixed(Code.OTHER_CRS, what, "CRS")


def _empty(scan: Scan) -> Iterator[Finding]:
    if count := scan.null.count + scan.empty.count:
        what = (
            f"{_features(count)} no place: {scan.null.count} without a geometry, {scan.empty.count} with an empty one."
        )
        examples = sorted(scan.null.examples + scan.empty.examples, key=lambda example: example.feature)
        yield fixed(Code.EMPTY_GEOMETRIES, what, _where(each.feature for each in examples))


def _invalid(scan: Scan) -> Iterator[Finding]:
    if count := scan.invalid.count:
        first = scan.invalid.examples[0]
        what = f"{_features(count)} an invalid geometry, the first because of: {first.reason}."
        yield fixed(Code.INVALID_GEOMETRIES, what, _where(each.feature for each in scan.invalid.examples))


def _mixed(scan: Scan) -> Iterator[Finding]:
    if len({_SHAPES[name] for name in scan.types}) > 1:
        told = ", ".join(f"{count} {name}" for name, count in scan.types.most_common())
        yield fixed(Code.MIXED_GEOMETRIES, f"The layer has geometries of several types: {told}.")
    if len(scan.dimensions) > 1:
        told = ", ".join(f"{count} {_dimensions(*each)}" for each, count in scan.dimensions.most_common())
        yield fixed(Code.MIXED_DIMENSIONS, f"The layer has geometries of several dimensions: {told}.")


def _across(scan: Scan, opening: Opening, bbox: Box) -> Iterator[Finding]:
    if count := scan.beyond(is_swapped=opening.is_swapped):
        yield fixed(Code.ACROSS_ANTIMERIDIAN, f"{_features(count)} longitudes on the other side of the antimeridian.")
    elif bbox[0] > bbox[2]:
        yield fixed(Code.ACROSS_ANTIMERIDIAN, "The layer lies on both sides of the antimeridian.")


def _renamed(columns: Sequence[Column]) -> Iterator[Finding]:
    renamed = [each for each in columns if each.field.casefold() != each.name]
    if renamed:
        told = [f"{shortened(each.field, LONGEST_TOLD)} → {each.name}" for each in renamed[:MOST_RENAMED_TOLD]]
        more = ["…"] if len(renamed) > MOST_RENAMED_TOLD else []
        who = "1 column gets another name" if len(renamed) == 1 else f"{len(renamed)} columns get other names"
        yield fixed(Code.RENAMED_COLUMNS, f"{who}: {', '.join(told + more)}.", "columns")


def _features(count: int) -> str:
    return f"{count} feature has" if count == 1 else f"{count} features have"


def _where(numbers: Iterable[int]) -> str:
    told = [str(number) for number in numbers]
    return f"{'feature' if len(told) == 1 else 'features'} {', '.join(told)}"


def _dimensions(has_z: bool, has_m: bool) -> str:
    return {(False, False): "XY", (True, False): "XYZ", (False, True): "XYM", (True, True): "XYZM"}[has_z, has_m]


def opening_facts(opening: Opening, layers: Sequence[str]) -> Facts:
    """Tell what is known when the layer is open, of all that there are."""
    return {
        "driver": opening.kind.value,
        "layer": shortened(opening.layer, LONGEST_TOLD),
        "layers": [shortened(name, LONGEST_TOLD) for name in layers[:MOST_LAYERS_TOLD]],
        "layer_count": len(layers),
        "encoding": opening.encoding,
        "crs": shortened(CRS.from_user_input(opening.crs).name, LONGEST_TOLD),
        "crs_code": _code(opening),
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
        "column_count": len(columns),
        "columns": [_told(place, columns, scan) for place in range(min(MOST_TOLD, len(columns)))],
    }


def place_facts(bounds: Box, bbox: Box) -> Facts:
    """Tell where the layer is: in its own units, east before north, and in degrees."""
    return {"bounds": _finite(bounds), "bbox": list(bbox)}


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
