"""What a request asks for: which features, in which order and form. All of it is checked here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Query, Request

from graticule.repositories.served_tables import ServedColumn
from graticule.serve.features.cql2 import Compiler, Kind, Language, Parameters, column_term, kind_of, read_filter
from graticule.serve.features.crs import box_outline, clip_box, find_crs
from graticule.serve.features.geometries import DEGREES, FeatureCrs, checked_box, parts_of
from graticule.serve.features.instants import read_interval
from graticule.serve.features.layer import Layer, TheLayer, the_layer
from graticule.serve.features.limits import MOST_IDS, MOST_SORTED, FilterError
from graticule.serve.parameters import VERSION
from graticule.serve.served import Box
from graticule.serve.tilesets import CRS84

NO_GEOMETRY: Final = "none"

# Parameters of the routes that take filters; a column of such a name can be filtered by CQL2 only.
RESERVED: Final = frozenset(
    {
        VERSION,
        "f",
        "ids",
        "bbox",
        "bbox-crs",
        "crs",
        "datetime",
        "datetime-column",
        "filter",
        "filter-lang",
        "filter-crs",
        "properties",
        "sortby",
        "geom-column",
        "bbox-only",
        "simplify",
        "limit",
        "offset",
        "minzoom",
        "maxzoom",
    }
)


@dataclass(slots=True)
class Conditions:
    """Conditions that all have to hold, and the values of their parameters."""

    layer: Layer
    parameters: Parameters
    sql: list[str]

    def within(self, box: Box) -> None:
        """Ask for what touches a box in degrees."""
        if (geometry := self.layer.geometry) is None:
            return
        parts = [self._touches(geometry, part) for part in parts_of(box)]
        self.sql.append(f"({' OR '.join(parts)})")

    def within_box_of(self, crs: FeatureCrs, numbers: list[float]) -> None:
        """Ask for what touches a box whose numbers are in a CRS, and in its order."""
        box = checked_box(numbers, crs)
        if crs.srid == DEGREES:
            self.within(box)
        elif (geometry := self.layer.geometry) is not None:
            cut = clip_box(box, self.layer, crs)
            self.sql.append("false" if cut is None else self._touches_outline(geometry, cut, crs))

    def _touches_outline(self, geometry: ServedColumn, box: Box, crs: FeatureCrs) -> str:
        if crs.srid == self.layer.srid:
            return f"ST_Intersects({geometry.quoted}, {self.envelope(box, crs.srid)})"
        outline = box_outline(box, crs, self.layer.srid)
        if outline is None:
            return f"ST_Intersects(ST_Transform({geometry.quoted}, {crs.srid:d}), {self.envelope(box, crs.srid)})"
        shape = f"ST_GeomFromText({self.parameters.add(outline, 'text')}, {self.layer.srid:d})"
        return f"ST_Intersects({geometry.quoted}, {shape})"

    def _touches(self, geometry: ServedColumn, box: Box) -> str:
        """Look at the projected box first: only that can use the index."""
        projected = self.layer.projected(box)
        if projected is None:
            return "false"
        if projected is box:
            return f"ST_Intersects({geometry.quoted}, {self.envelope(box, 4326)})"
        near = f"{geometry.quoted} && {self.envelope(projected, self.layer.srid)}"
        return f"({near} AND ST_Intersects(ST_Transform({geometry.quoted}, 4326), {self.envelope(box, 4326)}))"

    def envelope(self, box: Box, srid: int) -> str:
        """Write a box."""
        sides = ", ".join(self.parameters.add(float(side), "double precision") for side in box)
        return f"ST_MakeEnvelope({sides}, {srid:d})"

    def during(self, first: datetime | None, last: datetime | None, column: ServedColumn) -> None:
        """Ask for what has no time, or one that touches an interval; its ends belong to it."""
        term = column_term(column)
        tests = []
        if first is not None:
            tests.append(f"{term.until or term.sql} >= {self._moment(first)}")
        if last is not None:
            tests.append(f"{term.sql} <= {self._moment(last)}")
        self.sql.append(f"({column.quoted} IS NULL OR ({' AND '.join(tests)}))")

    def _moment(self, value: datetime) -> str:
        return self.parameters.add(value, "timestamp")

    def one_of(self, ids: Sequence[str]) -> None:
        """Ask for features by their ids."""
        if len(ids) > MOST_IDS:
            raise FilterError(f"ids has at most {MOST_IDS} ids.")
        numbers = [_id(each) for each in ids]
        self.sql.append(f"({self.layer.key.quoted} = ANY({self.parameters.add(numbers, 'bigint[]')}))")

    def equal(self, column: ServedColumn, value: str) -> None:
        """Ask for a value of a column; its type is the column's."""
        if kind_of(column) is Kind.GEOMETRY:
            raise FilterError(f"{column.name!r} is a geometry: filter by bbox, or by CQL2.")
        if "\0" in value:
            raise FilterError(f"The value of {column.name!r} has a character that no text can have.")
        self.sql.append(f"({column.quoted} = CAST({self.parameters.add(value, 'text')} AS {column.type}))")


def _id(text: str) -> int:
    """Read an id, which is a bigint."""
    digits = text.strip()
    if not (digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit() and len(digits) < 20):
        raise FilterError(f"{text[:40]!r} is no id: those are integers.")
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise FilterError(f"{text[:40]!r} is no id: those are integers of 64 bits.")
    return number


async def the_conditions(
    request: Request,
    layer: TheLayer,
    *,
    ids: Annotated[str | None, Query(description="Only features of these ids, with commas between them.")] = None,
    bbox: Annotated[
        str | None,
        Query(description="Only features that touch this box: west,south,east,north in degrees, or in `bbox-crs`."),
    ] = None,
    bbox_crs: Annotated[
        str | None,
        Query(alias="bbox-crs", description=f"The CRS of `bbox`, one that the collection lists; {CRS84} by default."),
    ] = None,
    during: Annotated[
        str | None,
        Query(
            alias="datetime",
            description="Only features of this time (RFC 3339), or of an interval like a/b, a/.. or ../b.",
        ),
    ] = None,
    datetime_column: Annotated[
        str | None, Query(alias="datetime-column", description="The property that `datetime` is about.")
    ] = None,
    filter_: Annotated[str | None, Query(alias="filter", description="A filter in CQL2.")] = None,
    filter_lang: Annotated[Language, Query(alias="filter-lang", description="The form of `filter`.")] = "cql2-text",
    filter_crs: Annotated[
        str | None,
        Query(
            alias="filter-crs",
            description=f"The CRS of shapes in `filter`, one that the collection lists; {CRS84} by default.",
        ),
    ] = None,
) -> Conditions:
    """Read which features a request asks for."""
    conditions = Conditions(layer, Parameters(), [])
    if ids:
        conditions.one_of(ids.split(","))
    box_crs = await find_crs(request, layer, bbox_crs, "bbox-crs")
    if bbox:
        conditions.within_box_of(box_crs, _numbers(bbox))
    column = _time_column(layer, datetime_column)
    interval = read_interval(during) if during else None  # read in any case: what is no time is refused
    if column is not None and interval is not None:
        conditions.during(*interval, column)
    shapes_crs = await find_crs(request, layer, filter_crs, "filter-crs")
    if filter_:
        compiler = Compiler(layer.columns, conditions.parameters, layer.srid, shapes_crs)
        conditions.sql.append(compiler.condition(read_filter(filter_, filter_lang)))
    for name, value in request.query_params.multi_items():
        if name in layer.columns and name not in RESERVED:
            conditions.equal(layer.columns[name], value)
    return conditions


TheConditions = Annotated[Conditions, Depends(the_conditions)]


async def columns_as_parameters(request: Request) -> frozenset[str]:
    """Name the parameters that a request may have because its table has columns of these names."""
    return frozenset((await the_layer(request)).columns)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise FilterError("bbox has four numbers: west,south,east,north.") from None


def _time_column(layer: Layer, name: str | None) -> ServedColumn | None:
    """Find the column that `datetime` is about; a table that knows no times has them all."""
    if name is None:
        return next(iter(layer.instants), None)
    found = next((column for column in layer.instants if column.name == name), None)
    if found is None:
        raise FilterError(f"There is no property {name[:80]!r} of dates or times.")
    return found


def chosen_properties(layer: Layer, asked: str | None) -> list[ServedColumn]:
    """Give the properties that a request names, or all; the empty text names none."""
    if asked is None:
        return layer.properties
    names = [name.strip() for name in asked.split(",") if name.strip()]
    known = {column.name: column for column in layer.properties}
    if unknown := [name for name in names if name not in known]:
        raise FilterError(f"There is no property {unknown[0][:80]!r}. There are: {', '.join(known)}.")
    return [column for column in layer.properties if column.name in names]


def chosen_geometry(layer: Layer, asked: str | None) -> ServedColumn | None:
    """Give the geometry that a request names; it may ask for none."""
    if asked is None or (layer.geometry is not None and asked == layer.geometry.name):
        return layer.geometry
    if asked.lower() == NO_GEOMETRY:
        return None
    raise FilterError(f"There is no geometry {asked[:80]!r}.")


def order_of(layer: Layer, sortby: str | None) -> list[str]:
    """Write the order; the key comes last, so that no two features change places between two pages."""
    parts = sortby.split(",") if sortby else []
    if len(parts) > MOST_SORTED:
        raise FilterError(f"sortby has at most {MOST_SORTED} properties.")
    return [*(_sorted(layer, part.strip()) for part in parts), layer.key.quoted]


def _sorted(layer: Layer, part: str) -> str:
    name = part[1:].strip() if part[:1] in {"+", "-"} else part  # a plain + is a space in an address
    column = layer.columns.get(name)
    if column is None or kind_of(column) is Kind.GEOMETRY:
        raise FilterError(f"There is no property {name[:80]!r} to sort by.")
    return f"{column.quoted} DESC" if part.startswith("-") else column.quoted
