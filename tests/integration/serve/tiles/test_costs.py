"""What a request may cost: the more is made of a pixel, the fewer there are."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, cog, fetched

from graticule.core.errors import InvalidInput
from graticule.serve.tiles import reader as reading
from graticule.serve.tiles.budget import Budget, budget_of
from graticule.serve.tiles.reader import Asset, AssetReader
from graticule.serve.tiles.rendering import KnownRanges, Picture
from graticule.storage.local import LocalStorage

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]


def opened(rasters: Path, budget: Budget) -> AssetReader:
    picture = Picture("one", KnownRanges(), leaves_bands=False, leaves_ranges=False)
    asset = Asset(cog("rgb"), LocalStorage(rasters).readable, picture, budget=budget)
    return AssetReader(asset)  # type: ignore[arg-type]


def test_a_longest_side_is_what_the_budget_allows(rasters: Path) -> None:
    with opened(rasters, Budget(pixels=10_000)) as reader:
        for image in (reader.preview(max_size=1024), reader.part(reader.bounds, max_size=1024)):
            assert 9_000 < image.width * image.height < 10_300
    with opened(rasters, Budget(samples=30_000)) as reader:
        assert reader.preview().width < reader.preview(indexes=(1,)).width


def test_a_size_that_is_wanted_is_not_changed(rasters: Path) -> None:
    with opened(rasters, Budget(pixels=10_000)) as reader:
        assert reader.preview(width=100, height=100).width == 100
        with pytest.raises(InvalidInput, match="10,000 pixels"):
            reader.preview(width=100, height=101)


def test_a_picture_out_of_proportion_is_refused(rasters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_SOURCE_PIXELS", 200_000)
    with opened(rasters, Budget()) as reader:
        assert reader.preview(width=300, height=260).width == 300
        for size in ({"width": 600, "height": 1}, {"width": 1, "height": 500}):
            with pytest.raises(InvalidInput, match="proportions"):
                reader.preview(**size)
            with pytest.raises(InvalidInput, match="proportions"):
                reader.part(reader.bounds, **size)


def test_what_is_made_of_pixels_takes_from_their_number() -> None:
    plain = budget_of({"rescale": "0,1"}).pixels
    assert budget_of({"expression": "b1"}).pixels == plain // 2
    assert budget_of({"expression": "b1", "algorithm": "slope", "reproject": "cubic"}).pixels == plain // 4
    assert budget_of({"reproject": "cubic"}).most_pixels(bands=16, bytes_each=1) == plain // 16
    assert budget_of({"colormap": '{"1": "#000"}'}).pixels == plain // 2
    assert budget_of({"colormap": '[[[0, 1], "#000"]]'}).pixels == plain // 2
    assert budget_of({"colormap": "[" + ",".join(['[[0, 1], "#000"]'] * 128) + "]"}).pixels == plain // 8


def test_bands_take_from_the_number_of_pixels() -> None:
    assert Budget().most_pixels(bands=3, bytes_each=1) == 2048 * 2048
    assert Budget().most_pixels(bands=3, bytes_each=8) in range(1024 * 1024, 1100 * 1024)
    assert Budget().of_statistics(shapes=2).most_pixels(bands=16, bytes_each=1) == 2**17


@pytest.mark.parametrize("parameter", ["resampling", "reproject"])
async def test_the_most_frequent_value_is_found_among_bytes_only(app: FastAPI, parameter: str) -> None:
    for kind, status in (("rgb", 200), ("dem", 422)):
        answer = await fetched(app, cog(kind), f"/preview.tif?max_size=32&{parameter}=mode")
        assert answer.status_code == status, answer.text
