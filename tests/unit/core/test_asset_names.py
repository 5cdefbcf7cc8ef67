"""The identity of assets and the names of their outputs: documented, valid everywhere, and never shared."""

import hashlib
import re
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.core.asset_names import (
    PUBLIC_COLLECTION,
    OutputNames,
    RefValue,
    asset_id_of,
    output_names,
    title_of_id,
)
from graticule.core.direct_names import is_direct, is_reserved_platform
from graticule.core.ids import PlatformId

TABLE = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
STAC = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
BLOB = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*\Z")
DDH = PlatformId("ddh")

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
tricky = st.sampled_from(
    ['"', "|", '", "resource_id": "', "0038272", "\\", "\\u00e9", "é", "e\u0301", "😀", "0", " 0", "null", "_", "-"]
)
values: st.SearchStrategy[RefValue] = texts | tricky | st.integers(-(2**53), 2**53)
refs = st.dictionaries(names, values, min_size=1, max_size=4)
platform_ids = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
short_ids = st.integers(8, 32).flatmap(lambda length: st.text("0123456789abcdef", min_size=length, max_size=length))
ordinals = st.integers(0, 2**31 - 1) | st.integers(0, 12)
revisions = st.integers(1, 2**31 - 1) | st.integers(1, 12)


def test_the_id_is_the_documented_hash() -> None:
    text = 'ddh|{"dataset_id": "0038272", "resource_id": "shapefile"}'
    expected = hashlib.sha256(text.encode()).hexdigest()[:32]
    assert asset_id_of("ddh", {"resource_id": "shapefile", "dataset_id": "0038272"}) == expected
    assert expected == "a9234e9e7b1ae7c5151568522b54db33"


@given(st.tuples(platform_ids, refs), st.tuples(platform_ids, refs))
@example(("ddh", {"a": "1"}), ("ddh", {"a": 1}))
@example(("ddh", {"a": '1", "b": "2'}), ("ddh", {"a": "1", "b": "2"}))
@example(("ddh", {"a": "é"}), ("ddh", {"a": "e\u0301"}))
@example(("ddh", {"a": "é"}), ("ddh", {"a": "\\u00e9"}))
@example(("a", {"b": "|"}), ("a_", {"b": ""}))
@example(("a", {"b": "x" * 10_240}), ("a", {"b": "x" * 10_241}))
def test_two_datasets_never_share_an_id(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    assert (asset_id_of(*one) == asset_id_of(*other)) == (one == other)


@given(refs, st.randoms())
def test_the_order_of_the_refs_changes_neither_the_id_nor_a_name(given_refs: dict[str, RefValue], random: Any) -> None:
    items = [*given_refs.items()]
    random.shuffle(items)
    shuffled = dict(items)
    assert asset_id_of("ddh", shuffled) == asset_id_of("ddh", given_refs)
    made = [output_names(DDH, "0123abcd", each, label="v", ordinal=0, revision=1) for each in (given_refs, shuffled)]
    assert made[0] == made[1]


keys = st.tuples(st.sampled_from(["0123abcd", "0123abcde", "0123abcd0", "12345678"]) | short_ids, ordinals, revisions)
described = st.tuples(refs, texts | tricky | st.sampled_from(["0123abcd_v1", "v1", "r2"]))
FIRST = ("0" * 8, 0, 1)


def names_of(
    key: tuple[str, int, int], of: tuple[dict[str, RefValue], str], platform_id: PlatformId = DDH
) -> OutputNames:
    return output_names(platform_id, key[0], of[0], label=of[1], ordinal=key[1], revision=key[2])


@given(platform_ids, keys, described)
@example("a" * 50, ("f" * 32, 2**31 - 1, 2**31 - 1), ({"a": "1" * 512}, "9"))
@example("p", FIRST, ({"a": "№ ﷺ ½ Ⅷ"}, "😀"))
@example("p", FIRST, ({"a": "😀"}, "—"))
@example("p", FIRST, ({"a": "x" * 39 + "!", "b": "tail"}, "y"))
@example("p", FIRST, ({"a": "1" + "x" * 37 + "!y"}, "y"))
def test_every_name_is_valid_where_it_is_used(platform_id: str, key: Any, of: Any) -> None:
    made = names_of(key, of, PlatformId(platform_id))
    assert TABLE.match(made.table_name), made
    assert STAC.match(made.stac_item_id), made
    assert STAC.match(made.stac_collection_id), made
    assert BLOB.match(made.blob_prefix), made
    assert len(made.stac_item_id) <= 255
    assert len(made.blob_prefix) <= 255


@given(keys, keys, described, described)
@settings(max_examples=examples(100))
@example(("0123abcd", 1, 1), ("0123abcd", 1, 2), ({"a": "x"}, "v"), ({"a": "x"}, "v"))
@example(("0123abcd", 1, 2), ("0123abcd", 12, 1), ({"a": "x"}, "v"), ({"a": "x"}, "v"))
@example(("0123abcd", 0, 1), ("12345678", 0, 1), ({"a": "12345678"}, "v"), ({"a": "0123abcd"}, "0123abcd_v0"))
def test_two_revisions_never_share_a_name_whatever_their_refs_and_labels(
    one: Any, other: Any, of_one: Any, of_other: Any
) -> None:
    first, second = names_of(one, of_one), names_of(other, of_other)
    if one != other:
        assert first.table_name != second.table_name
        assert first.stac_item_id != second.stac_item_id
        assert first.blob_prefix != second.blob_prefix
    if one[0] != other[0]:
        assert first.stac_collection_id != second.stac_collection_id


@given(platform_ids, keys, described)
@example("ddh", FIRST, ({"a": "direct"}, "roads"))
@example("ddh", FIRST, ({"a": "Direct_"}, "roads"))
@example("ddh", FIRST, ({"a": "\uff44irect"}, ""))
@example("directory", FIRST, ({"a": "x"}, "v"))
def test_no_name_of_an_asset_lies_in_the_namespace_of_hand_made_jobs(platform_id: str, key: Any, of: Any) -> None:
    assume(not is_reserved_platform(platform_id))
    made = names_of(key, of, PlatformId(platform_id))
    assert not is_direct("table_name", made.table_name)
    assert not is_direct("blob_prefix", made.blob_prefix)
    assert not is_direct("stac_collection_id", made.stac_collection_id)
    assert not is_direct("stac_collection_id", made.stac_collection_id + PUBLIC_COLLECTION)


@pytest.mark.parametrize(
    ("revision", "table", "item"),
    [
        (1, "t_0038272_shapefile_2026_03_0123abcd_v0", "0038272-shapefile-2026-03-0123abcd-v0"),
        (2, "t_0038272_shapefile_2026_03_0123abcd_v0_r2", "0038272-shapefile-2026-03-0123abcd-v0-r2"),
    ],
)
def test_names_are_readable(revision: int, table: str, item: str) -> None:
    of: dict[str, RefValue] = {"dataset_id": "0038272", "resource_id": "shapefile"}
    made = output_names(DDH, "0123abcd", of, label="2026-03", ordinal=0, revision=revision)
    assert asdict(made) == {
        "table_name": table,
        "blob_prefix": f"ddh/0038272_shapefile/0123abcd/v0/r{revision}",
        "stac_item_id": item,
        "stac_collection_id": "ddh-0038272-shapefile-0123abcd",
    }


@pytest.mark.parametrize(
    ("catalogue_id", "title"),
    [
        ("floods-depth-2024-1a2b3c4d-v0", "floods depth 2024"),
        ("floods-depth-2024-1a2b3c4d-v10-r2", "floods depth 2024"),
        ("ddh-floods-depth-1a2b3c4d", "ddh floods depth"),
        ("ddh-floods-depth-1a2b3c4d-public", "ddh floods depth"),
        ("direct-bronze", "direct bronze"),
        ("survey-20240101", "survey 20240101"),
        ("survey-20240101-12345678-v0", "survey 20240101"),
        ("1a2b3c4d", "1a2b3c4d"),
    ],
)
def test_an_id_of_the_catalogue_gives_a_title(catalogue_id: str, title: str) -> None:
    assert title_of_id(catalogue_id) == title
