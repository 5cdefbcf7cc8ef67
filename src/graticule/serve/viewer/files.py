"""The files that the map pages load: our own, and MapLibre's."""

import os
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from graticule.core.errors import Unavailable

FOLDER: Final = Path(__file__).parent / "static"
MAPLIBRE: Final = ("maplibre-gl.mjs", "maplibre-gl-worker.mjs", "maplibre-gl.css")


def static_files() -> StaticFiles:
    """Make the application that is mounted at `/static` of the process."""
    return _Revalidated(directory=FOLDER)


def require_maplibre(folder: Path = FOLDER) -> None:
    """Refuse to show a page whose map could not be drawn."""
    if all((folder / "maplibre" / name).is_file() for name in MAPLIBRE):
        return
    raise Unavailable(
        "This installation has no map viewer: the files of MapLibre GL are missing.",
        hint="In a checkout, run `make setup`; otherwise install a wheel that was built after it.",
    )


class _Revalidated(StaticFiles):
    """Files that a browser keeps and asks about: after an upgrade no page mixes old ones with new ones."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Answer with a file, or with 304 when the browser has just that."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response
