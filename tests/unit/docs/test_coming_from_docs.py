"""docs/how-to/coming-from-rmhdagmaster.md says what the code does: its names, its numbers and its addresses."""

import re
from typing import Any, Final

import pytest
from fastapi.routing import iter_route_contexts
from pydantic import AliasChoices
from scripts.documentation.http_apis import NO_DATABASE
from tests.compat.family_documents import ADDED_FOR_WORKERS, DOCUMENTS, MESSAGES, environment
from tests.unit.docs.pages import codes, page, table

from graticule.api.app import create_api
from graticule.config import RunMode, Settings
from graticule.core.audience import Audience
from graticule.dag.deciding.fan_out import MAX_NAMED_CHILDREN
from graticule.gateway.app import create_gateway
from graticule.gateway.earlier_forms import PRIORITIES
from graticule.gateway.submissions import MOST_IN_A_BATCH
from graticule.handlers.compatibility import (
    HANDLER_ALIASES,
    SOURCE_PARAMETERS,
    UNUSED_PARAMETERS,
    VALIDATION_PARAMETERS,
)
from graticule.handlers.raster.tile_making import MAX_LISTED_TILES

PAGE: Final = page("coming-from-rmhdagmaster.md")
HEADER: Final = "| earlier | here |"
# Established by others than the platform family: by Azure's own libraries, and by uvicorn.
FOREIGN: Final = {"AZURE_CLIENT_ID", "FORWARDED_ALLOW_IPS"}
VARIABLE: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)+(?:_…)?(?==|$)|[A-Z]+_…")
# What is replaced, so that nobody offers it.
GONE: Final = {("POST", "/api/dbadmin/maintenance")}
ADDRESS: Final = re.compile(r"(?:(GET|POST|PUT|PATCH|DELETE) )?(/[\w/{}…-]+)")


def section(heading: str) -> str:
    """Return what stands below a heading, or below the paragraph that begins so."""
    _, found, rest = PAGE.partition(heading)
    assert found, heading
    return rest.split("\n## ", 1)[0]


def row(earlier: str) -> str:
    """Return what the row says whose first cell begins so."""
    (found,) = re.findall(rf"^\| {re.escape(earlier)}.*$", PAGE, re.MULTILINE)
    return str(found)


def test_every_other_name_of_a_handler_leads_to_its_handler() -> None:
    told = {
        alias: codes(here)[0]
        for earlier, here in table(section("These names of handlers lead to ours"), HEADER)
        for alias in codes(earlier)
    }
    assert told == HANDLER_ALIASES


def test_every_other_name_of_a_parameter_is_on_the_page() -> None:
    """Each once: it is another name, or has no effect."""
    rows = table(section("Their parameters have earlier names"), "| parameter | here |")
    named = [name.partition(":")[0] for earlier, here in rows for name in codes(earlier) + codes(here)]
    for name in {*SOURCE_PARAMETERS, *VALIDATION_PARAMETERS, *UNUSED_PARAMETERS, "raster_type"}:
        assert name in named, name
    (unused,) = [earlier for earlier, here in rows if "without effect" in here]
    assert set(codes(unused)) == UNUSED_PARAMETERS


def test_every_login_of_an_identity_is_on_the_page() -> None:
    told = {name for name in codes(row("`USE_MANAGED_IDENTITY` without")) if name.startswith("graticule-")}
    made = set()
    for mode in set(RunMode) - {RunMode.UP}:
        for audience in Audience:
            values: dict[str, Any] = {
                "run_mode": mode,
                "serve_audience": audience,
                "use_managed_identity": True,
                "postgres_host": "db",
            }
            address = Settings(**values).external_database
            assert address is not None
            made.add(address.parts()["user"])
    assert told == made


def test_the_variables_that_are_added_for_a_worker_are_on_the_page() -> None:
    earlier, _, here = row("the variables of a worker").partition(" | ")
    assert f"add {['none', 'one', 'two', 'three'][len(ADDED_FOR_WORKERS)]}: " in here
    assert {name for name in codes(here) if VARIABLE.fullmatch(name)} == ADDED_FOR_WORKERS.keys()
    assert {name for name in codes(earlier) if VARIABLE.fullmatch(name)} == environment("worker").keys()


def test_the_messages_on_the_page_are_those_that_are_tested() -> None:
    """A staged message has the fields of the page, and names of today's task message say the same."""
    shown = {name for body in MESSAGES["staged"] for name in body}
    assert {name for name in words(row("`{job_id, job_type, stage")) if name in shown} == shown
    earlier, _, here = row("staged task message").partition(" | ")
    assert set(MESSAGES["staged_task"]) == set(words(codes(earlier)[0]))
    assert {name for name in codes(here) if name.isidentifier()} == {"job_id", "handler", "node_id", "params"}
    assert set(MESSAGES["task"]) == set(words(codes(row("task message"))[0]))


@pytest.mark.parametrize(
    ("earlier", "document"),
    [
        ("`echo_test` as printed", "echo_test"),
        ("the tiled example", "tiled_processing"),
        ("a declaration of two stages", "process_raster"),
    ],
)
def test_what_is_added_to_an_example_is_in_the_one_that_runs(earlier: str, document: str) -> None:
    added = [code for code in codes(row(earlier)) if ": " in code]
    text = (DOCUMENTS / f"{document}.yaml").read_text()
    assert added
    assert [code for code in added if code not in text] == []


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_priorities_are_converted_as_the_page_says() -> None:
    said = re.search(r"(\d) to (\d) become our ([\d, and]+), the others (\d)", row("`priority` from 1"))
    assert said is not None
    first, last, rest = int(said[1]), int(said[2]), int(said[4])
    urgent = dict(zip(range(first, last + 1), map(int, re.findall(r"\d+", said[3])), strict=True))
    assert {number: urgent.get(number, rest) for number in range(1, 11)} == PRIORITIES


@pytest.mark.parametrize(
    ("earlier", "number"),
    [
        ("`generate_tiling_scheme`", MAX_LISTED_TILES),
        ("output of a fan-out", MAX_NAMED_CHILDREN),
        ("`POST /api/gateway/submit/batch`", MOST_IN_A_BATCH),
        ("a message for a workflow that", Settings.model_fields["unknown_workflow_seconds"].default),
    ],
)
def test_numbers_are_those_of_the_code(earlier: str, number: float) -> None:
    assert re.search(rf"\b{number:,.0f}\b", row(earlier)), row(earlier)


def variables_of(name: str) -> set[str]:
    """Return the variables that a setting can be made by."""
    alias = Settings.model_fields[name].validation_alias
    choices = map(str, alias.choices) if isinstance(alias, AliasChoices) else [f"graticule_{name}"]
    return {choice.upper() for choice in choices}


def stands_for(told: str, variable: str) -> bool:
    return variable.startswith(told.removesuffix("…")) if told.endswith("…") else variable == told


def test_every_variable_on_the_page_is_one_of_a_setting_and_the_other_way_round() -> None:
    known = set().union(*map(variables_of, Settings.model_fields))
    told = {found[0] for text in codes(PAGE) if (found := VARIABLE.match(text))} - {"ALL_JOBS"}  # of Python
    assert {name for name in told if not any(stands_for(name, variable) for variable in known)} == set()
    earlier = {variable for variable in known if not variable.startswith("GRATICULE_")} - FOREIGN
    assert {variable for variable in earlier if not any(stands_for(name, variable) for name in told)} == set()
    assert "GRATICULE_UNKNOWN_WORKFLOW_SECONDS" in variables_of("unknown_workflow_seconds")


def routes() -> set[tuple[str, str]]:
    """Return what orchestrator and gateway offer, whether their documents show it or not."""
    return {
        (method, re.sub(r"\{\w+\}", "{}", route.path_format or ""))
        for app in (create_api(Settings(), NO_DATABASE), create_gateway(Settings(), NO_DATABASE))
        for route in iter_route_contexts(app.routes)
        for method in route.methods or ()
    }


def test_every_address_on_the_page_is_offered() -> None:
    offered = routes()
    matches = [found for text in codes(PAGE) if (found := ADDRESS.match(text)) and found[2] != "/api"]  # a prefix
    told = {(found[1], re.sub(r"\{\w+\}", "{}", found[2])) for found in matches}
    told |= {(None, f"/platform/{name}") for name in codes(row("`/platform/submit`")) if name.isalpha()}
    assert len(told) > 20

    def is_offered(method: str | None, address: str) -> bool:
        return any(method in {None, each} and stands_for(address, path) for each, path in offered)

    assert {(method, address) for method, address in told if not is_offered(method, address)} == GONE
