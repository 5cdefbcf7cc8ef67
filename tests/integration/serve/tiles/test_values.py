"""Values and statistics, and the names of the bands with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, fetched

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

BLOB = "silver/named/cogs/bands.tif"
POINT = "/point/10.5,0.5"


@pytest.fixture(scope="module", autouse=True)
def bands(rasters: Path) -> None:
    """Write three bands that have names."""
    file = rasters / BLOB
    file.parent.mkdir(parents=True, exist_ok=True)
    profile = {"driver": "COG", "width": 64, "height": 64, "count": 3, "dtype": "uint8", "crs": "EPSG:4326"}
    with rasterio.open(file, "w", transform=Affine(1 / 64, 0, 10, 0, -1 / 64, 1), **profile) as dataset:
        dataset.write(np.stack([np.full((64, 64), value, "uint8") for value in (1, 2, 3)]))
        dataset.descriptions = ("red", "green", "blue")


def feature(west: float, **properties: Any) -> dict[str, Any]:
    ring = [[west, 0.2], [west + 0.2, 0.2], [west + 0.2, 0.4], [west, 0.2]]
    return {
        "type": "Feature",
        "properties": properties or None,
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["red", "green", "blue"]),
        ("?bidx=3&bidx=1", ["blue", "red"]),
        ("?expression=b3/b1;B2", ["blue/red", "green"]),
    ],
)
async def test_bands_have_their_own_names(app: FastAPI, query: str, names: list[str]) -> None:
    point = (await fetched(app, BLOB, POINT + query)).json()
    assert point["band_descriptions"] == names
    counted = (await fetched(app, BLOB, "/statistics" + query)).json()
    assert [band["description"] for band in counted.values()] == names
    within = (await fetched(app, BLOB, "/statistics" + query, json=feature(10.2))).json()
    assert [band["description"] for band in within["properties"]["statistics"].values()] == names


async def test_statistics_of_a_feature(app: FastAPI) -> None:
    answer = await fetched(app, BLOB, "/statistics", json=feature(10.2, name="first", more={"a": [1]}))
    assert answer.status_code == 200, answer.text
    properties = answer.json()["properties"]
    assert properties["name"] == "first"
    assert properties["more"] == {"a": [1]}
    assert properties["statistics"]["b2"]["mean"] == pytest.approx(2)


async def test_statistics_of_some_features(app: FastAPI) -> None:
    collection = {"type": "FeatureCollection", "features": [feature(10.2, name="first"), feature(10.6)]}
    answer = await fetched(app, BLOB, "/statistics", json=collection)
    assert answer.status_code == 200, answer.text
    first, second = (found["properties"] for found in answer.json()["features"])
    assert first["name"] == "first"
    assert [each["statistics"]["b3"]["mean"] for each in (first, second)] == pytest.approx([3, 3])
