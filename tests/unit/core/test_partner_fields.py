"""Partners' field names: translated by their row of the registry, and refused in their own words."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graticule.core.asset_names import asset_id_of
from graticule.core.errors import InvalidInput
from graticule.core.exchange import PlatformSubmission
from graticule.core.models import Platform
from graticule.core.partner_fields import DOMAIN_FIELDS, split_refs, translate

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def platform(platform_id: str, required: list[str], version_ref: str, *optional: str) -> Platform:
    return Platform(
        platform_id=platform_id,
        display_name="A partner",
        required_refs=required,
        optional_refs=[*optional],
        version_ref=version_ref,
        created_at=WHEN,
        updated_at=WHEN,
    )


DDH = platform("ddh", ["dataset_id", "resource_id"], "version_id", "region")
ARCGIS = platform("arcgis", ["item_id", "layer_index"], "version")
PLAIN = platform("plain", ["uuid"], "version_label")

WHERE = {"data_type": "raster", "container_name": "bronze", "file_name": "ddh/dem/europe.tif"}
FLAT = {"platform_id": "ddh", "dataset_id": "0038272", "resource_id": "shapefile", "version_id": "2026-03", **WHERE}
DOMAIN = {
    "platform_id": "ddh",
    "platform_refs": {"dataset_id": "0038272", "resource_id": "shapefile"},
    "version_label": "2026-03",
    **WHERE,
}


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


def refused(of: Platform, body: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        translate(of, body)
    assert len(caught.value.message) < 4000
    return f"{caught.value.message} {caught.value.hint or ''}"


# Split


def test_the_required_refs_identify_and_the_optional_ones_are_kept() -> None:
    split = split_refs(DDH, {"region": "EU", "resource_id": "r", "dataset_id": "d"})
    assert split.identity == {"dataset_id": "d", "resource_id": "r"}
    assert split.kept == {"region": "EU"}
    assert split_refs(DDH, {"resource_id": "r", "dataset_id": "d"}).identity == split.identity


def test_missing_and_unknown_refs_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"missing: resource_id\.$"):
        split_refs(DDH, {"dataset_id": "d"})
    with pytest.raises(InvalidInput, match=r"no ref colour\. Its refs are dataset_id, resource_id, region\.$"):
        split_refs(DDH, {"dataset_id": "d", "resource_id": "r", "colour": "red"})
    with pytest.raises(InvalidInput) as caught:
        split_refs(DDH, {"dataset_id": "d", "resource_id": "r", "version_id": "v"})
    assert caught.value.hint == "The version is no ref: send it as version_label."


# Translate


def test_the_flat_form_and_the_domains_come_to_the_same() -> None:
    assert translate(DDH, FLAT) == translate(DDH, DOMAIN) == DOMAIN
    assert translate(DDH, without(FLAT, "platform_id")) == DOMAIN
    arcgis = {"item_id": "a1", "layer_index": 0, "version": "7", "overwrite": True, "priority": 3, **WHERE}
    assert translate(ARCGIS, arcgis) == {
        "platform_id": "arcgis",
        "platform_refs": {"item_id": "a1", "layer_index": 0},
        "version_label": "7",
        "overwrite": True,
        "priority": 3,
        **WHERE,
    }


def test_a_partner_may_call_the_version_as_we_do() -> None:
    assert translate(PLAIN, {"uuid": "u", "version_label": "1", **WHERE})["version_label"] == "1"
    assert translate(PLAIN, {"platform_refs": {"uuid": "u"}, "version_label": "1", **WHERE})["version_label"] == "1"


def test_what_comes_out_can_be_translated_again() -> None:
    once = translate(DDH, {**FLAT, "region": "EU"})
    assert translate(DDH, once) == once


@pytest.mark.parametrize(
    "name", ["dataset_id", "resource_id", "version_id", "data_type", "container_name", "file_name"]
)
def test_what_is_missing_is_told_by_the_partners_own_name(name: str) -> None:
    told = refused(DDH, without(FLAT, name))
    assert name in told
    assert "platform_refs" not in told
    assert "version_label" not in told


def test_the_two_forms_are_not_mixed() -> None:
    told = refused(DDH, {**DOMAIN, "dataset_id": "d", "version_id": "v"})
    assert "mixes two forms: dataset_id, version_id has no place beside platform_refs" in told
    assert "mixes two forms: version_label" in refused(DDH, {**FLAT, "version_label": "v"})
    assert "mixes two forms: version_label" in refused(DDH, {**without(FLAT, "version_id"), "version_label": "v"})
    assert "mixes two forms" in refused(DDH, {**FLAT, "platform_refs": {}})


def test_an_unknown_field_is_told_with_those_that_are_known() -> None:
    told = refused(DDH, {**FLAT, "colour": "red"})
    assert "no field colour here. The fields are dataset_id, resource_id, region, version_id, platform_id" in told
    assert "platform_refs" not in told
    assert "no field colour here. The fields are platform_id, platform_refs" in refused(
        DDH, {**DOMAIN, "colour": "red"}
    )


def test_another_platform_is_not_this_one() -> None:
    assert "platform_id is not ddh" in refused(DDH, {**FLAT, "platform_id": "arcgis"})


@pytest.mark.parametrize(
    "value", ["", "a\0b", "x" * 10_240, "\ud800", None, 1.5, True, ["a"], {"a": 1}, 2**60], ids=repr
)
@pytest.mark.parametrize("name", ["dataset_id", "version_id"])
def test_a_value_that_cannot_be_kept_is_refused_by_its_name(name: str, value: object) -> None:
    told = refused(DDH, {**FLAT, name: value})
    assert f"not valid. {name}: " in told
    assert "x" * 100 not in told


def test_a_version_is_a_text_and_a_ref_may_be_a_number() -> None:
    assert "version_id: Input should be a valid string" in refused(DDH, {**FLAT, "version_id": 7})
    number, text = translate(DDH, {**FLAT, "dataset_id": 7}), translate(DDH, {**FLAT, "dataset_id": "7"})
    ids = {asset_id_of("ddh", split_refs(DDH, each["platform_refs"]).identity) for each in (number, text)}
    assert len(ids) == 2


def test_a_fault_deeper_in_the_domains_form_is_told_with_its_place() -> None:
    assert "platform_refs.dataset_id: " in refused(
        DDH, {**DOMAIN, "platform_refs": {"dataset_id": [], "resource_id": "r"}}
    )
    assert "platform_refs: " in refused(DDH, {**DOMAIN, "platform_refs": "d"})
    assert "file_name must be a path below its container" in refused(DDH, {**FLAT, "file_name": "../x"})


def test_names_that_cannot_be_printed_or_are_many_do_not_spoil_the_message() -> None:
    told = refused(DDH, {**FLAT, "\ud800\n" + "y" * 5000: 1, **{f"field_{number}": 1 for number in range(1000)}})
    assert told.isprintable()
    assert told.isascii() or told.replace("…", "").isascii()


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=80)
quoted = st.sampled_from(
    ['"', "'", "|", "\\", '", "resource_id": "x', "é", "e\u0301", "'; DROP TABLE x; --", "{{ x }}"]
)
values = texts | quoted | st.integers(-(2**53), 2**53)


@given(values, values, st.none() | values, texts | quoted)
def test_every_value_that_can_be_kept_arrives_unchanged(dataset: Any, resource: Any, region: Any, label: str) -> None:
    flat = {**FLAT, "dataset_id": dataset, "resource_id": resource, "version_id": label}
    flat |= {} if region is None else {"region": region}
    translated = translate(DDH, flat)
    kept = PlatformSubmission.model_validate(translated)
    assert kept.version_label == label
    identity, optional = split_refs(DDH, kept.platform_refs)
    assert identity == {"dataset_id": dataset, "resource_id": resource}
    assert [type(value) for value in identity.values()] == [type(dataset), type(resource)]
    assert optional == ({} if region is None else {"region": region})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
field_names = st.sampled_from([*DOMAIN_FIELDS, "dataset_id", "resource_id", "region", "version_id"]) | st.text()


@given(st.sampled_from([FLAT, DOMAIN, {}]), st.dictionaries(field_names, json_values, max_size=4))
def test_any_body_is_either_a_submission_or_refused(base: dict[str, Any], changes: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        PlatformSubmission.model_validate(translate(DDH, {**base, **changes}))
