"""The application of rasters behind a gate that serves one blob, and blobs for it, made by the handlers themselves."""

import io
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import rasterio
from affine import Affine
from fastapi import FastAPI
from numpy.typing import NDArray
from starlette.types import Receive, Scope, Send
from tests.integration.handlers.raster.desk import Desk, opened_desk

from graticule.core.models.platform import DataType
from graticule.serve.served import Served

ROOT = "/tiles/asset-1"
ADDRESS = "https://maps.example.org"
TILING: Mapping[str, Any] = {"tile_size": 512, "overlap": 64}
# What `create_tiles` lets be ignored in a process; here the rules of pytest stand above it.
IGNORED = (
    "ignore::rio_tiler.errors.InvalidDatatypeWarning",
    "ignore::rio_tiler.errors.NoOverviewWarning",
    "ignore::rasterio.errors.NotGeoreferencedWarning",
    "ignore:BBOX crossing the Antimeridian line:UserWarning",
    "ignore::RuntimeWarning:rio_tiler",
    "ignore:Use `@` matmul:PendingDeprecationWarning",
)


class OneBlob:
    """A gate that always leads to one blob."""

    def __init__(self, app: FastAPI, blob_path: str | None) -> None:
        self._app = app
        self._served = Served("asset-1", 1, 1, DataType.RASTER, title="A raster", blob_path=blob_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        inner = {"root_path": ROOT, "app_root_path": ROOT, "path": ROOT + scope["path"]}
        await self._app({**scope, **inner, "state": {"served": self._served, "root": ""}}, receive, send)


def client(app: FastAPI, blob_path: str | None) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(OneBlob(app, blob_path)), base_url=ADDRESS)


async def fetched(app: FastAPI, blob_path: str, address: str, **given: Any) -> httpx.Response:
    method = "POST" if given else "GET"
    async with client(app, blob_path) as caller:
        return await caller.request(method, address, **given)


async def pixels(app: FastAPI, blob_path: str, address: str, **given: Any) -> NDArray[Any]:
    """Give a picture as an array: its bands, and its mask last."""
    answer = await fetched(app, blob_path, address, **given)
    assert answer.status_code == 200, answer.text
    found: NDArray[Any] = np.load(io.BytesIO(answer.content))
    return found


def make_both(root: Path, kind: str, *, width: int, height: int, tier: str = "analysis", **tiling: Any) -> None:
    """Put a raster into the storage twice: as one COG, and as a mosaic."""
    with opened_desk(root) as desk:
        source = desk.source(kind, f"{kind}.tif", width=width, height=height)
        chosen: dict[str, Any] = {"output_tier": tier, "band_names": {"1": "first band"}}
        whole = desk.run("raster.create_cog", source=source, blob_prefix=f"{kind}/whole", **chosen)
        _, _, mosaic = desk.chain(source, blob_prefix=f"{kind}/tiles", **chosen, **(tiling or TILING))
        _promote(desk, f"{kind}/whole", whole["files"])
        _promote(desk, f"{kind}/tiles", mosaic["files"])


def _promote(desk: Desk, prefix: str, names: Sequence[str]) -> None:
    for name in names:
        target = desk.file(f"silver/{prefix}/{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(desk.staged(name), target)


def cog(kind: str) -> str:
    return f"silver/{kind}/whole/cogs/{kind}.tif"


def mosaic(kind: str) -> str:
    return f"silver/{kind}/tiles/mosaics/{kind}.json"


def write_columns(file: Path, west: float, *, degrees: float = 2.0, width: int = 400, height: int = 200) -> Path:
    """Write a raster in degrees whose values are its columns, with overviews."""
    file.parent.mkdir(parents=True, exist_ok=True)
    size = degrees / width
    profile = {
        "driver": "COG",
        "width": width,
        "height": height,
        "count": 1,
        "dtype": "float32",
        "crs": "EPSG:4326",
        "transform": Affine(size, 0, west, 0, -size, 1.0),
        "nodata": -1,
        "overview_resampling": "nearest",
    }
    with rasterio.open(file, "w", **profile) as dataset:
        dataset.write(np.tile(np.arange(width, dtype="float32"), (1, height, 1)))
    return file
