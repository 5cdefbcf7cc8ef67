"""Lists of assets show what a look at every row would find, newest first, page by page."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.integration.assets.small_world import PLATFORMS, WORDS, SmallWorld

from graticule.core.ids import AssetId, PlatformId
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.repositories.asset_views import Area, AssetFilter, AssetViews
from graticule.repositories.database import Connection

RANDOMLY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sometimes(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.none() | values


AREAS = st.builds(
    lambda west, east, latitudes: Area(west, min(latitudes), east, max(latitudes)),
    st.integers(-18, 18).map(lambda ten: ten * 10.0),
    st.integers(-18, 18).map(lambda ten: ten * 10.0),
    st.tuples(*[st.integers(-9, 9).map(lambda ten: ten * 10.0)] * 2),
)
SOUGHT = st.lists(st.sampled_from(WORDS), max_size=2).flatmap(
    lambda words: st.sampled_from([*WORDS, "riv", "r", "d1", "nothing"]).map(lambda last: " ".join([*words, last]))
)
FILTERS = st.builds(
    AssetFilter,
    platform_id=sometimes(st.sampled_from(PLATFORMS).map(PlatformId)),
    refs=sometimes(st.sampled_from([{"dataset_id": "d1"}, {"part": 1}, {"name": "lake", "part": 0}, {"none": "x"}])),
    data_type=sometimes(st.sampled_from(DataType)),
    clearance_state=sometimes(st.sampled_from(ClearanceState)),
    approval_state=sometimes(st.sampled_from(ApprovalState)),
    processing_state=sometimes(st.sampled_from(ProcessingState)),
    text=sometimes(SOUGHT),
    bbox=sometimes(AREAS),
    with_deleted=st.booleans(),
)


@RANDOMLY
@given(wanted=FILTERS)
@example(wanted=AssetFilter(bbox=Area(170, -90, -170, 90)))
@example(wanted=AssetFilter(bbox=Area(0, 0, 0, 0)))
@example(wanted=AssetFilter(text="RIVER lak"))
async def test_a_list_shows_what_a_look_at_every_row_would_find(
    world: SmallWorld, reading: Connection, wanted: AssetFilter
) -> None:
    found = await AssetViews(reading).assets(wanted, limit=500)
    assert [asset.asset_id for asset in found] == world.expected(wanted)


@settings(RANDOMLY, max_examples=15)
@given(wanted=FILTERS, size=st.integers(1, 7))
@example(wanted=AssetFilter(with_deleted=True), size=1)
@example(wanted=AssetFilter(text="r"), size=2)
@example(wanted=AssetFilter(processing_state=ProcessingState.COMPLETED), size=2)
async def test_pages_together_are_the_list(
    world: SmallWorld, reading: Connection, wanted: AssetFilter, size: int
) -> None:
    found: list[AssetId] = []
    before = None
    while page := await AssetViews(reading).assets(wanted, before, size):
        assert len(page) <= size
        found += [asset.asset_id for asset in page]
        before = page[-1].created_at, page[-1].asset_id
    assert found == world.expected(wanted)


async def test_each_asset_carries_its_newest_live_version(world: SmallWorld, reading: Connection) -> None:
    found = await AssetViews(reading).assets(AssetFilter(with_deleted=True), limit=500)
    newest = {asset.asset_id: asset.newest_version for asset in found}
    assert any(version is None for version in newest.values())
    for asset_id, version in newest.items():
        live = world.live(asset_id)
        assert (version is None) == (not live)
        if version is not None:
            expected = max(live, key=lambda each: each.version_ordinal)
            assert version.model_dump() == expected.model_dump(include=set(type(version).model_fields))


@settings(RANDOMLY, max_examples=examples(50))
@given(text=st.text(st.characters(codec=None), max_size=40) | st.text("'\"\\&|!()<->:* aé-_./@%{}\0", max_size=30))
@example(text="")
@example(text="   ")
@example(text="\0")
@example(text="\ud800")
@example(text="foo:* & !(bar")
@example(text='"a b" -"c d"')
@example(text="https://example.org/a'b\\c/d?e=f")
@example(text="' & '")
@example(text="a\\")
async def test_no_text_breaks_the_search(reading: Connection, text: str) -> None:
    assert isinstance(await AssetViews(reading).assets(AssetFilter(text=text)), list)


@pytest.mark.parametrize("text", ["", " ", "!", "-- ;", "\0"])
async def test_a_text_without_a_word_finds_nothing(reading: Connection, text: str) -> None:
    assert await AssetViews(reading).assets(AssetFilter(text=text)) == []


async def test_the_last_word_may_be_the_beginning_of_one_with_signs_in_it(reading: Connection) -> None:
    found = await AssetViews(reading)._words("The North-We")
    assert found == "'the' & 'north-we':* & 'north':* & 'we':*"
