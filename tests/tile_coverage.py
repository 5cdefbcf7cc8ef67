"""What vector tiles cover on screen, and what the data cover: drawn by one rule, decoded without PostGIS and GDAL.

The rule: at 512 pixels a tile, a feature leaves all the pixels that it touches. The western and northern edges of a
pixel are its own, the others its neighbours'.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.features import rasterize

PIXELS = 512
WORLD = 2 * 20037508.342789244
COUNT = "graticule:count"
LARGE = 24  # pixels: what is larger is drawn by GDAL, and the rest pixel by pixel

Shapes = NDArray[Any]
Picture = NDArray[np.bool_]


# Random features


def random_features(kind: str, count: int, seed: int) -> Shapes:
    """Return polygons, lines or points in degrees: half of them anywhere, half in clusters; of 10 m to 300 km."""
    rng = np.random.default_rng(seed)
    longitudes, latitudes = _places(rng, count)
    if kind == "points":
        return np.asarray(shapely.points(longitudes, latitudes))
    sizes = 10 ** rng.uniform(1, 5.5, count) / 111_320
    corners = 8
    if kind == "polygons":
        angles = np.sort(rng.uniform(0, 2 * np.pi, (count, corners)), axis=1)
        reach = rng.uniform(0.3, 0.5, (count, corners))
        away = np.stack([reach * np.cos(angles), reach * np.sin(angles)], -1)
    else:
        away = rng.normal(size=(count, corners, 2)).cumsum(1) / 4
    away *= sizes[:, None, None]
    away[..., 0] /= np.cos(np.radians(latitudes))[:, None]
    places = np.stack([longitudes, latitudes], -1)[:, None, :] + away
    places = np.clip(places, [-180, -85], [180, 85])
    if kind == "lines":
        return np.asarray(shapely.linestrings(places))
    return np.asarray(shapely.polygons(np.concatenate([places, places[:, :1]], axis=1)))


def _places(rng: np.random.Generator, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    clusters = 200
    which = rng.integers(0, clusters, count)
    spread = (10 ** rng.uniform(-1.5, 1, clusters))[which]
    is_clustered = rng.random(count) < 0.5
    longitudes = np.where(
        is_clustered,
        rng.uniform(-170, 170, clusters)[which] + rng.normal(size=count) * spread,
        rng.uniform(-180, 180, count),
    )
    anywhere = np.degrees(np.arcsin(rng.uniform(-0.985, 0.985, count)))
    latitudes = np.where(
        is_clustered, rng.uniform(-60, 65, clusters)[which] + rng.normal(size=count) * spread / 2, anywhere
    )
    return np.clip(longitudes, -180, 180), np.clip(latitudes, -84, 84)


# Tiles


def decode_tile(content: bytes) -> list[tuple[dict[str, Any], Any]]:
    """Return the properties and the shape of each feature, in pixels from the upper left corner."""
    features = []
    for number, layer in _fields(memoryview(content)):
        assert number == 3
        parts: dict[int, list[Any]] = {}
        for part, value in _fields(layer):
            parts.setdefault(part, []).append(value)
        assert bytes(parts[1][0]) == b"features"
        keys = [str(bytes(key), "utf-8") for key in parts.get(3, [])]
        values = [_value(value) for value in parts.get(4, [])]
        scale = PIXELS / parts[5][0]
        features += [_feature(feature, keys, values, scale) for feature in parts.get(2, [])]
    return features


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    value: Any
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _varints(data: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _value(data: memoryview) -> Any:
    ((kind, value),) = _fields(data)
    if kind == 1:
        return str(bytes(value), "utf-8")
    if kind in {2, 3}:
        return float(np.frombuffer(value, np.float32 if kind == 2 else np.float64)[0])
    return _signed(value) if kind == 6 else bool(value) if kind == 7 else value


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _feature(data: memoryview, keys: list[str], values: list[Any], scale: float) -> tuple[dict[str, Any], Any]:
    parts = dict(_fields(data))
    tags = _varints(parts.get(2, memoryview(b"")))
    properties = {keys[key]: values[value] for key, value in zip(tags[::2], tags[1::2], strict=True)}
    return properties, _shape(parts[3], _rings(_varints(parts[4])), scale)


def _rings(commands: list[int]) -> list[list[tuple[int, int]]]:
    rings: list[list[tuple[int, int]]] = []
    x = y = at = 0
    while at < len(commands):
        command, count = commands[at] & 7, commands[at] >> 3
        at += 1
        if command == 7:
            rings[-1].append(rings[-1][0])
            continue
        for _ in range(count):
            x, y = x + _signed(commands[at]), y + _signed(commands[at + 1])
            at += 2
            if command == 1:
                rings.append([])
            rings[-1].append((x, y))
    return rings


def _shape(kind: int, rings: list[list[tuple[int, int]]], scale: float) -> Any:
    places = [np.array(ring, float) * scale for ring in rings]
    if kind == 1:
        return shapely.multipoints(np.concatenate(places))
    if kind == 2:
        return shapely.multilinestrings(np.array([shapely.linestrings(each) for each in places], object))
    polygons: list[list[Any]] = []
    for place in places:
        is_outer = float(np.sum(place[:-1, 0] * place[1:, 1] - place[1:, 0] * place[:-1, 1])) > 0
        assert is_outer or polygons, "a polygon begins with a hole"
        if is_outer:
            polygons.append([place])
        else:
            polygons[-1].append(place)
    return shapely.multipolygons([shapely.polygons(outer, holes or None) for outer, *holes in polygons])


# Pictures


def in_pixels(shapes: Shapes, zoom: int, x: int, y: int) -> Shapes:
    """Return shapes in metres of Mercator in the pixels of a tile."""
    pixels = PIXELS * 2**zoom
    origin = np.array([x, y]) * PIXELS

    def placed(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((0.5 + coordinates * [1, -1] / WORLD) * pixels - origin)

    moved: Shapes = shapely.transform(shapes, placed)
    return moved


def touched(shapes: Shapes) -> Picture:
    """Return the pixels of a tile that shapes touch."""
    picture = np.zeros((PIXELS, PIXELS), bool)
    if len(shapes) == 0:
        return picture
    bounds = shapely.bounds(shapes)
    is_large = np.maximum(bounds[:, 2] - bounds[:, 0], bounds[:, 3] - bounds[:, 1]) > LARGE
    small = shapes[~is_large]
    shapely.prepare(small)
    picture.ravel()[_pixels().query(small, predicate="intersects")[1]] = True
    if is_large.any():
        picture |= rasterize(list(shapes[is_large]), out_shape=picture.shape, all_touched=True).astype(bool)
    return picture


@cache
def _pixels() -> shapely.STRtree:
    x, y = (each.ravel() for each in np.meshgrid(np.arange(PIXELS), np.arange(PIXELS)))
    return shapely.STRtree(shapely.box(x, y, x + 1 - 1e-6, y + 1 - 1e-6))


@dataclass
class Agreement:
    """How two pictures agree: by pixel, and where a pixel may be beside the other's."""

    pixels: int = 0
    exact: int = 0
    near: int = 0

    def add(self, drawn: Picture, expected: Picture) -> None:
        self.pixels += drawn.size
        self.exact += int((drawn == expected).sum())
        self.near += drawn.size - int(((drawn & ~_wider(expected)) | (expected & ~_wider(drawn))).sum())


def _wider(picture: Picture) -> Picture:
    padded = np.pad(picture, 1)
    shifted = [padded[row : row + PIXELS, column : column + PIXELS] for row in range(3) for column in range(3)]
    return np.asarray(np.logical_or.reduce(shifted))
