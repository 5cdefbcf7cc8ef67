"""Mosaics: the files that one names, found and checked once, and kept while it does not change."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, Protocol

import rasterio
from affine import Affine
from rasterio.errors import RasterioError

from graticule.core import json_codec
from graticule.core.errors import GraticuleError, NotFound, OutputUnreadable
from graticule.serve.tiles.gdal import GDAL_ENVIRONMENT, open_geotiff, without_names
from graticule.serve.tiles.virtual import Box, DataTile, Span, VirtualRaster, bands_of, virtual_raster
from graticule.storage.protocol import BlobInfo

MOST_KEPT: Final = 64
MOST_TILES_KEPT: Final = 200_000  # of all mosaics together
_FOLDERS: Final = {"mosaic": "mosaics", "scheme": "schemes", "tiles": "cogs"}


def is_mosaic(blob_path: str) -> bool:
    """Tell whether a blob is a mosaic; all others are COGs."""
    return blob_path.endswith(".json")


class Blobs(Protocol):
    """What is needed of a storage."""

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens a blob."""

    async def get(self, path: str) -> bytes:
        """Read a blob as a whole."""

    async def stat(self, path: str) -> BlobInfo:
        """Tell what is known of a blob."""


class Mosaics:
    """Gives mosaics as virtual rasters, and keeps those that were asked for last."""

    def __init__(self, storage: Blobs) -> None:
        self._storage = storage
        self._kept: OrderedDict[tuple[str, str], VirtualRaster] = OrderedDict()
        self._readings: dict[tuple[str, str], asyncio.Task[VirtualRaster]] = {}

    async def find(self, blob_path: str) -> VirtualRaster:
        """Give the mosaic as it is now."""
        try:
            key = (blob_path, (await self._storage.stat(blob_path)).etag)
            return self._known(key) or await self._found(key)
        except NotFound:
            raise _unreadable("a file of the mosaic is not there") from None

    def _known(self, key: tuple[str, str]) -> VirtualRaster | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    async def _found(self, key: tuple[str, str]) -> VirtualRaster:
        reading = self._readings.get(key)
        if reading is None:  # a burst of requests costs one reading
            reading = self._readings[key] = asyncio.create_task(self._read_once(key))
        return await asyncio.shield(reading)  # one caller that goes away does not end that of the others

    async def _read_once(self, key: tuple[str, str]) -> VirtualRaster:
        try:
            found = await self._read(key[0])
            self._keep(key, found)
            return found
        finally:
            del self._readings[key]

    def _keep(self, key: tuple[str, str], found: VirtualRaster) -> None:
        for old in [other for other in self._kept if other[0] == key[0]]:
            del self._kept[old]
        self._kept[key] = found
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_KEPT or sum(len(each.tiles) for each in self._kept.values()) > MOST_TILES_KEPT
        ):
            self._kept.popitem(last=False)

    async def _read(self, blob_path: str) -> VirtualRaster:
        prefix, stem = _place(blob_path)
        mosaic = json_codec.decode(await self._storage.get(blob_path))
        scheme = json_codec.decode(await self._storage.get(f"{prefix}/{_FOLDERS['scheme']}/{stem}.geojson"))
        try:
            return await asyncio.to_thread(self._made, prefix, mosaic, scheme)
        except (KeyError, TypeError, ValueError, RasterioError) as error:
            raise _unreadable(without_names(repr(error))) from None

    def _made(self, prefix: str, mosaic: Mapping[str, Any], scheme: Mapping[str, Any]) -> VirtualRaster:
        names = _named(prefix, mosaic)
        tiles = [_tile(names, feature["properties"]) for feature in scheme["features"]]
        grid = scheme["grid"]
        largest = max(tiles, key=lambda tile: tile.window.width * tile.window.height)
        name = self._storage.readable(largest.path)
        with rasterio.Env(**GDAL_ENVIRONMENT), open_geotiff(name) as dataset:
            bands = bands_of(name, dataset)
            whole = Span(0, int(grid["width"]), int(grid["height"]), Affine(*grid["transform"]))
            return virtual_raster(dataset.crs, whole, bands, tiles)


def _place(blob_path: str) -> tuple[str, str]:
    """Give the prefix of a mosaic, below which all of its files lie, and its name."""
    folder, _, name = blob_path.rpartition("/")
    prefix, _, last = folder.rpartition("/")
    if last != _FOLDERS["mosaic"] or "/" not in prefix:
        raise _unreadable("the mosaic lies in no folder of mosaics")
    return prefix, name.removesuffix(".json")


def _named(prefix: str, mosaic: Mapping[str, Any]) -> dict[str, str]:
    """Give the paths of all files that a mosaic names, by their names; one that lies elsewhere is refused."""
    folder = f"{prefix}/{_FOLDERS['tiles']}/"
    found: dict[str, str] = {}
    for path in {path for paths in mosaic["tiles"].values() for path in paths}:
        name = path.removeprefix(folder)
        if not path.startswith(folder) or "/" in name:
            raise _unreadable("the mosaic names a file that is not one of its own")
        found[name] = path
    return found


def _tile(names: Mapping[str, str], tile: Mapping[str, Any]) -> DataTile:
    return DataTile(names[f"{tile['tile_id']}.tif"], _box(tile["window"]), _box(tile["core"]))


def _box(numbers: list[int]) -> Box:
    column, row, width, height = map(int, numbers)
    if min(column, row) < 0 or min(width, height) < 1:
        raise ValueError("a window is not one")
    return Box(column, row, width, height)


def _unreadable(detail: str) -> GraticuleError:
    return OutputUnreadable("The data of this asset cannot be read now.", detail=detail)
