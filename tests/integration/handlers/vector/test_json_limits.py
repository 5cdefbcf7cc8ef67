"""GeoJSON that GDAL's parser does not take: the rejection says what is wrong with it, not that the file is corrupt."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.handlers.vector.sources import Desk

from graticule.handlers.findings import Rejected

PATH = "bronze/a.geojson"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def collection(properties: str, coordinates: str = "[1, 2]") -> str:
    point = f'{{"type": "Point", "coordinates": {coordinates}}}'
    feature = f'{{"type": "Feature", "properties": {properties}, "geometry": {point}}}'
    return f'{{"type": "FeatureCollection", "features": [{feature}]}}'


def rejection(desk: Desk, text: str) -> Any:
    desk.put(PATH, text)
    with pytest.raises(Rejected) as caught:
        desk.rows(PATH)
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize("characters", [10_000_001, 30_000_000])
def test_a_text_that_is_too_long(desk: Desk, characters: int) -> None:
    finding = rejection(desk, collection(json.dumps({"a": "x" * characters})))
    assert finding.code == "unfit_value"
    assert finding.what == "A text of the file has more than 10,000,000 characters."
    assert "10,000,000 characters" in finding.how_to_fix


def test_a_text_that_is_just_short_enough(desk: Desk) -> None:
    desk.put(PATH, collection(json.dumps({"a": "x" * 9_999_999})))
    assert len(desk.rows(PATH)) == 1


@pytest.mark.parametrize("value", ["-NaN", "inf", "1e999", "0x1F"])
@pytest.mark.parametrize("place", ["value", "coordinate"])
def test_a_number_that_json_does_not_have(desk: Desk, value: str, place: str) -> None:
    text = collection(f'{{"a": {value}}}') if place == "value" else collection("{}", f"[{value}, 2]")
    finding = rejection(desk, text)
    assert finding.code == "unfit_value"
    assert finding.what == f"The file has a number that JSON does not allow: {value}."


def test_what_is_no_json(desk: Desk) -> None:
    finding = rejection(desk, collection("{'a': undefined}"))
    assert finding.code == "corrupt"
    assert finding.what.startswith("The file is not valid JSON: Unexpected character")
