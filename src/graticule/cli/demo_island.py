"""The island of the demonstration: a terrain that nobody has surveyed, and the picture of it that a partner sends.

Noise is lifted above the sea, and rain cuts valleys into it, so it looks like a map. The same seed gives the same
island. numpy and rasterio come with the extra `worker`: whoever imports this needs it.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np
from affine import Affine
from numpy.typing import ArrayLike, NDArray
from rasterio.io import MemoryFile

SEED: Final = 7
CRS: Final = "EPSG:32620"  # so that it has to be reprojected
WEST: Final = 674_000.0  # between two islands of the Caribbean
NORTH: Final = 1_653_000.0
PIXEL_METRES: Final = 20.0
WIDTH: Final = 2000
HEIGHT: Final = 1600
COARSE: Final = 5  # the rain falls on a grid that is so many times coarser
ROUNDS_OF_RAIN: Final = 3
ERODIBILITY: Final = 0.3
LIGHT: Final = (-0.55, 0.55, 0.63)  # from the north-west, as on most maps
RELIEF: Final = 1.6  # by how much the shading exaggerates slopes

LAND_TINTS: Final = {
    0: (232, 221, 178),
    6: (150, 178, 104),
    60: (118, 158, 84),
    160: (84, 134, 72),
    300: (74, 118, 70),
    480: (116, 126, 90),
    700: (156, 144, 112),
    1000: (190, 176, 148),
}
SEA_TINTS: Final = {
    -600: (24, 56, 96),
    -220: (30, 78, 124),
    -80: (42, 112, 156),
    -25: (84, 166, 190),
    -8: (140, 206, 208),
    0: (188, 228, 216),
}

Grid = NDArray[np.float32]
Tints = dict[int, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Island:
    """A terrain: metres above the sea, and how steep it is, for each pixel."""

    elevation: Grid
    slope_east: Grid  # rise for each metre to the east
    slope_south: Grid

    @classmethod
    def make(cls, seed: int = SEED) -> "Island":
        """Raise an island from the sea; the same seed gives the same one."""
        random = np.random.default_rng(seed)
        shape = HEIGHT // COARSE, WIDTH // COARSE
        coarse = _rained_on(_raised(_noise(random, shape, roughness=3.2)))
        detail = _noise(random, (HEIGHT, WIDTH), roughness=2.8, coarsest=40)
        smooth = _enlarged(coarse)
        elevation = _grid(smooth + 7 * detail * np.clip(smooth / 60, 0.12, 1))
        slope_south, slope_east = map(_grid, np.gradient(elevation, PIXEL_METRES))
        return cls(elevation, slope_east, slope_south)

    @property
    def transform(self) -> Affine:
        """Where the pixels lie, in metres of `CRS`."""
        return Affine(PIXEL_METRES, 0, WEST, 0, -PIXEL_METRES, NORTH)

    def picture(self) -> NDArray[np.uint8]:
        """Draw it as a map: red, green and blue, by height and depth, with shaded hills."""
        shade = self._shade()
        land = self.elevation > 0
        bands = [
            np.where(
                land,
                _tinted(self.elevation, LAND_TINTS, band) * shade,
                _tinted(self.elevation, SEA_TINTS, band) * (0.85 + 0.15 * shade),
            )
            for band in range(3)
        ]
        return np.asarray(np.clip(np.stack(bands), 0, 255), dtype=np.uint8)

    def _shade(self) -> Grid:
        east, south = RELIEF * self.slope_east, RELIEF * self.slope_south
        lit = (-east * LIGHT[0] + south * LIGHT[1] + LIGHT[2]) / np.sqrt(1 + east**2 + south**2)
        return _grid(np.clip(lit / LIGHT[2], 0.25, 1.45))


def island_raster(island: Island) -> bytes:
    """Give the picture as a GeoTIFF as partners have it: in metres, compressed, not cloud-optimized."""
    with MemoryFile() as file:
        with file.open(
            driver="GTiff",
            width=WIDTH,
            height=HEIGHT,
            count=3,
            dtype="uint8",
            crs=CRS,
            transform=island.transform,
            compress="lzw",
            predictor=2,
            photometric="rgb",
        ) as raster:
            raster.write(island.picture())
            raster.descriptions = ("red", "green", "blue")
        return bytes(file.read())


def _grid(values: ArrayLike) -> Grid:
    return np.asarray(values, dtype=np.float32)


def _noise(random: np.random.Generator, shape: tuple[int, int], *, roughness: float, coarsest: int = 1) -> Grid:
    """Give fractal noise: waves of all lengths up to a `coarsest`-th of the map, the longer the higher."""
    waves = np.fft.rfft2(random.standard_normal(shape, dtype=np.float32))
    down, across = np.fft.fftfreq(shape[0], 1 / shape[0]), np.fft.rfftfreq(shape[1], 1 / shape[1])
    frequency = np.maximum(np.hypot(down[:, None], across[None, :]), 1)
    weight = np.where(frequency < coarsest, 0, frequency ** (-roughness / 2))
    weight[0, 0] = 0
    made = np.fft.irfft2(waves * weight, s=shape)
    return _grid(made / made.std())


def _raised(noise: Grid) -> Grid:
    """Lift the middle of the map out of the sea."""
    height, width = noise.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    from_middle = np.hypot((0.9 * x + 0.35 * y) / 0.74, (-0.45 * x + 0.95 * y) / 0.62)
    hills = 330 * noise * np.clip(1.15 - 0.5 * from_middle, 0.25, 1)
    return _grid(760 * (1 - 1.1 * from_middle) + hills)


def _rained_on(elevation: Grid) -> Grid:
    """Let rivers cut their valleys: the more water, the deeper."""
    for _ in range(ROUNDS_OF_RAIN):
        elevation = _eroded(elevation)
    return elevation


def _eroded(elevation: Grid) -> Grid:
    heights, downstream, order = _drained(elevation)
    water = [1.0] * len(heights)
    for cell in reversed(order):
        water[downstream[cell]] += water[cell]
    for cell in order:  # from the sea upwards, so that the cell below is cut already
        force = ERODIBILITY * water[cell] ** 0.5
        heights[cell] = (heights[cell] + force * max(heights[downstream[cell]], 0)) / (1 + force)
    return _grid(heights).reshape(elevation.shape)


def _drained(elevation: Grid) -> tuple[list[float], list[int], list[int]]:
    """Find for each cell of the land where its water flows, by climbing from the shore and filling every hollow.

    Gives the filled heights, the cell downstream of each, and the land's cells in the order of the climb.
    """
    width = elevation.shape[1]
    heights: list[float] = elevation.ravel().tolist()
    downstream = [-1] * len(heights)
    order: list[int] = []
    reached = (elevation <= 0).ravel().tolist()
    front = _shore(elevation)
    heapq.heapify(front)
    while front:
        height, cell = heapq.heappop(front)
        if downstream[cell] >= 0:
            order.append(cell)
        for step in (-1, 1, -width, width, -width - 1, 1 - width, width - 1, width + 1):
            other = cell + step
            if not reached[other]:
                reached[other] = True
                downstream[other] = cell
                heights[other] = max(heights[other], height + 1e-3)
                heapq.heappush(front, (heights[other], other))
    return heights, downstream, order


def _shore(elevation: Grid) -> list[tuple[float, int]]:
    """Give the sea's cells that touch land; the map's rim is all sea."""
    land = elevation > 0
    near = np.zeros_like(land)
    near[1:] |= land[:-1]
    near[:-1] |= land[1:]
    near[:, 1:] |= land[:, :-1]
    near[:, :-1] |= land[:, 1:]
    cells = np.flatnonzero(near & ~land)
    return list(zip(elevation.ravel()[cells].tolist(), cells.tolist(), strict=True))


def _enlarged(coarse: Grid) -> Grid:
    """Give a coarse grid at full size, interpolated between its points."""
    rows, columns = (np.linspace(0, n - 1, n * COARSE, dtype=np.float32) for n in coarse.shape)
    above, left = (np.minimum(at.astype(int), n - 2) for at, n in zip((rows, columns), coarse.shape, strict=True))
    tall = coarse[above] + (coarse[above + 1] - coarse[above]) * (rows - above)[:, None]
    wide = tall[:, left] + (tall[:, left + 1] - tall[:, left]) * (columns - left)[None, :]
    return _grid(wide)


def _tinted(elevation: Grid, tints: Tints, band: int) -> Grid:
    """Give one band of the colour of each height, interpolated between the tints."""
    return _grid(np.interp(elevation, list(tints), [tint[band] for tint in tints.values()]))
