"""A small layer and a small raster in a CRS, made by others' writers, sent through validation and preparation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio.raw
import rasterio
import shapely
from affine import Affine
from numpy.typing import NDArray
from pyproj import Transformer
from tests.unit.handlers.crs_walk.systems import HALF, WGS84, Box, System

from graticule.handlers.trial import Trial
from graticule.handlers.vector.described import Source
from graticule.handlers.vector.preparing.features import open_features
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

CLOSE: Final = 1e-7  # degrees
PIXEL: Final = 1.0  # metres: less than two ways between datums differ
COLUMNS, ROWS = 8, 24  # near the poles fewer rows would be none in degrees
PIXELS: Final = np.arange(1, 1 + COLUMNS * ROWS, dtype="uint8").reshape(ROWS, COLUMNS)
BORDER: Final = 1e-4  # of a pixel: so close to two pixels, either is right
OUTLINE: Final = 65  # points along a side, by which bounds are found
DRIVERS: Final = {"gpkg": "GPKG", "fgb": "FlatGeobuf"}

Floats = NDArray[np.float64]


class Walk:
    """A folder with containers, in which CRSs are tried one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._trial = folder, Trial(folder)
        for container in ("bronze", "silver"):
            (folder / container).mkdir(exist_ok=True)

    def faults(self, system: System) -> list[str]:
        """Tell what is wrong with a layer and a raster in a CRS."""
        is_esri = system.name.startswith("ESRI:")  # GDAL writes other methods into a GeoPackage for some of its CRSs
        form = "fgb" if is_esri else list(DRIVERS)[int(system.x) % len(DRIVERS)]
        return [
            *(f"{system.name} {form}: {fault}" for fault in self._faults_of_layer(system, form)),
            *(f"{system.name} tif: {fault}" for fault in self._faults_of_raster(system)),
        ]

    def refusals(self, name: str) -> list[str | None]:
        """Send a layer and a raster in a CRS from which PROJ knows no way, and tell why they are refused."""
        system = System(name, 1000.0, 1000.0, 1.0)
        _write_layer(self._file("layer.fgb"), name, [shapely.Point(system.x, system.y)])
        _write_raster(self._file("raster.tif"), name, _place(system))
        return [
            self._validated("vector", "layer.fgb").error_message,
            self._validated("raster", "raster.tif").error_message,
        ]

    def _faults_of_layer(self, system: System, form: str) -> Iterator[str]:
        half, file = HALF / system.unit, self._file(f"layer.{form}")
        box = system.x - half, system.y - half, system.x + half, system.y + half
        shapes = _shapes(box)
        _write_layer(file, system.name, shapes)
        told = self._validated("vector", file.name)
        if told.error_message:
            yield told.error_message
            return
        source = Source.model_validate(told.output)
        prepared = self._prepared(source)
        if source.opening.is_swapped:
            yield "its axes are taken to be swapped"
        to_degrees = Transformer.from_crs(system.name, WGS84, always_xy=True)
        yield from _compared_boxes(_outline(box, to_degrees), source.bbox)
        for number, shape in enumerate(shapes):
            wanted = np.column_stack(to_degrees.transform(*shapely.get_coordinates(shape).T))
            yield from (f"feature {number}: {fault}" for fault in _compared_vertices(wanted, prepared[number]))

    def _prepared(self, source: Source) -> dict[int, Any]:
        with BlockingStorage(LocalStorage(self._folder)) as storage, open_features(storage, source, WGS84) as features:
            rows = [row for batch in features.batches() for row in batch.rows.to_pylist()]
        return {row["n"]: shapely.from_wkb(row["geom"]) for row in rows}

    def _faults_of_raster(self, system: System) -> Iterator[str]:
        file, place = self._file("raster.tif"), _place(system)
        _write_raster(file, system.name, place)
        known = _crs_in(file, system.name)
        if known is None:  # it cannot be said in a GeoTIFF
            return
        told = self._validated("raster", file.name)
        if told.error_message:
            yield told.error_message
            return
        to_degrees = Transformer.from_crs(known, WGS84, always_xy=True)
        (left, top), (right, bottom) = place @ (0, 0), place @ (COLUMNS, ROWS)
        outline = _outline((left, bottom, right, top), to_degrees)
        yield from _compared_boxes(outline, told.output["bbox"])
        made: Any = self._trial.run("raster.create_cog", source=f"bronze/{file.name}", target_crs=WGS84)
        if made.error_message:
            yield made.error_message
            return
        cog = _Cog.read(self._folder / "silver" / "job" / "out" / made.output["files"][0])
        yield from cog.compared_corner(outline)
        yield from cog.compared_pixels(place, to_degrees)

    def _file(self, name: str) -> Path:
        file = self._folder / "bronze" / name
        file.unlink(missing_ok=True)
        return file

    def _validated(self, kind: str, name: str) -> Any:
        return self._trial.run(f"{kind}.validate", container_name="bronze", blob_name=name)


@dataclass(frozen=True, slots=True)
class _Cog:
    """What was made of the raster."""

    pixels: NDArray[Any]
    valid: NDArray[np.bool_]
    transform: Affine

    @classmethod
    def read(cls, file: Path) -> "_Cog":
        with rasterio.open(file) as dataset:
            return cls(dataset.read(1), dataset.dataset_mask() != 0, dataset.transform)

    def compared_corner(self, outline: Box) -> Iterator[str]:
        west, north = self.transform.c, self.transform.f
        if not (abs(_turned(west - outline[0])) <= CLOSE and abs(north - outline[3]) <= CLOSE):
            yield f"the grid begins at {west}, {north}, and not at {outline[0]}, {outline[3]}"

    def compared_pixels(self, source: Affine, to_degrees: Transformer) -> Iterator[str]:
        """Compare each pixel with the one of the source in which PROJ has its centre."""
        rows, columns = np.indices(self.pixels.shape) + 0.5
        longitudes, latitudes = self.transform @ (columns, rows)
        across, down = ~source @ to_degrees.transform(_turned(longitudes), latitudes, direction="INVERSE")
        is_clear = (np.abs(across - np.round(across)) > BORDER) & (np.abs(down - np.round(down)) > BORDER)
        inside = (across >= 0) & (across < COLUMNS) & (down >= 0) & (down < ROWS)
        at = np.clip(np.floor(down), 0, ROWS - 1).astype(int), np.clip(np.floor(across), 0, COLUMNS - 1).astype(int)
        wrong = is_clear & ((self.valid != inside) | (inside & (self.pixels != PIXELS[at])))
        if wrong.any():
            yield f"{np.count_nonzero(wrong)} of {wrong.size} pixels have the value of another place"
        if np.count_nonzero(self.valid) < COLUMNS:
            yield f"only {np.count_nonzero(self.valid)} pixels are left"


def _write_layer(file: Path, crs: str, shapes: list[Any]) -> None:
    numbers = [np.arange(len(shapes))]
    pyogrio.raw.write(
        file, shapely.to_wkb(shapes), numbers, ["n"], driver=DRIVERS[file.suffix[1:]], geometry_type="Unknown", crs=crs
    )


def _write_raster(file: Path, crs: str, place: Affine) -> None:
    profile = {"driver": "GTiff", "width": COLUMNS, "height": ROWS, "count": 1, "dtype": "uint8", "transform": place}
    with rasterio.Env(GDAL_PAM_ENABLED="NO"), rasterio.open(file, "w", crs=crs, **profile) as dataset:
        dataset.write(PIXELS, 1)


def _crs_in(file: Path, name: str) -> str | None:
    """Give the CRS that a GeoTIFF holds: it has no place for some methods, and for others only for what is alike."""
    with rasterio.Env(OSR_WKT_FORMAT="WKT2_2019"), rasterio.open(file) as dataset:
        return (name if name.startswith("EPSG:") else str(dataset.crs.to_wkt())) if dataset.crs else None


def _place(system: System) -> Affine:
    pixel = PIXEL / system.unit
    return Affine(pixel, 0, system.x - pixel * COLUMNS / 2, 0, -pixel, system.y + pixel * ROWS / 2)


def _shapes(box: Box) -> list[Any]:
    west, south, east, north = box
    middle = (west + east) / 2, (south + north) / 2
    points = [shapely.Point(west, south), shapely.Point(*middle), shapely.Point(east, north)]
    return [*points, shapely.LineString([(west, north), middle, (east, south)]), shapely.box(*box)]


def _outline(box: Box, to_degrees: Transformer) -> Box:
    """Give the bounds in degrees, the east beyond 180 across the antimeridian."""
    west, south, east, north = box
    xs, ys = np.meshgrid(np.linspace(west, east, OUTLINE), np.linspace(south, north, OUTLINE))
    longitudes, latitudes = to_degrees.transform(xs, ys)
    longitudes = np.unwrap(np.unwrap(longitudes, period=360, axis=1), period=360, axis=0)
    return float(longitudes.min()), float(latitudes.min()), float(longitudes.max()), float(latitudes.max())


def _compared_boxes(wanted: Box, got: list[float]) -> Iterator[str]:
    off = np.subtract(wanted, got)
    off[::2] = _turned(off[::2])
    if not np.abs(off).max() <= CLOSE:
        yield f"its bbox is {got}, and not {list(wanted)}"


def _compared_vertices(wanted: Floats, made: Any) -> Iterator[str]:
    """Compare where vertices are; those that are added at the antimeridian are left out."""
    got = shapely.get_coordinates(made)
    apart = wanted[:, None] - got[None]
    apart[..., 0] = _turned(apart[..., 0])
    off = np.abs(apart).max(axis=2)
    if not len(got) or not (off.min(axis=1) <= CLOSE).all():
        yield f"it is at {got[:1].tolist()}, and not at {wanted[:1].tolist()}"
    elif not ((off.min(axis=0) <= CLOSE) | (np.abs(got[:, 0]) == 180)).all():
        yield "it has vertices where there are none"


def _turned(degrees: Any) -> Any:
    return (degrees + 180) % 360 - 180
