"""What it costs to know a raster that lies elsewhere: counted at a server with a COG of many gigabytes."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rasterio.io import DatasetReader
from tests.certificates import made
from tests.rasters import UTM_20, make_raster

from graticule.handlers.raster.cog.encoding import Encoding
from graticule.handlers.raster.cog.header import Blocks, LevelIndex, cog_header
from graticule.handlers.raster.cog.profile import BLOCK_SIZE, profile_of
from graticule.handlers.raster.cog.pyramid import level_sizes
from graticule.handlers.raster.cog.skeleton import skeleton_of
from graticule.handlers.raster.opening import gdal_environment, open_raster

PROGRAM = Path(__file__).with_name("range_server.py")
SIDE = 160_000  # pixels
BLOCK_BYTES = 400_000
MOST_REQUESTS = 5
MOST_BYTES = 100_000


def level(width: int, height: int) -> LevelIndex:
    count = -(-width // BLOCK_SIZE) * -(-height // BLOCK_SIZE)
    sizes = np.full(count, BLOCK_BYTES)
    blocks = Blocks(np.arange(count, dtype=np.int64) * (BLOCK_BYTES + 8) + 4, sizes)
    nothing = Blocks(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return LevelIndex(width, height, count * (BLOCK_BYTES + 8), blocks, nothing)


def huge_cog(file: Path) -> tuple[bytes, int]:
    """Give the head of a COG, and how large it is with its blocks."""
    with DatasetReader(make_raster(file, "rgb")) as dataset:
        profile = profile_of(
            dataset,
            width=SIDE,
            height=SIDE,
            crs=dataset.crs,
            transform=dataset.transform,
            encoding=Encoding("deflate", level=6),
            overview_resampling="average",
            has_mask=False,
        )
    levels = [level(*size) for size in level_sizes(SIDE, SIDE)]
    header = cog_header(skeleton_of(profile), levels)
    return header, len(header) + sum(each.size for each in levels)


@dataclass(frozen=True)
class Server:
    """A server, and what was asked of it."""

    process: "subprocess.Popen[str]"
    address: str

    def asked(self) -> list[tuple[int, str]]:
        """End it, and give all requests: how many bytes it sent, and for what."""
        self.process.terminate()
        assert self.process.stdout is not None
        lines = [line.split(maxsplit=1) for line in self.process.stdout]
        return [(int(sent), what) for sent, what in lines]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    head, size = huge_cog(tmp_path / "small.tif")
    assert size > 20 * 1024**3
    (tmp_path / "head").write_bytes(head)
    certificates = made(tmp_path)
    for name in ("SSL_CERT_FILE", "GDAL_CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(certificates.ca))
    given = [tmp_path / "head", size, certificates.certificate, certificates.key]
    with subprocess.Popen([sys.executable, PROGRAM, *map(str, given)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process, f"https://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()


def test_the_metadata_of_a_huge_cog_take_a_handful_of_requests(server: Server) -> None:
    name = f"/vsicurl/{server.address}/bronze/scene.tif?sp=r&sig=abc%3D"
    with gdal_environment(64), open_raster(name) as dataset:
        assert (dataset.width, dataset.height, dataset.crs, dataset.count) == (SIDE, SIDE, UTM_20, 3)
        assert dataset.overviews(1)[:3] == [2, 4, 8]
        assert dataset.profile["compress"] == "deflate"
        assert dataset.tags() == {"AREA_OR_POINT": "Area"}
        assert dataset.bounds.right > dataset.bounds.left
    asked = server.asked()
    assert all("/bronze/scene.tif?sp=r&sig=abc%3D" in what for _, what in asked), "a file beside it was looked for"
    assert len(asked) <= MOST_REQUESTS, asked
    assert sum(sent for sent, _ in asked) < MOST_BYTES, asked
