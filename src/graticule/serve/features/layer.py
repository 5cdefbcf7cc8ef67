"""The one collection of a version: its table, read from the database's catalogue once and kept."""

import asyncio
import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final
from weakref import WeakValueDictionary

import asyncpg
from fastapi import Depends, HTTPException, Request
from pyproj import Transformer

from graticule.core.errors import OutputUnreadable
from graticule.repositories.served_tables import ServedColumn, ServedTableRepository
from graticule.serve.features.cql2 import Kind, kind_of
from graticule.serve.features.geometries import DEGREES
from graticule.serve.served import Box, Served

COLLECTION: Final = "features"
WHOLE_WORLD: Final[Box] = (-180.0, -90.0, 180.0, 90.0)
MOST_KEPT: Final = 512
_EVERYWHERE: Final[Box] = (-1e30, -1e30, 1e30, 1e30)  # in whatever unit a projection has
_MARGIN: Final = 1.0  # degrees about the extent: its edges are no straight lines in another projection

_transformer = lru_cache(maxsize=64)(Transformer.from_crs)


@dataclass(frozen=True, slots=True)
class Layer:
    """A table of features as it is served."""

    title: str
    schema: str
    table: str
    columns: dict[str, ServedColumn]
    key: ServedColumn
    geometry: ServedColumn | None
    extent: Box | None  # in degrees; west > east across the antimeridian
    overview_zoom: int | None = None  # the highest that has prepared tiles

    @property
    def properties(self) -> list[ServedColumn]:
        """All columns that are no geometries."""
        return [column for column in self.columns.values() if kind_of(column) is not Kind.GEOMETRY]

    @property
    def instants(self) -> list[ServedColumn]:
        """The columns that hold dates and times."""
        return [column for column in self.columns.values() if kind_of(column) is Kind.INSTANT]

    @property
    def srid(self) -> int:
        """The number of its projection."""
        return (self.geometry and self.geometry.srid) or DEGREES

    @property
    def has_heights(self) -> bool:
        """Whether its coordinates have a third dimension."""
        return "Z" in ((self.geometry and self.geometry.geometry_type) or "").upper()

    @property
    def bounds(self) -> Box:
        """Where it is, for those who cannot have west > east: all the way round when it crosses the antimeridian."""
        if self.extent is None:
            return WHOLE_WORLD
        west, south, east, north = self.extent
        return self.extent if west <= east else (-180.0, south, 180.0, north)

    def projected(self, box: Box) -> Box | None:
        """Take a box in degrees to the table's projection; None when none of its features are there.

        Few projections know the whole world, so the box is first cut to where the features are.
        """
        if self.srid == DEGREES:
            return box
        west, south, east, north = self.bounds
        cut = (
            max(box[0], west - _MARGIN),
            max(box[1], south - _MARGIN),
            min(box[2], east + _MARGIN),
            min(box[3], north + _MARGIN),
        )
        if cut[0] > cut[2] or cut[1] > cut[3]:
            return None
        found = _transformer(DEGREES, self.srid, always_xy=True).transform_bounds(*cut)
        return found if all(map(math.isfinite, found)) else _EVERYWHERE


class Layers:
    """What is known of tables, by what is served; a version whose data change is served as something else."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Served, Layer] = OrderedDict()
        self._reading: WeakValueDictionary[Served, asyncio.Lock] = WeakValueDictionary()

    async def find(self, request: Request) -> Layer:
        """Give the layer that a request reaches."""
        served: Served = request.state.served
        if (known := self._kept.get(served)) is not None:
            self._kept.move_to_end(served)
            return known
        async with self._reading.setdefault(served, asyncio.Lock()):  # a map asks for many tiles at once
            if served not in self._kept:
                self._kept[served] = await _read(request, served)
            layer = self._kept[served]
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return layer

    def forget(self, served: Served) -> None:
        """Read the table again at the next request."""
        self._kept.pop(served, None)


async def the_layer(request: Request) -> Layer:
    """Give the layer that a request reaches."""
    layers: Layers = request.app.state.layers
    return await layers.find(request)


TheLayer = Annotated[Layer, Depends(the_layer)]


async def _read(request: Request, served: Served) -> Layer:
    schema, table = served.table_schema, served.table_name
    if schema is None or table is None:
        raise HTTPException(404, "This asset has no features.")
    async with request.app.state.pool.acquire() as connection:
        repository = ServedTableRepository(connection)
        columns = await repository.describe(schema, table)
        key = next((column for column in columns if column.is_key), None)
        if key is None:
            raise OutputUnreadable(
                "The features of this version cannot be read now.",
                detail=f"no table {schema}.{table} with a primary key",
            )
        geometry = next((column for column in columns if kind_of(column) is Kind.GEOMETRY), None)
        extent = served.bbox
        if extent is None and geometry is not None:
            extent = await _extent(repository, schema, table, geometry)
        overview_zoom = await repository.overview_zoom(schema, table)
    return Layer(
        title=served.title or served.asset_id,
        schema=schema,
        table=table,
        columns={column.name: column for column in columns},
        key=key,
        geometry=geometry,
        extent=extent,
        overview_zoom=overview_zoom,
    )


async def _extent(repository: ServedTableRepository, schema: str, table: str, geometry: ServedColumn) -> Box | None:
    """Find in degrees where the features are; a table for which that takes too long can do without."""
    try:
        extent = await repository.extent(schema, table, geometry)
    except asyncpg.QueryCanceledError:
        return None
    if extent is None or geometry.srid in {DEGREES, 0, None}:
        return extent
    found = _transformer(geometry.srid, DEGREES, always_xy=True).transform_bounds(*extent)
    return found if all(map(math.isfinite, found)) else None
