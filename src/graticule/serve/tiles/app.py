"""The application that serves rasters, one of which a request reaches: `request.state.served`."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant, get_parameterless_sub_dependant
from fastapi.routing import APIRoute
from rasterio.errors import NotGeoreferencedWarning
from rio_tiler.errors import ExpressionMixingWarning, InvalidDatatypeWarning, NoOverviewWarning
from titiler.core.dependencies import CoordCRSParams, CRSParams, DstCRSParams
from titiler.core.factory import TMSFactory

from graticule import __version__
from graticule.core.errors import NotFound
from graticule.http.application import Application
from graticule.http.problems import any_problem, install_problem_handlers
from graticule.serve.openapi import add_description, with_server
from graticule.serve.parameters import described, read_in_the_loop, refuse_unknown_parameters
from graticule.serve.served import TheServed
from graticule.serve.tiles import landing
from graticule.serve.tiles.budget import budget_of
from graticule.serve.tiles.dependencies import (
    DatasetParams,
    HistogramParams,
    LayerParams,
    RenderParams,
    SizeParams,
    StatisticsParams,
    TileParams,
    algorithm,
    bounds_crs,
    color_map,
    coord_crs,
    dst_crs,
    readable_accept,
    zooms,
)
from graticule.serve.tiles.errors import install_raster_errors
from graticule.serve.tiles.factory import TILE_MATRIX_SETS, AssetTiler
from graticule.serve.tiles.gdal import GDAL_ENVIRONMENT, keep_names_out_of_logs
from graticule.serve.tiles.mosaics import Blobs, Mosaics, is_mosaic
from graticule.serve.tiles.pages import PAGES
from graticule.serve.tiles.reader import Asset, AssetReader
from graticule.serve.tiles.rendering import KnownRanges, asked_picture, render
from graticule.serve.tiles.signed_names import SignedNames

# Dependencies that TiTiler's endpoints name themselves, and what stands in their place.
_IN_PLACE_OF: Final[Mapping[Any, Callable[..., Any]]] = {
    CoordCRSParams: coord_crs,
    DstCRSParams: dst_crs,
    CRSParams: bounds_crs,
}
# Parameters that TiTiler's endpoints declare themselves, without bounds, and what bounds them.
_BOUNDED_BY: Final[Mapping[str, Callable[..., Any]]] = {
    "maxzoom": zooms,
    "f": readable_accept,
}


def create_tiles(storage: Blobs) -> FastAPI:
    """Make the application; the gate in front of it decides what is served, and puts it into the request's state."""
    app = Application(
        title="Raster tiles",
        version=__version__,
        responses=any_problem(),
        openapi_url=None,  # FastAPI's own would gather the addresses of all assets that are asked for
        docs_url=None,
        redoc_url=None,
    )
    install_problem_handlers(app)
    install_raster_errors(app)
    for router in (landing.router, _tiler(storage).router, _tile_matrix_sets().router):
        app.include_router(router)
    for route in app.routes:
        if isinstance(route, APIRoute):
            _bound(route)
    add_description(app, lambda: described(app), with_server)
    refuse_unknown_parameters(app)
    read_in_the_loop(app)
    keep_names_out_of_logs()
    _ignore_warnings()
    return app


def _ignore_warnings() -> None:
    """Leave out what the libraries say of pictures anew with each request, and nobody can mend."""
    for kind in (InvalidDatatypeWarning, NoOverviewWarning, ExpressionMixingWarning, NotGeoreferencedWarning):
        warnings.simplefilter("ignore", kind)
    warnings.filterwarnings("ignore", "BBOX crossing the Antimeridian line", UserWarning)
    for module in ("rio_tiler", "titiler", "numpy"):  # values that a type does not have are missing ones
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=module)


def _tiler(storage: Blobs) -> AssetTiler:
    return AssetTiler(
        reader=AssetReader,
        path_dependency=_asset_dependency(storage),
        layer_dependency=LayerParams,
        dataset_dependency=DatasetParams,
        tile_dependency=TileParams,
        stats_dependency=StatisticsParams,
        histogram_dependency=HistogramParams,
        img_preview_dependency=SizeParams,
        img_part_dependency=SizeParams,
        process_dependency=algorithm,  # type: ignore[arg-type]
        colormap_dependency=color_map,
        render_dependency=RenderParams,
        environment_dependency=_environment,  # type: ignore[arg-type]
        supported_tms=TILE_MATRIX_SETS,
        templates=PAGES,
        render_func=render,
        add_viewer=False,
    )


def _tile_matrix_sets() -> TMSFactory:
    return TMSFactory(supported_tms=TILE_MATRIX_SETS, templates=PAGES)


def _asset_dependency(storage: Blobs) -> Callable[..., Any]:
    mosaics, ranges, names = Mosaics(storage), KnownRanges(), SignedNames(storage.readable)

    async def asset(request: Request, served: TheServed) -> Asset:
        path = served.blob_path
        if path is None:
            raise NotFound("This asset has no raster.")
        mosaic = await mosaics.find(path) if is_mosaic(path) else None
        picture = asked_picture(request, (path, served.revision, served.output_hash), ranges)
        readable = partial(names.name, f"{served.revision} {served.output_hash}")
        return Asset(path, readable, picture, mosaic, budget_of(request.query_params))

    return asset


async def _environment() -> Mapping[str, str]:
    return GDAL_ENVIRONMENT


def _bound(route: APIRoute) -> None:
    """Bound the parameters of a route that come from the library itself."""
    names = {field.alias for field in route.dependant.query_params}
    for name, dependency in _BOUNDED_BY.items():
        if name in names:
            bounding = get_parameterless_sub_dependant(depends=Depends(dependency), path=route.path_format)
            route.dependant.dependencies.insert(0, bounding)
    route.dependant.dependencies[:] = [_replaced(each, route.path_format) for each in route.dependant.dependencies]


def _replaced(dependant: Dependant, path: str) -> Dependant:
    own = _IN_PLACE_OF.get(dependant.call)
    if own is None:
        return dependant
    return get_dependant(path=path, call=own, name=dependant.name)
