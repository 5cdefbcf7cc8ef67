"""All features in one file: every row, once, whatever the pages are made of; and an incomplete file is seen as one."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.integration.serve.features.conftest import COUNT, Serving, served
from tests.integration.serve.features.test_features import refused

from graticule.serve.features import download

DOWNLOAD = "/collections/features/download.geojson"


async def downloaded(client: httpx.AsyncClient, **parameters: str) -> list[dict[str, Any]]:
    response = await client.get(DOWNLOAD, params=parameters)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/geo+json"
    found = json.loads(response.content)
    assert found["type"] == "FeatureCollection"
    return list(found["features"])


@pytest.mark.parametrize("rows", [1, 7, COUNT, COUNT + 1])
async def test_all_rows_are_there_once(client: httpx.AsyncClient, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAGE_ROWS", rows)
    monkeypatch.setattr(download, "CHUNK_BYTES", 100)
    features = await downloaded(client)
    assert [each["id"] for each in features] == list(range(1, COUNT + 1))
    page = (await client.get("/collections/features/items", params={"limit": 1000})).json()
    assert features == [{key: each[key] for key in each if key != "links"} for each in page["features"]]


async def test_pages_that_are_too_large_are_cut(
    client: httpx.AsyncClient, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PAGE_BYTES", 1000)
    serving.served = served("large_v1")
    assert [each["id"] for each in await downloaded(client)] == [1, 2, 3, 4, 5]


async def test_a_download_can_be_filtered(client: httpx.AsyncClient) -> None:
    assert [each["id"] for each in await downloaded(client, level="3", filter="height > 60")] == [43, 48]
    assert [each["id"] for each in await downloaded(client, bbox="-25,-25,-24,-24")] == [1, 2]
    (only,) = await downloaded(client, ids="4", properties="level")
    assert only["properties"] == {"level": 4}
    assert await downloaded(client, ids="999") == []
    for wrong in ({"filter": "nothing = 1"}, {"url": "x"}, {"limit": "1"}, {"properties": "x"}, {"crs": "EPSG:4326"}):
        await refused(client, DOWNLOAD, 400, **wrong)


async def test_so_many_are_made_at_once_and_no_more(app: FastAPI, client: httpx.AsyncClient) -> None:
    await downloaded(client)
    app.state.downloads = asyncio.Semaphore(0)
    try:
        await refused(client, DOWNLOAD, 503)
    finally:
        del app.state.downloads
    assert len(await downloaded(client)) == COUNT


async def test_what_is_cut_short_does_not_look_complete(
    serving: Serving, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PAGE_ROWS", 10)
    read = download._Pages.read
    pages = 0

    async def failing(self: download._Pages) -> list[Any]:
        nonlocal pages
        pages += 1
        if pages == 3:
            raise OSError("the database is away")
        return await read(self)

    monkeypatch.setattr(download._Pages, "read", failing)
    transport = httpx.ASGITransport(serving)
    async with httpx.AsyncClient(transport=transport, base_url="https://maps.example") as caller:
        with pytest.raises(Exception, match=r"the database is away|response already started"):
            await caller.get(DOWNLOAD)
    assert len(await downloaded(client)) == COUNT, "its place is free again"
