"""What is told of a raster's tiles, in OGC's words: TiTiler's own documents have addresses that lead nowhere."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import rasterio
from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel
from rio_tiler.constants import WGS84_CRS
from titiler.core.factory import TilerFactory
from titiler.core.resources.enums import ImageType, MediaType
from titiler.core.resources.responses import JSONResponse
from titiler.core.utils import accept_media_type, create_html_response

from graticule.core.errors import InvalidInput
from graticule.serve.links import HTML, JSON, Addresses, Link
from graticule.serve.served import Box, Served, TheServed
from graticule.serve.tiles.dependencies import TileSize, Zoom
from graticule.serve.tiles.reader import AssetReader
from graticule.serve.tilesets import GRIDS, KnownGrid, Tiled, TileSet, TileSetList, limits

TILESETS: Final = "/tiles"
FORMATS: Final = {f".{each.value}": each.mediatype for each in (ImageType.png, ImageType.jpeg, ImageType.tiff)}
# What a document is asked with, and tiles are not.
_OF_THE_DOCUMENT: Final = frozenset({"f", "minzoom", "maxzoom"})
_PAGES: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {JSON: {}, HTML: {}}}}

TileMatrixSetId = Annotated[KnownGrid, Path(description="A tile matrix set.")]
Form = Annotated[
    Literal["html", "json"] | None, Query(description="What the answer is; otherwise the header Accept decides.")
]


def register_tilesets(tiler: TilerFactory) -> None:
    """Register the list of sets of tiles, and the document of each."""
    look = Depends(_look(tiler))
    _register_list(tiler, look)
    _register_each(tiler, look)


def _look(tiler: TilerFactory) -> Callable[..., Any]:
    async def look(
        *,
        tile_params: Annotated[Any, Depends(tiler.tile_dependency)],
        layer_params: Annotated[Any, Depends(tiler.layer_dependency)],
        dataset_params: Annotated[Any, Depends(tiler.dataset_dependency)],
        post_process: Annotated[Any, Depends(tiler.process_dependency)],
        colormap: Annotated[Any, Depends(tiler.colormap_dependency)],
        render_params: Annotated[Any, Depends(tiler.render_dependency)],
        tilesize: TileSize | None = None,
    ) -> None:
        """Check how the tiles are to look: that goes on to them."""

    return look


def _register_list(tiler: TilerFactory, look: Any) -> None:
    @tiler.router.get(
        TILESETS,
        response_model=TileSetList,
        response_model_exclude_none=True,
        response_class=JSONResponse,
        responses=_PAGES,
        dependencies=[look],
        operation_id=f"{tiler.operation_prefix}getTileSetList",
    )
    def tileset_list(
        *,
        request: Request,
        served: TheServed,
        src_path: Annotated[Any, Depends(tiler.path_dependency)],
        env: Annotated[Any, Depends(tiler.environment_dependency)],
        f: Form = None,
    ) -> Any:
        """List the sets of tiles: one for each tile matrix set."""
        with rasterio.Env(**env), tiler.reader(src_path) as reader:
            tiled = _tiled(served, reader)
        listed = tiled.listed(Addresses(request), _itself(request), _passed_on(request))
        return _answer(tiler, request, TileSetList.model_validate(listed), f)


def _register_each(tiler: TilerFactory, look: Any) -> None:
    @tiler.router.get(
        TILESETS + "/{tileMatrixSetId}",
        response_model=TileSet,
        response_model_exclude_none=True,
        response_class=JSONResponse,
        responses=_PAGES,
        dependencies=[look],
        operation_id=f"{tiler.operation_prefix}getTileSet",
    )
    def tileset(
        *,
        request: Request,
        served: TheServed,
        tileMatrixSetId: TileMatrixSetId,  # noqa: N803 - its name in the path
        src_path: Annotated[Any, Depends(tiler.path_dependency)],
        env: Annotated[Any, Depends(tiler.environment_dependency)],
        minzoom: Zoom = None,
        maxzoom: Zoom = None,
        f: Form = None,
    ) -> Any:
        """Describe a set of tiles."""
        grid = GRIDS[tileMatrixSetId]
        with rasterio.Env(**env), tiler.reader(src_path, tms=grid) as reader:
            tiled = _tiled(served, reader)
            lowest, highest = shown_zooms(reader, minzoom, maxzoom)
        zooms = range(max(lowest, grid.minzoom), min(highest, grid.maxzoom) + 1)
        described = tiled.described(tileMatrixSetId, Addresses(request), _itself(request), _passed_on(request))
        document = {**described, "tileMatrixSetLimits": limits(tileMatrixSetId, tiled.bounds, zooms)}
        return _answer(tiler, request, TileSet.model_validate(document), f)


def shown_zooms(reader: AssetReader, minzoom: int | None, maxzoom: int | None) -> tuple[int, int]:
    """Give the zoom levels at which a raster is seen, unless others are asked for."""
    lowest = reader.minzoom if minzoom is None else minzoom
    highest = reader.maxzoom if maxzoom is None else maxzoom
    if lowest > highest:
        raise InvalidInput("minzoom: it is above maxzoom.")
    return lowest, highest


def _tiled(served: Served, reader: AssetReader) -> Tiled:
    title = served.title or served.asset_id
    return Tiled(title, "map", _bounds(reader), tilesets=TILESETS, documents="", formats=FORMATS)


def _bounds(reader: AssetReader) -> Box:
    """Give the bounds in degrees; they go all the way round when the raster crosses the antimeridian."""
    west, south, east, north = reader.get_geographic_bounds(WGS84_CRS)
    return (west, south, east, north) if west <= east else (-180.0, south, 180.0, north)


def _itself(request: Request) -> Link:
    path = request.scope["path"].removeprefix(request.scope["root_path"])
    asked = [pair for pair in request.query_params.multi_items() if pair[0] != "f"]
    return Addresses(request).link("self", path, JSON, "This document", asked)


def _passed_on(request: Request) -> list[tuple[str, str]]:
    return [pair for pair in request.query_params.multi_items() if pair[0] not in _OF_THE_DOCUMENT]


def _answer(tiler: TilerFactory, request: Request, document: BaseModel, form: str | None) -> Any:
    """Give a document as it is wanted: as such, or on a page."""
    accepted = accept_media_type(request.headers.get("accept", ""), [MediaType.html, MediaType.json])
    if (MediaType[form] if form else accepted) is not MediaType.html:
        return document
    title = getattr(document, "title", "Tilesets")
    return create_html_response(request, document, title=title, template_name="tileset", templates=tiler.templates)
