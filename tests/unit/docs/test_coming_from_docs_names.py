"""docs/how-to/coming-from-rmhdagmaster.md: its identifiers, its names and its commands are those of the code."""

import hashlib
import json
import re
from typing import Any, Final
from uuid import UUID

from tests.unit.docs.pages import codes, table
from tests.unit.docs.test_coming_from_docs import HEADER, PAGE, row, section
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import Settings
from graticule.core.asset_names import asset_id_of, output_names
from graticule.core.exchange import SubmissionReceipt
from graticule.core.ids import PlatformId

NAMES: Final = section("\n## Identifiers and names")
PLATFORM, _, DATASET, _, RESOURCE, VERSION = codes(NAMES)[:6]
REFS: Final = {"dataset_id": DATASET, "resource_id": RESOURCE}
IDENTIFIER: Final = re.compile(r"[0-9a-f]{32}")


def names_row(earlier: str) -> list[str]:
    """Return the cells of the row that begins so."""
    (found,) = [cells for cells in table(NAMES, HEADER) if cells[0].startswith(earlier)]
    return found


def digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def command_of(line: str) -> tuple[Any, list[str]]:
    """Return the command that is meant, and what follows its name."""
    command: Any = get_command(app)
    rest = line.split()[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def test_an_asset_has_the_id_that_the_page_says() -> None:
    ours = asset_id_of(PLATFORM, REFS)
    earlier, here = names_row("`asset_id` without")
    assert digits(codes(earlier)[1]) == ours == IDENTIFIER.findall(here)[0]
    assert codes(earlier)[1] == f"{PLATFORM}|{json.dumps(REFS, sort_keys=True)}"
    earlier, here = names_row("`asset_id` with the")
    formulas = [code for code in codes(earlier) if "|" in code]
    with_version = json.dumps({**REFS, "version_id": VERSION}, sort_keys=True, separators=(",", ":"))
    assert formulas == [f"{PLATFORM}|{with_version}", f"{DATASET}|{RESOURCE}|{VERSION}"]
    assert [digits(formula) for formula in formulas] == IDENTIFIER.findall(earlier)
    assert IDENTIFIER.findall(here) == [ours]


def test_requests_have_ids_of_the_form_that_the_page_says() -> None:
    assert SubmissionReceipt.model_fields["request_id"].annotation is UUID
    assert f"a UUID of {len(str(UUID(int=0)))} characters" in names_row("`request_id`")[1]


def test_outputs_have_the_names_that_the_page_says() -> None:
    short_id = asset_id_of(PLATFORM, REFS)[:8]
    first, second = [
        output_names(PlatformId(PLATFORM), short_id, REFS, label=VERSION, ordinal=0, revision=revision)
        for revision in (1, 2)
    ]
    assert codes(names_row("table")[1]) == [f"geo.{names.table_name}" for names in (first, second)]
    assert codes(names_row("blob")[1]) == [f"{first.blob_prefix}/", Settings().silver_container]
    assert codes(names_row("STAC item")[1]) == [first.stac_item_id, first.stac_collection_id]


def test_queues_are_made_by_the_rules_that_the_page_says() -> None:
    command, _ = command_of("graticule azure queues ensure")
    defaults = {parameter.name: parameter.default for parameter in command.params}
    minutes, deliveries = defaults["lock_seconds"] // 60, defaults["max_deliveries"]
    days = Settings().service_bus_message_seconds / 86_400
    told = row("`az servicebus queue create")
    assert f"a lock of {minutes} minutes, {deliveries} deliveries, messages kept for {days:g} day." in told
    assert f"sets {deliveries};" in row("`maxDeliveryCount: 1`")


def test_every_command_of_the_page_is_one_with_these_options() -> None:
    named = [text for text in codes(PAGE) if text.startswith("graticule ")]
    assert len(named) > 15
    for line in named:
        command, rest = command_of(line)
        assert not getattr(command, "commands", {}), line
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, line


def test_processing_times_are_those_of_as_many_days() -> None:
    command, _ = command_of("graticule stats durations")
    (days,) = [parameter for parameter in command.params if "--days" in parameter.opts]
    assert f"of {days.default} days" in row("the report of processing times")
