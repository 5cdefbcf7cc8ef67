"""`raster.generate_tiling_scheme` as earlier workflows use it: tiles by their size in megabytes, listed one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rasterio
from rasterio.transform import from_origin
from tests.integration.handlers.raster.desk import Desk, opened_desk

from graticule.handlers.raster import tile_making
from graticule.worker.outcome import InvalidParams

pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # rasterio 1.4 with affine 3
TILE = 512
SCHEME = "raster.generate_tiling_scheme"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(tmp_path) as opened:
        yield opened


def sparse_source(desk: Desk, columns: int, rows: int, bands: int = 1) -> str:
    """Make a raster of so many tiles, of which no pixel is written."""
    path = desk.file("bronze/sparse.tif")
    path.parent.mkdir(parents=True, exist_ok=True)
    size: dict[str, Any] = {"width": columns * TILE, "height": rows * TILE, "count": bands, "dtype": "uint8"}
    transform = from_origin(10, 50, 1e-5, 1e-5)
    with rasterio.open(path, "w", "GTiff", crs="EPSG:4326", transform=transform, tiled=True, SPARSE_OK=True, **size):
        pass
    return "bronze/sparse.tif"


@pytest.mark.parametrize(("size_mb", "side"), [(1, 1024), (4, 2048), (3, 1536), (1000, 16384)])
def test_tiles_have_at_most_the_megabytes_that_are_asked_for(desk: Desk, size_mb: int, side: int) -> None:
    scheme = desk.run(SCHEME, source=sparse_source(desk, 8, 8), tile_size_mb=size_mb, overlap=0)
    assert scheme["tile_size"] == side
    assert side * side <= size_mb * 2**20
    assert scheme["tile_count"] == len(scheme["tile_list"]) == (-(-8 * TILE // side)) ** 2


def test_a_size_in_pixels_wins_over_one_in_megabytes(desk: Desk) -> None:
    scheme = desk.run(SCHEME, source=sparse_source(desk, 4, 4), tile_size=TILE, tile_size_mb=4, overlap=0)
    assert (scheme["tile_size"], scheme["tile_count"]) == (TILE, 16)


@pytest.mark.parametrize("size_mb", [0, -1, "many"])
def test_a_size_that_is_none_is_refused(desk: Desk, size_mb: object) -> None:
    with pytest.raises(InvalidParams, match="tile_size_mb"):
        desk.run(SCHEME, source=sparse_source(desk, 2, 2), tile_size_mb=size_mb)


def test_ten_thousand_tiles_are_listed_at_most() -> None:
    assert tile_making.MAX_LISTED_TILES == 10_000


@pytest.fixture
def _nine(monkeypatch: pytest.MonkeyPatch) -> None:
    """List fewer: to look at a raster of ten thousand tiles takes half a minute."""
    monkeypatch.setattr(tile_making, "MAX_LISTED_TILES", 9)


@pytest.mark.usefixtures("_nine")
def test_as_many_tiles_are_listed_as_the_limit_says(desk: Desk) -> None:
    scheme = desk.run(SCHEME, source=sparse_source(desk, 3, 3), tile_size=TILE, overlap=0)
    assert (scheme["tile_count"], len(scheme["tile_list"])) == (9, 9)
    assert {tile["scheme"] for tile in scheme["tile_list"]} == {scheme["scheme"]}
    assert [tile["tile_id"] for tile in scheme["tile_list"]] == [name for batch in scheme["batches"] for name in batch]


@pytest.mark.usefixtures("_nine")
def test_beyond_the_limit_none_is_listed_and_the_number_and_the_batches_say_all(desk: Desk) -> None:
    """A part of them would look like the whole."""
    scheme = desk.run(SCHEME, source=sparse_source(desk, 5, 2), tile_size=TILE, overlap=0)
    assert (scheme["tile_count"], scheme["tile_list"]) == (10, [])
    assert len({name for batch in scheme["batches"] for name in batch}) == 10
    with pytest.raises(InvalidParams, match="tiles"):  # so a fan-out over the list does not end with half a mosaic
        desk.run("raster.create_mosaicjson", scheme=scheme["scheme"], tiles=scheme["tile_list"])
