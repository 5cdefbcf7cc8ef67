"""docs/how-to/platforms.md: its partner is added as shown, its translation happens, every command is told."""

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any

from tests.unit.docs.pages import blocks, code, codes, page, table

from graticule.core.asset_names import asset_id_of
from graticule.core.exchange import PlatformSubmission
from graticule.core.models import Platform
from graticule.core.partner_fields import split_refs, translate
from graticule.core.permissions import Deed
from graticule.core.refusals import Refusal
from graticule.services.commands import COMMANDS, LONGEST_SECONDS
from graticule.services.layer_metadata import LARGEST_BYTES, LayerDescription
from graticule.services.platforms import NewPlatform

PAGE = page("platforms.md")
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def bodies() -> list[dict[str, Any]]:
    return [json.loads(block[block.index("{") :]) for block in blocks(PAGE, "json")]


def atlas() -> Platform:
    return Platform(**NewPlatform(**bodies()[0]).model_dump(), created_at=WHEN, updated_at=WHEN)


def test_the_partner_of_the_page_can_be_added_and_every_field_is_told() -> None:
    assert atlas().platform_id == "atlas"
    assert [code(row[0]) for row in table(PAGE, "| field | what |")] == [*NewPlatform.model_fields]


def test_the_flat_form_becomes_what_the_page_says() -> None:
    _, flat, domain, _ = bodies()
    assert translate(atlas(), flat) == domain == translate(atlas(), domain)
    submission = PlatformSubmission.model_validate(domain)
    assert split_refs(atlas(), submission.platform_refs).kept == {"edition": "revised"}


def test_the_documented_id_is_the_one_that_is_made() -> None:
    found = re.search(r"sha256\('(?P<text>.*)'\)\[:32\] = (?P<id>\w+)", PAGE)
    assert found is not None
    assert hashlib.sha256(found["text"].encode()).hexdigest()[:32] == found["id"]
    assert asset_id_of("ddh", {"dataset_id": "0038272", "resource_id": "shapefile"}) == found["id"]


def test_the_description_of_the_page_is_one_with_every_field() -> None:
    assert LayerDescription(**bodies()[3]).model_fields_set == {*LayerDescription.model_fields}
    assert f"{LARGEST_BYTES // 1024} KiB" in PAGE


def test_every_command_is_told_with_its_parameters_and_who_may_give_it() -> None:
    told = {code(row[0]): row[1:] for row in table(PAGE, "| command | parameters | what |")}
    assert [*told] == [*COMMANDS]
    for name, (parameters, what) in told.items():
        assert codes(parameters) == [*COMMANDS[name].parameters.model_fields], name
        assert ("Admins only" in what) == (COMMANDS[name].deed is Deed.ADMINISTER), name
    assert f"{LONGEST_SECONDS:g} s" in PAGE


def test_the_refusals_that_are_named_exist() -> None:
    named = {name for name in codes(PAGE) if re.fullmatch(r"not_\w+|\w+_in_use|stale_\w+", name)}
    assert len(named) == 4
    assert named <= {*Refusal}
