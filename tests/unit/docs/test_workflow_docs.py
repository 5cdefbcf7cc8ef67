"""docs/how-to/workflows.md says what the compiler, the templates and the evaluator do."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import JsonValue
from tests.unit.cli.conftest import run
from tests.unit.dag.jobs import PlayedJob, split_graph
from tests.unit.docs.pages import DOCS, blocks, code, codes, file_of, page, table, workflows

from graticule.core.errors import InvalidInput
from graticule.core.models.engine import NodeType
from graticule.dag import compile as compiler
from graticule.dag import inputs, templates
from graticule.dag.compile import compile_workflow
from graticule.dag.compiling import declarations, drafts, stages, yaml_source
from graticule.dag.deciding.retry import delay_seconds
from graticule.dag.graph import Aggregation, Backoff, Graph, InputType, RetryPolicy
from graticule.dag.inputs import deterministic_job_id, validate_inputs
from graticule.dag.language import methods, values
from graticule.dag.language.filters import FILTERS
from graticule.dag.language.tests import TESTS
from graticule.dag.templates import TemplateError, evaluate_condition, render_value
from graticule.handlers import known_handlers
from graticule.services.workflow_packages import ENTRY_POINT_GROUP

PAGE = page("workflows.md")
TAIL = "nodes: {start: {next: end}}\n"
CONTEXT = json.loads(blocks(PAGE, "json")[0])


def graph_of(text: str) -> Graph:
    compiled = compile_workflow(text, file="page.yaml", handlers=known_handlers())
    assert [str(problem) for problem in compiled.problems] == []
    assert compiled.graph is not None
    return compiled.graph


GRAPHS = {graph.workflow_id: graph for graph in map(graph_of, workflows(PAGE))}


def section(heading: str) -> str:
    found = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def play(workflow_id: str, **given: JsonValue) -> PlayedJob:
    graph = GRAPHS[workflow_id]
    job = PlayedJob(graph, inputs=validate_inputs(graph, given))
    job.submit()
    return job


# The examples


def test_every_workflow_of_the_page_compiles_without_a_problem() -> None:
    assert set(GRAPHS) == {"tile_raster", "two_forms", "pipeline"}
    assert {node.type for node in GRAPHS["tile_raster"].nodes.values()} == set(NodeType)


def test_the_problems_of_the_broken_file_are_told_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (broken,) = [block for block in blocks(PAGE, "yaml") if file_of(block) is not None]
    (shown,) = blocks(PAGE, "text")
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text(broken)
    result = run("workflow", "validate", "broken.yaml")
    assert (result.code, result.out) == (1, shown)


def test_a_small_file_is_processed_as_a_whole() -> None:
    job = play("tile_raster", size_mb=99)
    job.complete("measure", output={"file_size_mb": 99})
    job.complete("whole", output={})
    assert job.store.rows["report"].input_params == {"tiles": 1}
    job.complete("report", output={"done": True})
    assert (job.status, job.store.result) == ("completed", {"done": True})
    assert {job.statuses[node] for node in ("split", "gather")} == {"skipped"}


def test_a_large_file_is_processed_tile_by_tile() -> None:
    job = play("tile_raster", size_mb=100)
    job.complete("measure", output={"file_size_mb": 100})
    assert job.store.rows["route"].output == {"branch": 1, "next": ["split"]}
    assert [child.fan_out_key for child in job.store.children("split")] == ["tile-north", "tile-south"]
    job.complete("split__0", "split__1", output={})
    children = ["split__0", "split__1"]
    told = {"count": 2, "failed": 0, "fan_out_count": 2, "child_node_ids": children}
    assert job.store.rows["split"].output == told
    assert job.store.rows["report"].input_params == {"tiles": 2}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"kind": "vector", "size_mb": 600}, set()),
        ({"size_mb": 600}, {"heavy"}),
        ({"size_mb": 101}, {"by_size", "heavy"}),
        ({"size_mb": 100}, {"by_size", "light"}),
    ],
)
def test_the_two_forms_of_conditionals(given: dict[str, JsonValue], taken: set[str]) -> None:
    job = play("two_forms", **given)
    assert {node for node in ("by_size", "heavy", "light") if job.statuses[node] != "skipped"} == taken


def test_a_parallel_stage_hands_each_result_to_the_matching_task() -> None:
    job = play("pipeline")
    job.complete("list", output={"echoed_params": {"names": ["a", "b", "c"]}})
    for index in range(3):
        job.complete(f"tile__{index}", output={"tile": index})
    assert "tile_results" in GRAPHS["pipeline"].nodes
    assert [child.input_params for child in job.store.children("check")] == [{"tile": {"tile": n}} for n in range(3)]


# Templates


@pytest.mark.parametrize(("template", "value"), table(PAGE, "| template | value |"))
def test_templates_give_what_the_table_says(template: str, value: str) -> None:
    if value.startswith("refused: "):
        with pytest.raises(TemplateError) as refused:
            render_value(code(template), CONTEXT)
        assert refused.value.reason == value.removeprefix("refused: ")
    else:
        found = render_value(code(template), CONTEXT)
        assert (found, type(found)) == (json.loads(code(value)), type(json.loads(code(value))))


def test_what_can_be_used_in_templates_is_listed_completely() -> None:
    listed = {row[0]: codes(row[1]) for row in table(PAGE, "| there are |")}
    assert set(listed["filters"]) == {*FILTERS, "default", "d"}
    spelt_twice = {"equalto", "greaterthan", "lessthan"}
    assert set(listed["tests, after `is`"]) == {name for name in TESTS if name.isalpha()} - spelt_twice
    assert {*listed["methods of text"], *listed["methods of mappings and lists"]} == methods.NAMES
    for statement in listed["statements, in text only"]:
        assert statement in {"if", "for", "set"}


def test_conditions_are_true_or_false_and_compare_like_with_like() -> None:
    assert evaluate_condition("inputs.note == 5", CONTEXT) is False
    for refused in ("inputs.size_mb", "inputs.postcode == 38272"):
        with pytest.raises(TemplateError):
            evaluate_condition(refused, CONTEXT)


# Keys, defaults and bounds


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("The file", {*declarations.KEYS, *declarations._INPUT_KEYS, *InputType}),
        ("Nodes", {*NodeType, *(key for keys in drafts._KEYS.values() for key in keys), "all_of", "any_of"}),
        ("Tasks", {*drafts._TASK, *drafts._RETRY, "fixed", "linear", "exponential"}),
        ("Fan-out and fan-in", set(Aggregation)),
        ("Stages", {*stages._COMMON, *stages._PARALLEL, "single", "fan_out"}),
    ],
)
def test_every_key_is_told(heading: str, keys: set[str]) -> None:
    told = set(re.findall(r"\w+", " ".join(codes(section(heading)))))
    assert {str(key) for key in keys} - told == set()


def test_the_keys_of_each_type_of_node() -> None:
    common = {"type", "description", "depends_on"}
    for node_type, _, keys in table(PAGE, "| type | what it does |"):
        assert {*codes(keys), *common} == set(drafts._KEYS[NodeType(code(node_type))])


def test_the_defaults_of_retry() -> None:
    told = {code(row[0]): row[1].strip("`") for row in table(PAGE, "| `retry` | default |")}
    assert RetryPolicy.model_validate(told) == RetryPolicy()
    assert set(told) == set(RetryPolicy.model_fields)


def test_the_waits_before_a_retry() -> None:
    def waits(backoff: Backoff, *, jitter: bool = False) -> list[float]:
        policy = RetryPolicy(backoff=backoff, initial_delay_seconds=4, jitter=jitter)
        return [delay_seconds(policy, retry, "task") for retry in (1, 2, 3, 9)]

    assert waits(Backoff.FIXED) == [4, 4, 4, 4]
    assert waits(Backoff.LINEAR) == [4, 8, 12, 36]
    assert waits(Backoff.EXPONENTIAL) == [4, 8, 16, 60]
    for jittered, whole in zip(waits(Backoff.LINEAR, jitter=True), waits(Backoff.LINEAR), strict=True):
        assert whole / 2 <= jittered <= whole


@pytest.mark.parametrize(
    ("heading", "numbers"),
    [
        ("The file", (yaml_source.MAX_CHARACTERS, compiler.MAX_NODES, inputs.MAX_BYTES)),
        ("Nodes", (compiler.MAX_NODE_ID,)),
        ("Tasks", (drafts.MAX_TIMEOUT_SECONDS,)),
        ("Fan-out and fan-in", (drafts.MAX_CHILDREN, 255)),
        (
            "Templates",
            (
                values.MAX_STEPS,
                templates.STEPS_OF_A_FAN_OUT,
                values.MAX_TEXT,
                values.MAX_ITEMS,
                values.MAX_MADE,
                values.MAX_BITS,
            ),
        ),
    ],
)
def test_the_bounds_are_those_of_the_code(heading: str, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,]\d)", section(heading)), number


@pytest.mark.parametrize("row", table(PAGE, "| `aggregation` | output"))
def test_the_outputs_of_fan_ins(row: list[str]) -> None:
    shape = set(re.findall(r"\w+", codes(row[1])[0]))
    for aggregation in codes(row[0]):
        job = PlayedJob(split_graph([1, 2], aggregation=aggregation))
        job.submit()
        job.complete("split__0", "split__1", output=[3])
        output = job.store.rows["merge"].output
        assert isinstance(output, dict)
        assert set(output) == shape


def test_children_that_failed_and_are_tolerated_are_listed() -> None:
    job = PlayedJob(split_graph(["a", "b"], key="{{ item }}", on_child_failure="continue"))
    job.submit()
    job.fail("split__0", "no")
    job.complete("split__1", output=5)
    failed = {"index": 0, "key": "a", "node_id": "split__0", "error": "no"}
    assert job.store.rows["merge"].output == {"results": [5], "count": 1, "failed": [failed]}


# Inputs


@pytest.mark.parametrize("value", ["5", 5.0])
def test_inputs_are_not_converted(value: JsonValue) -> None:
    graph = graph_of(f"workflow_id: one\ninputs: {{n: {{type: integer}}}}\n{TAIL}")
    with pytest.raises(InvalidInput):
        validate_inputs(graph, {"n": value})


def test_what_is_not_given_or_null_is_the_default() -> None:
    graph = graph_of(f"workflow_id: one\ninputs: {{n: {{type: integer, default: 7}}, m: {{type: string}}}}\n{TAIL}")
    assert validate_inputs(graph, {}) == {"n": 7, "m": None}
    assert validate_inputs(graph, {"n": None}) == {"n": 7, "m": None}


def test_a_pattern_is_searched_for() -> None:
    graph = graph_of(f'workflow_id: one\ninputs: {{n: {{type: string, pattern: "b"}}}}\n{TAIL}')
    assert validate_inputs(graph, {"n": "abc"}) == {"n": "abc"}


def test_the_id_of_a_job_follows_from_its_inputs() -> None:
    graph = graph_of(f"workflow_id: one\njob_id: params\ninputs: {{n: {{type: integer, default: 7}}}}\n{TAIL}")
    ids = {deterministic_job_id(graph, validate_inputs(graph, given)) for given in ({}, {"n": 7})}
    assert len(ids) == 1


# Packages


def test_the_entry_point_of_the_page_is_that_of_the_example() -> None:
    (shown,) = map(tomllib.loads, blocks(PAGE, "toml"))
    example = tomllib.loads((DOCS.parent / "examples/tides/pyproject.toml").read_text(encoding="utf-8"))
    points = shown["project"]["entry-points"]
    assert points == {ENTRY_POINT_GROUP: example["project"]["entry-points"][ENTRY_POINT_GROUP]}
