"""Vector tiles of the features, and what describes them."""

from functools import cache, lru_cache
from typing import Annotated, Any, Final

import asyncpg
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from morecantile import Tile, TileMatrixSet
from pydantic import Field
from pyproj import Transformer
from tipg import model

from graticule.core.tile_counts import COUNT, MERGED_HEADER, SHOWN_HEADER, TOTAL_HEADER
from graticule.repositories.served_tables import (
    TILE_GEOMETRY,
    Bound,
    Selection,
    ServedColumn,
    ServedTableRepository,
    ServedTile,
)
from graticule.repositories.tile_shapes import LAYER, TILE_BUFFER, TILE_RESOLUTION, tile_geometry
from graticule.serve.features.asked import Conditions, TheConditions, chosen_properties
from graticule.serve.features.collection import field_types
from graticule.serve.features.formats import JSON_ONLY
from graticule.serve.features.geometries import DEGREES
from graticule.serve.features.layer import Layer, TheLayer
from graticule.serve.features.limits import MAX_TILE_BYTES, MOST_BYTES, MOST_FEATURES, MOST_READ_FOR_A_TILE, MOST_ZOOM
from graticule.serve.features.links import TILE, TILESETS
from graticule.serve.links import HTML, Addresses
from graticule.serve.served import Box, TheServed
from graticule.serve.tilesets import GRIDS, WEB_MERCATOR, Tiled, TileSet, TileSetList, limits, link_to_grid
from graticule.serve.viewer import vector_page

_TILES: Final = TILESETS + "/{tileMatrixSetId}/{z}/{x}/{y}"
_TILE_ANSWER: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {TILE: {}}}}

router = APIRouter(tags=["Vector tiles"])
descriptions = APIRouter(tags=["Vector tiles"], dependencies=[JSON_ONLY])


# Grids


async def the_grid_name(
    name: Annotated[
        str, Path(alias="tileMatrixSetId", description="A tile matrix set.", json_schema_extra={"enum": [*GRIDS]})
    ],
) -> str:
    """Read which tile matrix set is asked for."""
    if name not in GRIDS:
        raise HTTPException(404, f"There is no tile matrix set {name[:40]!r}. There are: {', '.join(GRIDS)}.")
    return name


GridName = Annotated[str, Depends(the_grid_name)]


@descriptions.get("/tileMatrixSets", response_model=model.TileMatrixSetList, response_model_exclude_none=True)
async def tile_matrix_sets(request: Request) -> Any:
    """List the tile matrix sets."""
    to = Addresses(request)
    return {"tileMatrixSets": [{"id": name, "title": name, "links": [link_to_grid(to, name)]} for name in GRIDS]}


@descriptions.get("/tileMatrixSets/{tileMatrixSetId}", response_model=TileMatrixSet, response_model_exclude_none=True)
async def tile_matrix_set(grid_name: GridName) -> Any:
    """Describe a tile matrix set."""
    return GRIDS[grid_name]


# Sets of tiles


@descriptions.get(TILESETS, response_model=TileSetList, response_model_exclude_none=True)
async def tilesets(request: Request, layer: TheLayer) -> Any:
    """List the sets of vector tiles: one for each tile matrix set."""
    to = Addresses(request)
    return _tiled(layer).listed(to, to.itself(request))


@descriptions.get(TILESETS + "/{tileMatrixSetId}", response_model=TileSet, response_model_exclude_none=True)
async def tileset(request: Request, layer: TheLayer, grid_name: GridName) -> Any:
    """Describe a set of vector tiles."""
    to, grid = Addresses(request), GRIDS[grid_name]
    zooms = range(grid.minzoom, min(grid.maxzoom, MOST_ZOOM) + 1)
    return {
        **_tiled(layer).described(grid_name, to, to.itself(request)),
        "tileMatrixSetLimits": limits(grid_name, layer.bounds, zooms),
    }


def _tiled(layer: Layer) -> Tiled:
    return Tiled(layer.title, "vector", layer.bounds, tilesets=TILESETS, documents=TILESETS, formats={"": TILE})


# Tiles


@lru_cache(maxsize=256)
def _size(grid_name: str, zoom: int) -> tuple[int, int]:
    """Give the number of tiles of a zoom level, across and down; none when there is no such level."""
    grid = GRIDS[grid_name]
    if not grid.minzoom <= zoom <= grid.maxzoom:
        return 0, 0
    matrix = grid.matrix(zoom)
    return matrix.matrixWidth, matrix.matrixHeight


@cache
def _srid(grid_name: str) -> int:
    """Give the projection of a grid; only that of degrees has another name than a number."""
    return GRIDS[grid_name].crs.to_epsg() or DEGREES


async def the_tile(
    grid_name: GridName,
    z: Annotated[int, Path(ge=0, le=MOST_ZOOM, description="Zoom.")],
    x: Annotated[int, Path(ge=0, description="Column.")],
    y: Annotated[int, Path(ge=0, description="Row.")],
) -> Tile:
    """Read which tile is asked for."""
    width, height = _size(grid_name, z)
    if x >= width or y >= height:
        raise HTTPException(404, "There is no such tile.")
    return Tile(x, y, z)


class TileShown:
    """What a tile shows of each feature."""

    def __init__(self, layer: Layer, properties: list[ServedColumn], limit: int, simplify: float | None) -> None:
        self.properties = properties
        self.limit = limit
        self.simplify = simplify
        self.is_everything = properties == layer.properties and limit == MOST_FEATURES and simplify is None


async def the_tile_shown(
    layer: TheLayer,
    *,
    properties: Annotated[
        str | None, Query(description="Only these properties, with commas between them; none when empty.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_FEATURES, description="How many features at most.")] = MOST_FEATURES,
    simplify: Annotated[
        float | None,
        Query(
            gt=0, le=1e9, allow_inf_nan=False, description="Simplify the shapes to this tolerance, in the table's unit."
        ),
    ] = None,
) -> TileShown:
    """Read what a request wants to see of each feature."""
    return TileShown(layer, chosen_properties(layer, properties), limit, simplify)


TheTileShown = Annotated[TileShown, Depends(the_tile_shown)]


@router.get(_TILES, response_class=Response, responses=_TILE_ANSWER)  # tried last: it matches the others, too
@router.get(_TILES + ".mvt", response_class=Response, responses=_TILE_ANSWER)
@router.get(_TILES + ".pbf", response_class=Response, responses=_TILE_ANSWER)
async def tile(
    request: Request,
    at: Annotated[Tile, Depends(the_tile)],
    conditions: TheConditions,
    shown: TheTileShown,
    grid_name: GridName,
) -> Response:
    """Return a vector tile; its one layer is called `features`.

    Where there are more features than a tile can have, it has the largest ones itself, and shapes with a count in
    place of the others. Headers give the number shown and the total.
    """
    layer = conditions.layer
    async with request.app.state.pool.acquire() as connection:
        repository = ServedTableRepository(connection)
        made = None
        if _is_prepared(conditions, shown, grid_name):
            made = await repository.prepared_tile(layer.schema, layer.table, at.z, at.x, at.y)
        if made is None:
            made = await _live_tile(repository, _tile_selection(conditions, shown, grid_name, at), shown.limit)
    counts = {SHOWN_HEADER: made.shown, MERGED_HEADER: made.merged, TOTAL_HEADER: made.total}
    headers = {name: str(count) for name, count in counts.items() if count is not None}
    return Response(made.content, media_type=TILE, headers=headers)


def _is_prepared(conditions: Conditions, shown: TileShown, grid_name: str) -> bool:
    """Tell whether tiles of what is asked for may have been prepared: all features, whole, in the grid of web maps."""
    has_some = conditions.layer.overview_zoom is not None
    return has_some and grid_name == WEB_MERCATOR and shown.is_everything and not conditions.sql


async def _live_tile(repository: ServedTableRepository, selection: Selection | None, limit: int) -> ServedTile:
    if selection is None:
        return ServedTile(b"", 0, 0, 0)
    return await repository.tile(selection, Bound(limit, MOST_READ_FOR_A_TILE, MOST_BYTES), MAX_TILE_BYTES)


def _tile_selection(conditions: Conditions, shown: TileShown, grid_name: str, at: Tile) -> Selection | None:
    """Give the rows that a tile shows; None when the table has no shapes, or none near it."""
    layer, srid = conditions.layer, _srid(grid_name)
    edges = GRIDS[grid_name].xy_bounds(at)
    bounds = edges.left, edges.bottom, edges.right, edges.top
    near = _projected(layer, _with_buffer(bounds, grid_name), srid)
    if layer.geometry is None or near is None:
        return None
    inside = _projected(layer, bounds, srid) or near
    conditions.sql.append(f"{layer.geometry.quoted} && {conditions.envelope(near, layer.srid)}")
    shape = _tile_shape(layer.geometry.quoted, shown.simplify)
    if layer.srid != srid:
        shape = f"ST_Transform({shape}, {srid:d})"
    drawn = tile_geometry(shape, _envelope(bounds, srid))
    return Selection(
        layer.schema,
        layer.table,
        [*(column.quoted for column in shown.properties), f"{drawn} AS {TILE_GEOMETRY}"],
        [*shown.properties, layer.geometry],
        [layer.key.quoted],
        conditions.sql,
        conditions.parameters.values,
        counted=f"{layer.geometry.quoted} && {_envelope(inside, layer.srid)}",
    )


def _projected(layer: Layer, box: Box, srid: int) -> Box | None:
    return box if layer.srid == srid else layer.projected(_in_degrees(box, srid))


def _envelope(box: Box, srid: int) -> str:
    return f"ST_MakeEnvelope({', '.join(f'{side:.17g}' for side in box)}, {srid:d})"


def _with_buffer(bounds: Box, grid_name: str) -> Box:
    """Give the box of all that a tile draws: it goes beyond the tile's edges, though not beyond the world's."""
    west, south, east, north = bounds
    across, up = (east - west) * TILE_BUFFER / TILE_RESOLUTION, (north - south) * TILE_BUFFER / TILE_RESOLUTION
    world = _world(grid_name)
    return (
        max(west - across, world[0]),
        max(south - up, world[1]),
        min(east + across, world[2]),
        min(north + up, world[3]),
    )


@cache
def _world(grid_name: str) -> Box:
    edges = GRIDS[grid_name].xy_bbox
    return edges.left, edges.bottom, edges.right, edges.top


def _in_degrees(bounds: Box, srid: int) -> Box:
    return bounds if srid == DEGREES else _to_degrees(srid).transform_bounds(*bounds)


@lru_cache(maxsize=32)
def _to_degrees(srid: int) -> Transformer:
    return Transformer.from_crs(srid, DEGREES, always_xy=True)


def _tile_shape(geometry: str, simplify: float | None) -> str:
    if simplify is None:
        return geometry
    tolerance = f"{simplify:.17f}"
    return f"ST_SnapToGrid(ST_SimplifyPreserveTopology({geometry}, {tolerance}), {tolerance})"


# For maps


class TileJson(model.TileJSON):
    """TileJSON, and how many features the tiles are made of."""

    feature_count: int | None = Field(None, description="How many features there are; left out if unknown.")
    merged_below_zoom: int | None = Field(
        None, description=f"Below this zoom, some small features are shown as merged shapes with `{COUNT}`."
    )


@router.get(TILESETS + "/{tileMatrixSetId}/tilejson.json", response_model=TileJson, response_model_exclude_none=True)
async def tilejson(
    request: Request,
    conditions: TheConditions,
    shown: TheTileShown,  # checked here, and passed on to the tiles
    grid_name: GridName,
    *,
    minzoom: Annotated[int | None, Query(ge=0, le=MOST_ZOOM)] = None,
    maxzoom: Annotated[int | None, Query(ge=0, le=MOST_ZOOM)] = None,
) -> Any:
    """Describe the tiles for a map; the filters of the request go on to the tiles."""
    layer, grid = conditions.layer, GRIDS[grid_name]
    lowest = grid.minzoom if minzoom is None else minzoom
    highest = min(grid.maxzoom, MOST_ZOOM) if maxzoom is None else maxzoom
    if lowest > highest:
        raise HTTPException(400, "minzoom must not be greater than maxzoom.")
    count = await _count(request, conditions)
    merged_below, fields = None, field_types(layer)
    if layer.overview_zoom is not None and _is_prepared(conditions, shown, grid_name):
        merged_below, fields = layer.overview_zoom + 1, {**fields, COUNT: "integer"}
    passed_on = [pair for pair in request.query_params.multi_items() if pair[0] not in {"minzoom", "maxzoom"}]
    return {
        "name": layer.title,
        "tiles": [Addresses(request).to(f"{TILESETS}/{grid_name}/{{z}}/{{x}}/{{y}}", passed_on)],
        "minzoom": lowest,
        "maxzoom": highest,
        "bounds": layer.bounds,
        "vector_layers": [{"id": LAYER, "fields": fields, "minzoom": lowest, "maxzoom": highest}],
        "feature_count": count,
        "merged_below_zoom": merged_below,
        "description": _described(count, merged_below, shown.limit),
    }


async def _count(request: Request, conditions: Conditions) -> int | None:
    """Count the features of all tiles; None when that takes too long."""
    layer = conditions.layer
    selection = Selection(layer.schema, layer.table, [], [], [], conditions.sql, conditions.parameters.values)
    try:
        async with request.app.state.pool.acquire() as connection:
            return await ServedTableRepository(connection).count(selection)
    except asyncpg.QueryCanceledError:
        return None


def _described(count: int | None, merged_below: int | None, limit: int) -> str | None:
    if merged_below is None:
        is_whole = count is not None and count <= limit
        told = f"A tile shows at most {limit:,} features; its headers give the number shown and the total."
        return None if is_whole else told
    features = "Many features" if count is None else f"{count:,} features"
    return (
        f"{features}. Below zoom {merged_below}, where there are too many in one place, only the larger ones are shown "
        f"individually; the others are merged into shapes whose {COUNT!r} says how many they stand for."
    )


@router.get(f"{TILESETS}/{WEB_MERCATOR}/map.html", response_class=Response, responses={200: {"content": {HTML: {}}}})
async def map_page(
    request: Request,
    served: TheServed,
    conditions: TheConditions,
    shown: TheTileShown,
) -> Response:
    """Show the features on a map; the parameters are checked here, and passed on to the tiles."""
    url = Addresses(request).to(f"{TILESETS}/{WEB_MERCATOR}/tilejson.json", request.query_params.multi_items())
    return vector_page(request, tilejson_url=url, title=served.title or "Features")
