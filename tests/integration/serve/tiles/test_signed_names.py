"""A mosaic is kept, and the names under which its files are opened are not: a signature in them lasts for a while."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, fetched, mosaic, pixels

from graticule.serve.tiles.app import create_tiles
from graticule.storage.local import LocalStorage

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

PREVIEW = "/preview.npy?max_size=600"


class SigningStorage(LocalStorage):
    """Names blobs by a link that ends when the next one is made, with signs in it that mean something in XML."""

    def __init__(self, root: Path, links: Path) -> None:
        super().__init__(root)
        self.root, self.links, self.signed, self.reads = root, links, 0, 0
        self.is_read = asyncio.Event()
        self.sign()

    def sign(self) -> None:
        for old in self.links.iterdir():
            old.unlink()
        self.signed += 1
        (self.links / self.signature).symlink_to(self.root)

    @property
    def signature(self) -> str:
        return f"se={self.signed}&sig=<a>"

    def readable(self, path: str) -> str:
        return str(self.links / self.signature / path)

    async def get(self, path: str) -> bytes:
        self.reads += 1
        self.is_read.set()
        return await super().get(path)


@pytest.fixture
def storage(rasters: Path, tmp_path: Path) -> SigningStorage:
    return SigningStorage(rasters, tmp_path)


@pytest.mark.parametrize("kind", ["categorical", "dem"])  # the overviews of one are its files', with a mask
async def test_files_are_opened_by_names_of_now(storage: SigningStorage, app: FastAPI, kind: str) -> None:
    signing = create_tiles(storage)
    await pixels(signing, mosaic(kind), PREVIEW)
    reads = storage.reads
    storage.sign()
    for address in (PREVIEW, "/preview.npy?max_size=100"):  # of the pixels themselves, and of overviews
        np.testing.assert_array_equal(
            await pixels(signing, mosaic(kind), address), await pixels(app, mosaic(kind), address)
        )
    assert storage.reads == reads


async def test_a_burst_costs_one_reading(storage: SigningStorage) -> None:
    app = create_tiles(storage)
    answers = await asyncio.gather(*(fetched(app, mosaic("categorical"), "/info") for _ in range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert storage.reads == 2  # the mosaic and its scheme


async def test_a_caller_that_goes_away_does_not_end_the_reading(storage: SigningStorage) -> None:
    app = create_tiles(storage)
    first = asyncio.create_task(fetched(app, mosaic("categorical"), "/info"))
    others = [asyncio.create_task(fetched(app, mosaic("categorical"), "/info")) for _ in range(2)]
    await storage.is_read.wait()
    first.cancel()
    assert [(await other).status_code for other in others] == [200, 200]
    assert storage.reads == 2
