"""TiTiler's endpoints, but for those that are written here: statistics and TileJSON with bounds, and our own map."""

import threading
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import rasterio
from attrs import define
from fastapi import Body, Depends, Path, Request
from fastapi.responses import HTMLResponse
from geojson_pydantic.features import Feature, FeatureCollection
from geojson_pydantic.geometries import Geometry
from morecantile import TileMatrixSet
from morecantile.defaults import TileMatrixSets
from rio_tiler.constants import WGS84_CRS
from rio_tiler.models import ImageData
from titiler.core.factory import TilerFactory
from titiler.core.models.mapbox import TileJSON
from titiler.core.models.responses import Point, StatisticsGeoJSON
from titiler.core.resources.enums import ImageType
from titiler.core.resources.responses import GeoJSONResponse, JSONResponse

from graticule.core.errors import InvalidInput
from graticule.serve.served import TheServed
from graticule.serve.tiles.dependencies import TileSize, Zoom, coord_crs, cover_scale, dst_crs
from graticule.serve.tiles.limits import (
    DEEPEST_PROPERTIES,
    MOST_CATEGORIES,
    MOST_COORDINATES,
    MOST_FEATURES,
)
from graticule.serve.tiles.reader import AssetReader, coordinate_count
from graticule.serve.tiles.statistics import RasterStatistics, count_image
from graticule.serve.tiles.tilesets import TileMatrixSetId, register_tilesets, shown_zooms
from graticule.serve.tilesets import GRIDS
from graticule.serve.viewer import raster_page


class _OwnGrids(TileMatrixSets):
    """The grids, copied once for each thread: what computes in them is not made for several at a time.

    The library copies a grid whenever it is asked for one, which takes a twentieth of the time of a tile.
    """

    def get(self, identifier: str) -> TileMatrixSet:
        """Give a grid that this thread alone has."""
        known: dict[str, TileMatrixSet] = _of_thread.__dict__
        if identifier not in known:
            known[identifier] = super().get(identifier)
        return known[identifier]


_of_thread = threading.local()
TILE_MATRIX_SETS: Final = _OwnGrids(GRIDS)
HALF_TURN: Final = 180.0

Shape = Feature[Geometry, dict[str, Any]]
# What a TileJSON document is asked with, and tiles are not.
_OF_THE_DOCUMENT: Final = frozenset({"tile_format", "minzoom", "maxzoom"})


class PointValues(Point):
    """What is at a point; integers stay such."""

    values: list[int | float | None]


@define(kw_only=True)
class AssetTiler(TilerFactory):
    """The endpoints of one raster."""

    def statistics(self) -> None:
        """Register the statistics of all of the raster, and of shapes."""
        self._whole_statistics()
        self._shape_statistics()

    def _whole_statistics(self) -> None:
        @self.router.get(
            "/statistics",
            response_class=JSONResponse,
            response_model=dict[str, RasterStatistics],
            operation_id=f"{self.operation_prefix}getStatistics",
        )
        def statistics(
            *,
            src_path: Annotated[Any, Depends(self.path_dependency)],
            layer_params: Annotated[Any, Depends(self.layer_dependency)],
            dataset_params: Annotated[Any, Depends(self.dataset_dependency)],
            image_params: Annotated[Any, Depends(self.img_preview_dependency)],
            post_process: Annotated[Any, Depends(self.process_dependency)],
            stats_params: Annotated[Any, Depends(self.stats_dependency)],
            histogram_params: Annotated[Any, Depends(self.histogram_dependency)],
            env: Annotated[Any, Depends(self.environment_dependency)],
        ) -> Any:
            """Give statistics of the raster, or of what is made of its bands."""
            with rasterio.Env(**env), self.reader(src_path.for_statistics()) as reader:
                image = reader.preview(**layer_params.as_dict(), **image_params.as_dict(), **dataset_params.as_dict())
                image = post_process(image) if post_process else image
                return _counted(image, stats_params.as_dict(), histogram_params.as_dict())

    def _shape_statistics(self) -> None:
        @self.router.post(
            "/statistics",
            response_model=StatisticsGeoJSON,
            response_model_exclude_none=True,
            response_class=GeoJSONResponse,
            operation_id=f"{self.operation_prefix}postStatisticsForGeoJSON",
        )
        def geojson_statistics(
            *,
            geojson: Annotated[FeatureCollection[Shape] | Shape, Body(description="A feature, or a few of them.")],
            src_path: Annotated[Any, Depends(self.path_dependency)],
            shape_crs: Annotated[Any, Depends(coord_crs)],
            picture_crs: Annotated[Any, Depends(dst_crs)],
            layer_params: Annotated[Any, Depends(self.layer_dependency)],
            dataset_params: Annotated[Any, Depends(self.dataset_dependency)],
            image_params: Annotated[Any, Depends(self.img_part_dependency)],
            post_process: Annotated[Any, Depends(self.process_dependency)],
            scale: Annotated[int, Depends(cover_scale)],
            stats_params: Annotated[Any, Depends(self.stats_dependency)],
            histogram_params: Annotated[Any, Depends(self.histogram_dependency)],
            env: Annotated[Any, Depends(self.environment_dependency)],
        ) -> Any:
            """Give statistics of what lies in each feature, weighted by how much of a pixel it covers."""
            features = geojson.features if isinstance(geojson, FeatureCollection) else [geojson]
            shapes = _checked_shapes(features)
            crs = shape_crs or WGS84_CRS
            reading = {**layer_params.as_dict(), **image_params.as_dict(), **dataset_params.as_dict()}
            with rasterio.Env(**env), self.reader(src_path.for_statistics(len(shapes))) as reader:
                for feature, given in zip(features, shapes, strict=True):
                    shape = reader.turned(given, crs)
                    image = reader.feature(
                        shape, shape_crs=crs, dst_crs=picture_crs, align_bounds_with_dataset=True, **reading
                    )
                    covered = image.get_coverage_array(shape, shape_crs=crs, cover_scale=scale)
                    image = post_process(image) if post_process else image
                    found = _counted(image, stats_params.as_dict(), histogram_params.as_dict(), coverage=covered)
                    feature.properties = {**(feature.properties or {}), "statistics": found}
            return geojson

    def point(self) -> None:
        """Register the values at a point; the library would make floats of integers."""

        @self.router.get(
            "/point/{lon},{lat}",
            response_model=PointValues,
            response_class=JSONResponse,
            operation_id=f"{self.operation_prefix}getDataForPoint",
        )
        def point(
            lon: Annotated[float, Path(description="Longitude")],
            lat: Annotated[float, Path(description="Latitude")],
            *,
            src_path: Annotated[Any, Depends(self.path_dependency)],
            point_crs: Annotated[Any, Depends(coord_crs)],
            layer_params: Annotated[Any, Depends(self.layer_dependency)],
            dataset_params: Annotated[Any, Depends(self.dataset_dependency)],
            env: Annotated[Any, Depends(self.environment_dependency)],
        ) -> Any:
            """Return the values of all bands, or of what is made of them, at a point."""
            with rasterio.Env(**env), self.reader(src_path) as reader:
                found = reader.point(
                    lon,
                    lat,
                    coord_crs=point_crs or WGS84_CRS,
                    **layer_params.as_dict(),
                    **dataset_params.as_dict(),
                )
            return {
                "coordinates": [lon, lat],
                "values": found.array.tolist(),
                "band_names": found.band_names,
                "band_descriptions": found.band_descriptions,
            }

    def tilesets(self) -> None:
        """Register what is told of the tiles."""
        register_tilesets(self)

    def tilejson(self) -> None:
        """Register the TileJSON document."""

        @self.router.get(
            "/{tileMatrixSetId}/tilejson.json",
            response_model=TileJSON,
            response_model_exclude_none=True,
            operation_id=f"{self.operation_prefix}getTileJSON",
        )
        def tilejson(
            *,
            request: Request,
            served: TheServed,
            tileMatrixSetId: TileMatrixSetId,  # noqa: N803 - its name in the path
            src_path: Annotated[Any, Depends(self.path_dependency)],
            tile_params: Annotated[Any, Depends(self.tile_dependency)],
            layer_params: Annotated[Any, Depends(self.layer_dependency)],
            dataset_params: Annotated[Any, Depends(self.dataset_dependency)],
            post_process: Annotated[Any, Depends(self.process_dependency)],
            colormap: Annotated[Any, Depends(self.colormap_dependency)],
            render_params: Annotated[Any, Depends(self.render_dependency)],
            env: Annotated[Any, Depends(self.environment_dependency)],
            tilesize: TileSize = 512,
            tile_format: ImageType | None = None,
            minzoom: Zoom = None,
            maxzoom: Zoom = None,
        ) -> Any:
            """Tell map clients where the tiles are."""
            named = {} if tile_format is None else {"format": tile_format.value}
            place = self.url_for(request, "tile", tileMatrixSetId=tileMatrixSetId, z="{z}", x="{x}", y="{y}", **named)
            kept = [(name, text) for name, text in request.query_params.multi_items() if name not in _OF_THE_DOCUMENT]
            if "tilesize" not in request.query_params:
                kept.append(("tilesize", str(tilesize)))
            tms = self.supported_tms.get(tileMatrixSetId)
            with rasterio.Env(**env), self.reader(src_path, tms=tms) as reader:
                zooms = (minzoom, maxzoom)
                described = _described(reader, tms.rasterio_geographic_crs, zooms)
            return {"name": served.title, "tiles": [f"{place}?{urlencode(kept)}"], **described}

    def map_page(self) -> None:
        """Register the map."""

        @self.router.get(
            "/{tileMatrixSetId}/map.html",
            response_class=HTMLResponse,
            operation_id=f"{self.operation_prefix}getMapViewer",
        )
        def map_viewer(
            *,
            request: Request,
            served: TheServed,
            tileMatrixSetId: Annotated[Literal["WebMercatorQuad"], Path()],  # noqa: N803 - its name in the path
            tile_params: Annotated[Any, Depends(self.tile_dependency)],
            layer_params: Annotated[Any, Depends(self.layer_dependency)],
            dataset_params: Annotated[Any, Depends(self.dataset_dependency)],
            post_process: Annotated[Any, Depends(self.process_dependency)],
            colormap: Annotated[Any, Depends(self.colormap_dependency)],
            render_params: Annotated[Any, Depends(self.render_dependency)],
            tilesize: TileSize = 512,
            tile_format: ImageType | None = None,
            minzoom: Zoom = None,
            maxzoom: Zoom = None,
        ) -> HTMLResponse:
            """Show the raster on a map; all parameters are passed on."""
            document = self.url_for(request, "tilejson", tileMatrixSetId=tileMatrixSetId)
            asked = request.url.query
            return raster_page(
                request, tilejson_url=f"{document}?{asked}" if asked else document, title=served.title or "Map"
            )

    def register_routes(self) -> None:
        """Register TiTiler's routes, and the map."""
        super().register_routes()  # type: ignore[no-untyped-call]
        self.map_page()


def _checked_shapes(features: Sequence[Shape]) -> list[dict[str, Any]]:
    if not 1 <= len(features) <= MOST_FEATURES:
        raise InvalidInput(f"There are 1 to {MOST_FEATURES} features in one request.")
    if any(_is_deep(feature.properties) for feature in features):
        raise InvalidInput(f"properties: there are at most {DEEPEST_PROPERTIES} levels of them.")
    shapes = [feature.model_dump(exclude={"properties"}, exclude_none=True) for feature in features]
    if sum(map(coordinate_count, shapes)) > MOST_COORDINATES:
        raise InvalidInput(f"The features have at most {MOST_COORDINATES:,} coordinates together.")
    return shapes


def _is_deep(value: Any) -> bool:
    """Tell whether properties have too many levels to be sent back."""
    level = [value]
    for _ in range(DEEPEST_PROPERTIES):
        level = [part for each in level if isinstance(each, dict | list) for part in _parts(each)]
    return any(isinstance(each, dict | list) for each in level)


def _parts(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _counted(
    image: ImageData, wanted: dict[str, Any], histogram: dict[str, Any], coverage: Any = None
) -> dict[str, RasterStatistics]:
    """Give the statistics of a picture; of categories not more than anyone would read."""
    found = count_image(image, wanted, histogram, coverage)
    if wanted.get("categorical") and any(len(band.histogram[1]) > MOST_CATEGORIES for band in found.values()):
        raise InvalidInput(
            f"There are more than {MOST_CATEGORIES} values here: they are no categories.",
            hint="Name those that are to be counted with c=1&c=2.",
        )
    return found


def _described(reader: AssetReader, crs: Any, zooms: tuple[int | None, int | None]) -> dict[str, Any]:
    """Say where the raster lies, and at which zoom levels it is seen.

    The bounds of a TileJSON document must not go across the antimeridian. There they go around the earth, and
    `data_bounds` says where the data are.
    """
    west, south, east, north = reader.get_geographic_bounds(crs)
    minzoom, maxzoom = shown_zooms(reader, *zooms)
    unrolled = east + 2 * HALF_TURN if west > east else east
    middle = (west + unrolled) / 2
    described = {
        "bounds": [west, south, east, north] if west <= east else [-HALF_TURN, south, HALF_TURN, north],
        "center": [middle if middle <= HALF_TURN else middle - 2 * HALF_TURN, (south + north) / 2, minzoom],
        "minzoom": minzoom,
        "maxzoom": maxzoom,
        "band_descriptions": reader.info().band_descriptions,
        "data_type": reader.dataset.dtypes[0],
    }
    return described if west <= east else {**described, "data_bounds": [west, south, unrolled, north]}
