"""Collections: what they say of themselves and of their items."""

from datetime import UTC, datetime

import pytest
from tests.unit.handlers.stac.valid import assert_valid

from graticule.handlers.stac.collections import Holding, new_collection, wanted_collection
from graticule.handlers.stac.coverage import covering
from graticule.handlers.stac.inputs import CollectionText
from graticule.handlers.stac.writing import described_anew
from graticule.repositories.catalogue import Coverage

TEXT = CollectionText(title="Elevation", description="Of an island.", license="CC-BY-4.0", keywords=["dem"])
FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2024, 6, 7, 8, 9, 10, tzinfo=UTC)


def _coverage(box: list[float], shifted: list[float]) -> Coverage:
    return Coverage(box, shifted, FIRST, LAST, ["EPSG:4326"])


@pytest.mark.parametrize(
    ("holds", "keyword", "assets"),
    [
        (Holding.RASTERS, "raster", {"data", "mosaic", "scheme"}),
        (Holding.TILES, "raster", {"data"}),
        (Holding.FEATURES, "vector", {"geoparquet", "pmtiles", "features"}),
    ],
)
def test_a_new_collection_is_valid_and_everywhere(holds: Holding, keyword: str, assets: set[str]) -> None:
    made = new_collection("c", CollectionText(), platform_id="ddh", holds=holds)
    assert_valid(made)
    assert made["license"] == "other"
    assert made["keywords"] == [keyword, "ddh"]
    assert made["extent"]["spatial"]["bbox"] == [[-180.0, -90.0, 180.0, 90.0]]
    assert set(made["item_assets"]) == assets


def test_only_what_is_given_changes_and_what_others_added_stays() -> None:
    present = {**new_collection("c", TEXT), "providers": [{"name": "The Atlas"}]}
    wanted = wanted_collection("c", CollectionText(title="Heights"), None, Holding.RASTERS)
    changed = described_anew(present, wanted.text)
    assert changed == {**present, "title": "Heights"}
    assert_valid(changed)


def test_the_items_decide_on_extent_and_summaries() -> None:
    covered = covering(new_collection("c", TEXT), _coverage([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]))
    assert_valid(covered)
    assert covered["extent"]["spatial"]["bbox"] == [[1.0, 2.0, 3.0, 4.0]]
    assert covered["extent"]["temporal"]["interval"] == [["2020-01-01T00:00:00Z", "2024-06-07T08:09:10Z"]]
    assert covered["summaries"] == {"proj:code": ["EPSG:4326"]}


def test_across_the_antimeridian_the_parts_stand_beside_the_whole() -> None:
    covered = covering(new_collection("c", TEXT), _coverage([-180.0, -18, 180.0, -15], [178.0, -18, 182.5, -15]))
    assert_valid(covered)
    assert covered["extent"]["spatial"]["bbox"] == [
        [-180.0, -18, 180.0, -15],
        [178.0, -18, 180.0, -15],
        [-180.0, -18, -177.5, -15],
    ]


@pytest.mark.parametrize(
    ("box", "shifted"),
    [
        # Adding 360 takes the last digits, and the shifted box may come out as the narrower one.
        ([-61.38, 14, -61.01, 15], [298.620000001, 14, 298.989999999, 15]),
        ([-61.38, 14, -61.01, 15], [298.62001, 14, 298.98999, 15]),
        ([170.0, 14, 180.0, 15], [170.000000002, 14, 180.000000001, 15]),
        ([-180.0, 14, -170.0, 15], [179.999999999, 14, 189.999999998, 15]),
        ([-10.0, 14, 10.0, 15], [0.0, 14, 359.0, 15]),
    ],
)
def test_what_only_lies_beside_the_antimeridian_is_one_box(box: list[float], shifted: list[float]) -> None:
    covered = covering(new_collection("c", TEXT), _coverage(box, shifted))
    assert covered["extent"]["spatial"]["bbox"] == [box]


def test_a_collection_without_items_stays_as_it_is() -> None:
    made = new_collection("c", TEXT)
    assert covering(made, None) == made
