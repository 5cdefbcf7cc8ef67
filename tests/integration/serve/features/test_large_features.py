"""Features that are large: a page or a tile of them ends before it is too large, and others need not wait for it."""

import csv
import io
import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.responses import Response
from tests.integration.serve.features.conftest import Serving, served
from tests.integration.serve.features.test_features import BASE, ITEMS, walk
from tests.integration.serve.features.test_vector_tiles import drawn

from graticule.serve.features import items
from graticule.serve.features.formats import json_response, written
from graticule.serve.features.limits import LARGE

SHAPE_STORED = 103_000  # bytes of one large shape, at most
SHAPE_WRITTEN = 240_000  # and in GeoJSON
NOTE = 150_000  # bytes of a note; the table keeps far fewer


@pytest.fixture(autouse=True)
def large(serving: Serving) -> None:
    serving.served = served("large_v1", bbox=(0.0, 0.0, 6.0, 6.0))


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tell in which threads pages are written."""
    found: list[int] = []

    def noted(*arguments: Any) -> Response:
        found.append(threading.get_ident())
        return json_response(*arguments)

    monkeypatch.setattr(items, "json_response", noted)
    return found


async def test_a_page_ends_before_it_is_too_large(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "MOST_BYTES", 2 * SHAPE_WRITTEN)
    pages = await walk(client, f"{BASE}{ITEMS}?limit=1000&sortby=-fid")
    assert [[feature["id"] for feature in page["features"]] for page in pages] == [[5, 4], [3, 2], [1]]
    assert [(page["numberReturned"], page["numberMatched"]) for page in pages] == [(2, 5), (2, 5), (1, 5)]
    assert all(len(json.dumps(page, separators=(",", ":"))) < 2.1 * SHAPE_WRITTEN for page in pages)
    small = (await client.get(ITEMS, params={"bbox-only": "true"})).json()
    assert small["numberReturned"] == 5  # what is not shown does not count


async def test_what_a_table_has_packed_counts_unpacked(
    client: httpx.AsyncClient, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving.served = served("packed_v1")
    monkeypatch.setattr(items, "MOST_BYTES", 2 * NOTE + 1000)
    pages = await walk(client, f"{BASE}{ITEMS}?limit=1000")
    assert [page["numberReturned"] for page in pages] == [2, 2]


async def test_one_feature_that_is_too_large_is_alone(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "MOST_BYTES", 1000)
    pages = await walk(client, f"{BASE}{ITEMS}?limit=1000")
    assert [[feature["id"] for feature in page["features"]] for page in pages] == [[1], [2], [3], [4], [5]]
    assert (await client.get(f"{ITEMS}/3")).json()["id"] == 3


@pytest.mark.parametrize("form", ["csv", "ndjson", "geojsonseq"])
async def test_other_forms_lead_to_the_next_page_too(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(items, "MOST_BYTES", 3 * SHAPE_WRITTEN)
    url, found = f"{BASE}{ITEMS}?limit=1000&f={form}", []
    while url:
        response = await client.get(url.removeprefix(BASE))
        assert len(response.content) < 3 * SHAPE_WRITTEN
        found.append(_ids(response.text, form))
        url = response.links.get("next", {}).get("url", "")
    assert [each for ids in found for each in ids] == [1, 2, 3, 4, 5]
    assert len(found) == 2


def _ids(text: str, form: str) -> list[int]:
    if form == "csv":
        csv.field_size_limit(1_000_000)
        return [int(row["fid"]) for row in csv.DictReader(io.StringIO(text))]
    parts = text.split("\x1e")[1:] if form == "geojsonseq" else text.splitlines()
    return [feature.get("id", feature.get("fid")) for feature in map(json.loads, parts)]


async def test_large_answers_are_written_in_a_thread(
    client: httpx.AsyncClient, serving: Serving, threads: list[int]
) -> None:
    await client.get(ITEMS)
    serving.served = served("packed_v1")
    await client.get(f"{ITEMS}/1")
    await client.get(ITEMS, params={"properties": ""})
    assert [thread == threading.get_ident() for thread in threads] == [False, True, True]
    here, there = [await written(lambda: Response(str(threading.get_ident())), size) for size in (LARGE, LARGE + 1)]
    assert here.body == str(threading.get_ident()).encode() != there.body


@pytest.mark.parametrize(
    ("name", "most", "expected"),
    [
        ("MOST_READ_FOR_A_TILE", 3 * SHAPE_STORED, [1, 2, 3]),
        ("MOST_READ_FOR_A_TILE", 1, [1]),
        ("MOST_BYTES", 1, [1]),
        ("MOST_BYTES", 10_000_000, [1, 2, 3, 4, 5]),
    ],
)
async def test_a_tile_ends_before_it_is_too_large(
    client: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    name: str,
    most: int,
    expected: list[int],
) -> None:
    monkeypatch.setattr(f"graticule.serve.features.tiles.{name}", most)
    assert [feature["fid"] for feature in await drawn(client, tmp_path, "3/4/3")] == expected


async def test_what_a_tile_says_of_features_counts_unpacked(
    client: httpx.AsyncClient, serving: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serving.served = served("packed_v1")
    monkeypatch.setattr("graticule.serve.features.tiles.MOST_BYTES", 2 * NOTE + 1000)
    assert [feature["fid"] for feature in await drawn(client, tmp_path, "3/4/3")] == [1, 2]
