"""What the libraries raise, as problems that a caller can mend, or as our own that may pass."""

from typing import Final

from fastapi import FastAPI, Request, Response
from rasterio._err import CPLE_BaseError
from rasterio.errors import RasterioError, RasterioIOError
from rio_tiler.errors import InvalidExpression, PointOutsideBounds, RioTilerError, TileOutsideBounds

from graticule.core.errors import GraticuleError, InvalidInput, NotFound, OutputUnreadable
from graticule.http.problems import answer_error
from graticule.serve.tiles.gdal import without_names
from graticule.serve.unreadable import answer_unreadable

LIBRARY_ERRORS: Final = (RioTilerError, RasterioError, CPLE_BaseError)


def install_raster_errors(app: FastAPI) -> None:
    """Answer errors of the libraries with problem documents that name no file."""
    app.add_exception_handler(OutputUnreadable, answer_unreadable)
    for kind in LIBRARY_ERRORS:
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    problem = told(error)
    answer = answer_unreadable if isinstance(problem, OutputUnreadable) else answer_error
    return await answer(request, problem)


def told(error: Exception) -> GraticuleError:
    """Say what an error of the libraries means."""
    match error:
        case TileOutsideBounds():
            return NotFound("The raster has nothing there.", hint="Its bounds stand in info.geojson.")
        case PointOutsideBounds():
            return NotFound("The point lies outside of the raster.", hint="Its bounds stand in info.geojson.")
        case InvalidExpression():
            return InvalidInput("The expression cannot be evaluated.", detail=without_names(str(error)))
        case RasterioIOError():
            return OutputUnreadable("The data of this asset cannot be read now.", detail=without_names(str(error)))
    return InvalidInput("The raster cannot be read in this way.", detail=without_names(repr(error)))
