"""Links of documents, followed to their ends."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"


async def follow(
    caller: httpx.AsyncClient, base: str, links: Iterable[Mapping[str, Any]], tile: Mapping[str, int]
) -> None:
    """Expect each link to give what it says, of version 0; templates are filled in for a tile that there is."""
    for link in links:
        assert ("{tileMatrix}" in link["href"]) is link.get("templated", False), link
        assert (link["rel"] == "item") is link.get("templated", False), link
        assert ("version", "0") in parse_qsl(urlsplit(link["href"]).query), link
        address = link["href"]
        for name, number in tile.items():
            address = address.replace(f"{{{name}}}", str(number))
        assert address.startswith(base)
        assert not any(mark in address for mark in ("{", "}", "%7B"))
        answer = await caller.get(address.removeprefix(base))
        assert answer.status_code == 200, (link, answer.text)
        assert _plain(answer.headers["content-type"]) == _plain(link["type"]), link


def _plain(kind: str) -> str:
    return kind.replace("; charset=utf-8", "").replace(" ", "")


def tile_within(limits: Mapping[str, Any]) -> dict[str, int]:
    """Name a tile that the limits of a zoom level have."""
    return {
        "tileMatrix": int(limits["tileMatrix"]),
        "tileRow": (limits["minTileRow"] + limits["maxTileRow"]) // 2,
        "tileCol": (limits["minTileCol"] + limits["maxTileCol"]) // 2,
    }
