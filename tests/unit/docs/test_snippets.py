"""The rule: every block of every page has a language, and something runs it or holds it against the code.

Blocks of some languages are checked wherever they stand. Of the others, the table says which test runs those of a page,
and how many there are: who adds one is led here, and has to see that the test runs it too.
"""

import ast
import json
import tomllib
from collections import Counter
from collections.abc import Callable

import pytest
import yaml
from tests.unit.docs.snippets import PROJECT, Snippet, snippets

from graticule.config import Settings

EVERYWHERE = {
    "console": "tests/unit/docs/test_shell_snippets.py::test_every_command_is_one",
    "sh": "tests/unit/docs/test_shell_snippets.py::test_every_command_is_one",
    "ini": "tests/unit/docs/test_snippets.py::test_it_is_well_formed",
    "mermaid": "tests/browser/test_documentation.py::test_every_diagram_can_be_drawn",
    "sql": "tests/integration/schema/test_sql_snippets.py::test_the_statements_of_the_pages_run",
}
TUTORIALS = "tests/e2e/test_tutorials.py::test_a_reader_goes_through_all_tutorials"
HANDLERS = "tests/unit/docs/test_handler_docs.py"
RUN_BY: dict[tuple[str, str], tuple[int, *tuple[str, ...]]] = {
    ("docs/explanation/assets.md", "text"): (1, "a drawing"),
    ("docs/explanation/engine.md", "json"): (
        1,
        "tests/unit/docs/test_engine_docs.py::test_the_story_of_an_echo_is_told_to_the_letter",
    ),
    ("docs/how-to/callbacks.md", "http"): (
        1,
        "tests/unit/docs/test_callback_docs.py::test_the_request_that_is_shown_is_one_that_is_sent",
    ),
    ("docs/how-to/callbacks.md", "python"): (
        2,
        "tests/unit/docs/test_callback_docs.py::test_an_example_verifies_what_is_sent_and_nothing_else",
    ),
    ("docs/how-to/client.md", "python"): (
        3,
        "tests/integration/api/test_client_docs.py::test_the_examples_of_jobs_print_what_is_said",
        "tests/integration/gateway/test_client_of_gateway.py::test_the_example_for_partners_prints_what_is_said",
    ),
    ("docs/how-to/client.md", "text"): (
        3,
        "tests/integration/api/test_client_docs.py::test_the_examples_of_jobs_print_what_is_said",
        "tests/integration/gateway/test_client_of_gateway.py::test_the_example_for_partners_prints_what_is_said",
    ),
    ("docs/how-to/handlers.md", "python"): (
        4,
        f"{HANDLERS}::test_what_the_page_shows_of_the_package_is_in_it",
        f"{HANDLERS}::test_the_try_without_a_worker",
        f"{HANDLERS}::test_a_chunk_is_loaded_once",
    ),
    ("docs/how-to/handlers.md", "toml"): (1, f"{HANDLERS}::test_its_handlers_are_found_by_the_entry_point"),
    ("docs/how-to/handlers.md", "yaml"): (1, f"{HANDLERS}::test_its_workflow_compiles_where_the_package_is_installed"),
    ("docs/how-to/jobs.md", "text"): (
        1,
        "tests/unit/docs/test_job_docs.py::test_a_job_that_runs_is_shown_as_it_is_drawn",
    ),
    ("docs/how-to/kubernetes.md", "yaml"): (
        1,
        "tests/unit/docs/test_kubernetes_docs.py::test_the_overlay_of_the_page_changes_what_is_there",
    ),
    ("docs/how-to/monitoring.md", "yaml"): (
        1,
        "tests/unit/docs/test_monitoring_docs.py::test_prometheus_asks_the_processes_of_an_installation",
    ),
    ("docs/how-to/platforms.md", "json"): (
        4,
        "tests/unit/docs/test_platform_docs.py::test_the_partner_of_the_page_can_be_added_and_every_field_is_told",
        "tests/unit/docs/test_platform_docs.py::test_the_flat_form_becomes_what_the_page_says",
        "tests/unit/docs/test_platform_docs.py::test_the_description_of_the_page_is_one_with_every_field",
    ),
    ("docs/how-to/platforms.md", "text"): (
        1,
        "tests/unit/docs/test_platform_docs.py::test_the_documented_id_is_the_one_that_is_made",
    ),
    ("docs/how-to/workflows.md", "json"): (
        1,
        "tests/unit/docs/test_workflow_docs.py::test_templates_give_what_the_table_says",
    ),
    ("docs/how-to/workflows.md", "text"): (
        1,
        "tests/unit/docs/test_workflow_docs.py::test_the_problems_of_the_broken_file_are_told_as_shown",
    ),
    ("docs/how-to/workflows.md", "toml"): (
        1,
        "tests/unit/docs/test_workflow_docs.py::test_the_entry_point_of_the_page_is_that_of_the_example",
    ),
    ("docs/how-to/workflows.md", "yaml"): (
        4,
        "tests/unit/docs/test_workflow_docs.py::test_every_workflow_of_the_page_compiles_without_a_problem",
        "tests/unit/docs/test_workflow_docs.py::test_the_problems_of_the_broken_file_are_told_as_shown",
    ),
    ("docs/reference/catalogue.md", "json"): (
        1,
        "tests/unit/docs/test_catalogue_docs.py::test_the_item_of_the_page_is_like_one_that_is_made",
    ),
    ("docs/reference/raster_validation.md", "json"): (
        1,
        "tests/unit/docs/test_raster_validation_docs.py::test_the_report_is_one",
    ),
    ("docs/reference/schema.md", "python"): (
        1,
        "tests/unit/docs/test_schema_docs.py::test_the_model_of_the_page_is_ours",
    ),
    ("docs/reference/vector.md", "text"): (1, "a drawing"),
    ("docs/reference/vector_validation.md", "json"): (
        1,
        "tests/unit/docs/test_vector_validation_docs.py::test_the_report_is_one",
    ),
    ("docs/tutorials/first-job.md", "console"): (8, TUTORIALS),
    ("docs/tutorials/first-partner.md", "console"): (7, TUTORIALS),
    ("docs/tutorials/own-package.md", "console"): (8, TUTORIALS),
    ("docs/tutorials/own-package.md", "python"): (3, TUTORIALS),
    ("docs/tutorials/own-package.md", "toml"): (1, TUTORIALS),
    ("docs/tutorials/own-package.md", "yaml"): (1, TUTORIALS),
    ("docs/tutorials/reviewing.md", "console"): (9, TUTORIALS),
}
FOUND = Counter((each.page, each.language) for each in snippets())


def test_every_block_has_a_language() -> None:
    assert [str(each) for each in snippets() if not each.language] == []


def test_every_block_is_run_or_checked() -> None:
    """The commands of a tutorial are run; it is not enough that they could be."""
    wanted = {
        (page, language): count
        for (page, language), count in FOUND.items()
        if language not in EVERYWHERE or page.startswith("docs/tutorials/")
    }
    assert wanted == {key: count for key, (count, *_) in RUN_BY.items()}


def test_what_is_said_to_run_them_is_there() -> None:
    named = {test for _, *tests in RUN_BY.values() for test in tests} | {*EVERYWHERE.values()}
    for path, _, test in (each.partition("::") for each in named if "::" in each):
        source = (PROJECT / path).read_text(encoding="utf-8")
        assert f"def {test}(" in source, f"{path} has no {test}"


def _settings(text: str) -> None:
    names = {line.split("=")[0] for line in text.splitlines() if line}
    assert names <= {f"GRATICULE_{name.upper()}" for name in Settings.model_fields}, names


def _json(text: str) -> None:
    """Read a document, or one in each line, also when a request stands before it."""
    try:
        json.loads(text[text.index("{") :])
    except json.JSONDecodeError:
        [json.loads(line) for line in text.splitlines()]


FORMS: dict[str, Callable[[str], object]] = {
    "ini": _settings,
    "json": _json,
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
}


@pytest.mark.parametrize("snippet", [each for each in snippets() if each.language in FORMS], ids=str)
def test_it_is_well_formed(snippet: Snippet) -> None:
    FORMS[snippet.language](snippet.text)
