"""Signed addresses at the gateway: read by ranges for a while, by GDAL too, and by nobody who has none."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.windows import Window
from starlette.datastructures import Headers
from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from tests.conftest import TestDatabase
from tests.integration.gateway.front import Front, address, problem_of, running_front, served, settings_of

from graticule.config import Settings
from graticule.storage.place import storage_of
from graticule.storage.protocol import Storage

DATA = bytes(range(256)) * 10


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path, public_url=address("http://gateway"))


@pytest.fixture
def storage(settings: Settings) -> Storage:
    return storage_of(settings)


@pytest.fixture
async def front(settings: Settings, emptied_database: TestDatabase) -> AsyncIterator[Front]:
    async with running_front(settings, emptied_database) as running:
        yield running


async def test_a_signed_blob_is_read_by_ranges_without_a_login(front: Front, storage: Storage) -> None:
    await storage.put("silver/ü x.html", DATA)
    signed = await storage.presigned_read("silver/ü x.html")
    whole = await front.ask(None, "GET", signed)
    assert (whole.status_code, whole.content) == (200, DATA)
    assert whole.headers["cache-control"].startswith("private")
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-security-policy"] == "sandbox"
    assert whole.headers["etag"] == f'"{(await storage.stat("silver/ü x.html")).etag}"'
    head = await front.ask(None, "HEAD", signed)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(DATA)))
    part = await front.ask(None, "GET", signed, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, DATA[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(DATA)}"
    assert (await front.ask(None, "GET", signed, headers={"Range": "bytes=99999-"})).status_code == 416


async def test_who_has_no_good_address_reads_nothing(front: Front, storage: Storage) -> None:
    for path in ("silver/a.tif", "silver/b.tif", "outputs/job/x.json"):
        await storage.put(path, b"secret")
    signed = await storage.presigned_read("silver/a.tif")
    wrong = [
        *(signed.partition("?")[0], signed.replace("a.tif", "b.tif"), signed[:-1], f"{signed}0"),
        *(signed.replace("expires=", "expires=9"), signed.replace("silver/a.tif", "outputs/job/x.json")),
        *(signed.replace("silver/a.tif", "silver/%2e%2e/silver/a.tif"), signed.replace("silver", "Silver")),
    ]
    with capture_logs() as logged:
        for each in wrong:
            for who in (None, "admin"):
                answer = await front.ask(who, "GET", each)
                assert answer.status_code in {403, 422}, each
                assert b"secret" not in answer.content
    query = urlsplit(signed).query
    assert query.rpartition("=")[2] not in str(logged)
    problem_of(await front.ask(None, "GET", wrong[0]), 403, "permission_denied")
    await storage.delete("silver/a.tif")
    assert query not in str(problem_of(await front.ask(None, "GET", signed), 404, "not_found"))


async def test_without_a_key_no_address_is_good(tmp_path: Path, emptied_database: TestDatabase) -> None:
    async with running_front(settings_of(tmp_path, service_key=None), emptied_database) as front:
        problem_of(await front.ask(None, "GET", "/storage/silver/a?expires=9&signature=0"), 403)


async def test_gdal_reads_a_signed_raster_by_ranges(
    front: Front, settings: Settings, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    class Noted(FileResponse):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            asked.append(Headers(scope=scope).get("range") if scope["method"] == "GET" else "nothing but the head")
            await super().__call__(scope, receive, send)

    monkeypatch.setattr("graticule.gateway.storage.FileResponse", Noted)
    data = np.random.default_rng(1).integers(0, 255, (1, 1024, 1024), dtype=np.uint8)
    async with storage.writing("silver/r.tif") as file:
        write_raster(file, data)
    async with served(front.app) as at:
        here = storage_of(settings.model_copy(update={"public_url": address(at)}))
        signed = await here.presigned_read("silver/r.tif")
        found = await asyncio.to_thread(read_window, f"/vsicurl/{signed}")
    assert (found == data[0, 256:512, 512:768]).all()
    assert asked
    assert None not in asked, "the whole file was read"


def write_raster(file: Path, data: NDArray[np.uint8]) -> None:
    shape = {"width": data.shape[2], "height": data.shape[1], "count": 1, "dtype": "uint8"}
    layout = {"tiled": True, "blockxsize": 256, "blockysize": 256, "transform": Affine(2, 0, 0, 0, -2, 0)}
    with rasterio.open(file, "w", driver="GTiff", crs="EPSG:4326", **shape, **layout) as raster:
        raster.write(data)


def read_window(name: str) -> NDArray[np.uint8]:
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"), rasterio.open(name) as raster:
        found: NDArray[np.uint8] = raster.read(1, window=Window(512, 256, 256, 256))
        return found
