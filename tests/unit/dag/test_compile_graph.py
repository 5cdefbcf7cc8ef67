"""What a sound workflow compiles to."""

# ruff: noqa: E501 - a node is one line of YAML

from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.dag.workflow_texts import HANDLERS, compiled, errors_of, graph_of, graph_of_nodes, nodes_text, told

from graticule.core.models.engine import NodeType
from graticule.dag.compile import compile_workflow
from graticule.dag.graph import Backoff, Branch, ChildFailure, Graph, Join, RetryPolicy
from graticule.dag.templates import evaluate_condition

COMPLETE = """\
workflow_id: raster_processing
name: Raster Processing Pipeline
version: "1.0"
description: From a blob to a mosaic.
job_id: params
inputs:
  blob_name:  {type: string, required: true}
  target_crs: {type: string, default: "EPSG:3857", enum: ["EPSG:3857", "EPSG:4326"]}
nodes:
  start:        {type: start, next: validate}
  validate:
    type: task
    handler: size_check
    queue: container-tasks
    params: {blob_name: "{{ inputs.blob_name }}"}
    timeout_seconds: 60
    retry: {max_attempts: 5, backoff: fixed, initial_delay_seconds: 2, max_delay_seconds: 9, jitter: false}
    next: route_by_size
  route_by_size:
    type: conditional
    condition_field: "{{ nodes.validate.output.file_size_mb }}"
    branches:
      - {default: true, next: prepare}
      - {condition: "< 100", next: process_direct}
      - {condition: "{{ nodes.validate.output.kind }} == 'dem' and {{ inputs.target_crs }} != ''", next: [prepare, log]}
  process_direct: {handler: echo, next: finalize}
  log:            {handler: echo, next: end}
  prepare:        {handler: echo, next: split}
  split:
    type: fan_out
    source: "{{ nodes.prepare.output.tile_list }}"
    key: "{{ item.tile_id }}"
    max_parallel: 50
    on_child_failure: continue
    task:
      handler: chunk_processor
      params: {tile: "{{ item }}", tile_index: "{{ index }}", crs: "{{ inputs.target_crs }}"}
      retry: {max_attempts: 2}
    next: merge
  merge: {type: fan_in, aggregation: concat, next: finalize}
  finalize:
    depends_on: {any_of: [process_direct, merge]}
    handler: echo
    next: end
  end: {type: end}
"""


def test_everything_that_is_written_stands_in_the_graph() -> None:
    graph = graph_of(COMPLETE)
    assert (graph.workflow_id, graph.name, graph.version) == ("raster_processing", "Raster Processing Pipeline", "1.0")
    assert (graph.description, graph.job_id) == ("From a blob to a mosaic.", "params")
    assert graph.inputs["blob_name"].required
    assert graph.inputs["target_crs"].enum == ("EPSG:3857", "EPSG:4326")
    task = graph.nodes["validate"].task
    assert task is not None
    assert (task.handler, task.queue, task.timeout_seconds) == ("size_check", "container-tasks", 60)
    assert task.params == {"blob_name": "{{ inputs.blob_name }}"}
    assert task.retry == RetryPolicy(
        max_attempts=5, backoff=Backoff.FIXED, initial_delay_seconds=2, max_delay_seconds=9, jitter=False
    )
    split = graph.nodes["split"]
    assert split.source == "{{ nodes.prepare.output.tile_list }}"
    assert (split.key, split.max_parallel) == ("{{ item.tile_id }}", 50)
    assert split.on_child_failure is ChildFailure.CONTINUE
    assert split.task is not None
    assert (split.task.queue, split.task.timeout_seconds, split.task.retry.max_attempts) == (
        "functionapp-tasks",
        600,
        2,
    )
    assert (graph.nodes["merge"].aggregation, graph.nodes["merge"].fan_out) == ("concat", "split")
    assert graph.nodes["finalize"].join is Join.ANY_OF
    assert set(graph.incoming["finalize"]) == {"process_direct", "merge"}
    assert all(node.stage is None for node in graph.nodes.values())


def test_branches_are_whole_expressions_with_the_default_last() -> None:
    branches = graph_of(COMPLETE).nodes["route_by_size"].branches
    assert branches == (
        Branch(condition="(nodes.validate.output.file_size_mb) < 100", next=("process_direct",)),
        Branch(
            condition="(nodes.validate.output.kind) == 'dem' and (inputs.target_crs) != ''", next=("prepare", "log")
        ),
        Branch(condition=None, next=("prepare",)),
    )
    assert graph_of(COMPLETE).nodes["route_by_size"].next == ("process_direct", "prepare", "log")


def test_a_graph_is_its_own_document() -> None:
    graph = graph_of(COMPLETE)
    again = Graph.model_validate(graph.model_dump(mode="json"))
    assert again == graph
    assert again.content_hash == graph.content_hash


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("'{{ inputs.size }} > 100'", {"size": 101}, True),
        ("'{{ inputs.size > 100 }}'", {"size": 100}, False),
        ("'{{inputs.size}}>=100 and not {{ inputs.size }}==200'", {"size": 200}, False),
        ("inputs.size > 100", {"size": 101}, True),
        ("'{{ inputs.size }} in [1, 2]'", {"size": 2}, True),
        ("'{{ 1 if inputs.size > 3 else 2 }} == 1'", {"size": 4}, True),
        ("\"{{ inputs.names | first }} == '}}'\"", {"names": ["}}"]}, True),
        ("'{{ inputs.size or 0 }} > 100'", {"size": 101}, True),
        ("'100 < {{ inputs.size }} < 200'", {"size": 150}, True),
        ("'{{ inputs.names }} == []'", {"names": []}, True),
    ],
)
def test_one_condition_has_two_ways(condition: str, values: dict[str, object], expected: bool) -> None:
    nodes = f"start: {{next: a}}\na: {{type: conditional, condition: {condition}, on_true: b, on_false: end}}\nb: {{handler: echo, next: end}}"
    first, second = graph_of_nodes(nodes).nodes["a"].branches
    assert (first.next, second) == (("b",), Branch(condition=None, next=("end",)))
    assert first.condition is not None
    assert evaluate_condition(first.condition, {"inputs": values}) is expected


@pytest.mark.parametrize(
    ("field", "condition", "value", "expected"),
    [
        ("{{ inputs.size }}", "< 100", 99, True),
        ("inputs.size", "<100", 100, False),
        ("{{ inputs.size }}", "!= 5", 6, True),
        ("{{ inputs.size }}", "in [1, 2]", 2, True),
        ("{{ inputs.size }}", "not in [1, 2]", 2, False),
        ("{{ inputs.size }}", "is odd", 3, True),
        ("{{ inputs.size or 5 }}", "== 5", 0, True),
        ("{{ inputs.size }}", ">= {{ inputs.size }}", 3, True),
        ("{{ inputs.size }}", "> 1 and {{ inputs.size }} < 3", 2, True),
    ],
)
def test_a_branch_goes_on_where_the_field_ends(field: str, condition: str, value: int, expected: bool) -> None:
    nodes = (
        f"start: {{next: a}}\na:\n  type: conditional\n  condition_field: '{field}'\n  branches:\n"
        f"    - {{condition: '{condition}', next: end}}\n    - {{default: true, next: end}}"
    )
    expression = graph_of_nodes(nodes).nodes["a"].branches[0].condition
    assert expression is not None
    assert evaluate_condition(expression, {"inputs": {"size": value}}) is expected


def test_queue_and_timeout_come_from_the_handler_when_they_are_not_given() -> None:
    task = graph_of_nodes("start: {next: a}\na: {handler: echo, next: end}").nodes["a"].task
    assert task is not None
    assert (task.queue, task.timeout_seconds, task.retry) == ("functionapp-tasks", 600, RetryPolicy())


@pytest.mark.parametrize(
    ("nodes", "start", "end"),
    [
        ("start: {type: start, next: a}\na: {handler: echo, next: end}", "start", "end"),
        ("start: {type: start, next: a}\na: {handler: echo, next: END}", "start", "end"),
        ("START: {type: START, next: a}\na: {handler: echo, next: END}\nEND: {type: END}", "START", "END"),
        ("START: {next: a}\na: {handler: echo, next: end}\nEND: {}", "START", "END"),
        ("start: {next: a}\na: {handler: echo, next: END}\nend: {}", "start", "end"),
        ("go: {type: start, next: a}\na: {handler: echo, next: stop}\nstop: {type: end}", "go", "stop"),
    ],
)
def test_start_and_end_may_be_capitals_and_an_end_is_added(nodes: str, start: str, end: str) -> None:
    graph = graph_of_nodes(nodes)
    assert list(graph.nodes) == [start, "a", end]
    assert graph.start == start
    assert graph.nodes[end].type is NodeType.END


def test_edges_of_next_and_depends_on_are_united() -> None:
    graph = graph_of_nodes(
        "start: {next: [a, b, c]}\na: {handler: echo, next: j}\nb: {handler: echo}\nc: {handler: echo, next: end}\n"
        "j: {handler: echo, depends_on: {any_of: [b, a]}, next: end}"
    )
    assert set(graph.incoming["j"]) == {"a", "b"}
    assert graph.nodes["b"].next == ("j",)
    assert graph.nodes["j"].join is Join.ANY_OF
    assert graph.nodes["end"].join is Join.ALL_OF


@pytest.mark.parametrize("depends_on", ["[a]", "a", "{all_of: [a]}", "{all_of: a}"])
def test_a_plain_dependency_waits_for_all(depends_on: str) -> None:
    graph = graph_of_nodes(
        f"start: {{next: a}}\na: {{handler: echo}}\nb: {{handler: echo, depends_on: {depends_on}, next: end}}"
    )
    assert graph.nodes["b"].join is Join.ALL_OF
    assert graph.incoming["b"] == ("a",)


def test_a_conditional_may_be_depended_on_by_where_its_branch_leads() -> None:
    graph = graph_of_nodes(
        "start: {next: c}\nc: {type: conditional, condition: inputs.size > 1, on_true: a, on_false: end}\n"
        "a: {handler: echo, depends_on: [c], next: end}"
    )
    assert graph.incoming["a"] == ("c",)


@pytest.mark.parametrize(
    ("retry", "initial", "longest"),
    [("{}", 1, 60), ("{initial_delay_seconds: 120}", 120, 120), ("{max_delay_seconds: 5}", 1, 5)],
)
def test_a_long_first_delay_is_not_cut_by_the_usual_longest(retry: str, initial: float, longest: float) -> None:
    task = graph_of_nodes(f"start: {{next: a}}\na: {{handler: echo, retry: {retry}, next: end}}").nodes["a"].task
    assert task is not None
    assert (task.retry.initial_delay_seconds, task.retry.max_delay_seconds) == (initial, longest)


def test_aliases_and_merge_keys_work_and_words_stay_text() -> None:
    graph = graph_of_nodes(
        "start: {next: a}\n"
        "a: &base {handler: echo, retry: &r {max_attempts: 7}, params: {x: no, y: 12:30, z: 0o17, e: 1e3, n: ~, t: 'true'}, next: b}\n"
        "b: {<<: *base, params: {when: 2024-01-01}, next: end}"
    )
    first, second = graph.nodes["a"].task, graph.nodes["b"].task
    assert first is not None
    assert second is not None
    assert first.params == {"x": "no", "y": "12:30", "z": 15, "e": 1000.0, "n": None, "t": "true"}
    assert second.params == {"when": "2024-01-01"}
    assert second.retry.max_attempts == 7


@pytest.mark.parametrize(
    ("version", "expected"), [("version: 3\n", "3"), ("version: '1.0'\n", "1.0"), ("version: 1.0\n", "1.0"), ("", "1")]
)
def test_the_version_is_text(version: str, expected: str) -> None:
    assert graph_of(f"workflow_id: a\n{version}nodes: {{start: {{next: end}}}}").version == expected


# Which nodes are always upstream

DIAMOND = """\
start: {next: first}
first: {handler: echo, next: c}
c: {type: conditional, condition: inputs.size > 1, on_true: left, on_false: [right, right2]}
left: {handler: echo, next: join}
right: {handler: echo, next: join}
right2: {handler: echo, next: join}
join: {handler: echo, params: {x: "%s"}, next: end}
"""


@pytest.mark.parametrize(
    ("template", "is_allowed"),
    [
        ("{{ nodes.first.output.x }}", True),
        ("{{ nodes.c.output }}", True),
        ("{{ nodes.start.output }}", True),
        ("{{ nodes.left.output.x }}", False),
        ("{{ nodes.right.output.x }}", False),
        ("{{ nodes.left.output.x | default(1) }}", True),
        ("{{ nodes.left.status }}", True),
        ("{{ nodes.left.output.x | default(nodes.right.output.x) }}", False),
        ("{{ nodes.left.output.x | default(nodes.right.output.x | default(1)) }}", True),
        ("{{ 1 if nodes.left.output is defined else 2 }}", True),
    ],
)
def test_a_node_of_one_branch_is_not_always_upstream_of_the_join(template: str, is_allowed: bool) -> None:
    found = compiled(nodes_text(DIAMOND % template))
    assert [problem.code for problem in found.problems] == ([] if is_allowed else ["not_always_upstream"])


@pytest.mark.parametrize(
    ("nodes", "reader", "always"),
    [
        # both of two parallel ways are waited for
        (
            "start: {next: [a, b]}\na: {handler: echo, next: j}\nb: {handler: echo, next: j}",
            "depends_on: [a, b]",
            {"a", "b"},
        ),
        # of any_of nobody can tell which
        (
            "start: {next: [a, b]}\na: {handler: echo, next: j}\nb: {handler: echo, next: j}",
            "depends_on: {any_of: [a, b]}",
            set(),
        ),
        # what all ways of any_of share
        (
            "start: {next: p}\np: {handler: echo, next: [a, b]}\na: {handler: echo, next: j}\nb: {handler: echo, next: j}",
            "depends_on: {any_of: [a, b]}",
            {"p"},
        ),
        # parallel ways within one branch
        (
            (
                "start: {next: c}\nc: {type: conditional, condition: inputs.size > 1, on_true: p, on_false: end}\n"
                "p: {handler: echo, next: [a, b]}\na: {handler: echo, next: j}\nb: {handler: echo, next: j}"
            ),
            "depends_on: [a, b]",
            {"c", "p", "a", "b"},
        ),
        # a way beside the conditional always runs; the branch does not
        (
            (
                "start: {next: [c, b]}\nc: {type: conditional, condition: inputs.size > 1, on_true: a, on_false: end}\n"
                "a: {handler: echo, next: j}\nb: {handler: echo, next: j}"
            ),
            "depends_on: [a, b]",
            {"c", "b"},
        ),
        # every branch of the conditional leads to it
        (
            "start: {next: c}\nc: {type: conditional, condition: inputs.size > 1, on_true: a, on_false: a}\na: {handler: echo, next: j}",
            "depends_on: [a]",
            {"c", "a"},
        ),
        # a conditional in a conditional, joined again
        (
            (
                "start: {next: c}\nc: {type: conditional, condition: inputs.size > 1, on_true: d, on_false: b}\n"
                "d: {type: conditional, condition: inputs.size > 2, on_true: a, on_false: a2}\n"
                "a: {handler: echo, next: k}\na2: {handler: echo, next: k}\nk: {handler: echo, next: j}\nb: {handler: echo, next: j}"
            ),
            "depends_on: [k, b]",
            {"c"},
        ),
        # the join of an inner conditional is certain within its branch
        (
            (
                "start: {next: c}\nc: {type: conditional, condition: inputs.size > 1, on_true: d, on_false: end}\n"
                "d: {type: conditional, condition: inputs.size > 2, on_true: a, on_false: a2}\n"
                "a: {handler: echo, next: k}\na2: {handler: echo, next: k}\nk: {handler: echo, next: j}"
            ),
            "depends_on: [k]",
            {"c", "d", "k"},
        ),
    ],
)
def test_what_is_always_upstream(nodes: str, reader: str, always: set[str]) -> None:
    before = {line.split(":")[0] for line in nodes.splitlines()} - {"start"}
    for node_id in sorted(before):
        text = nodes_text(
            f"{nodes}\nj: {{handler: echo, {reader}, params: {{x: '{{{{ nodes.{node_id}.output }}}}'}}, next: end}}"
        )
        found = [problem.code for problem in compiled(text).problems]
        assert found == ([] if node_id in always else ["not_always_upstream"]), node_id


def test_parallel_nodes_may_not_read_each_other_even_with_a_default() -> None:
    nodes = "start: {next: [a, b]}\na: {handler: echo, next: end}\nb: {handler: echo, params: {x: '{{ nodes.a.output | default(1) }}'}, next: end}"
    assert [problem.code for problem in errors_of(nodes_text(nodes))] == ["not_upstream"]


def test_item_and_index_stand_in_the_task_and_the_key_of_a_fan_out() -> None:
    graph_of_nodes(
        "start: {next: a}\na: {type: fan_out, source: [1], key: 'k{{ item }}{{ index }}', task: {handler: echo, params: {x: '{{ item }}'}}, next: end}"
    )


def test_the_environment_and_the_job_may_be_read() -> None:
    graph_of_nodes(
        "start: {next: a}\na: {handler: echo, params: {x: '{{ env.ANY }}{{ job.job_id }}{{ job.workflow_id }}{{ inputs }}'}, next: end}"
    )


# Stages

STAGES = """\
workflow_id: pipeline
inputs: {blob: {type: string, default: b}}
stages:
  - {name: scheme, task_type: echo, params: {blob: "{{ inputs.blob }}"}, timeout_minutes: 2}
  - name: tiles
    task_type: chunk_processor
    parallelism: fan_out
    source: "{{ stages.scheme.results[0].echoed_params.tiles }}"
    params: {chunk: "{{ item }}", index: "{{ index }}"}
    max_parallel_tasks: 4
    queue: container-tasks
  - name: cogs
    task_type: echo
    parallelism: fan_out
    source: "{{ stages.tiles.results }}"
    params: {tile: "{{ item }}"}
  - name: tiles_results
    task_type: echo
    parallelism: single
    params: {first: "{{ stages.scheme.results }}", all: "{{ stages.cogs.results }}"}
"""


EARLIER_STAGES = """\
job_type: process_raster
description: Chunk and process large rasters into COGs
total_stages: 2
stages:
  - {stage_number: 1, stage_name: validate, task_type: echo, max_parallel_tasks: 10, timeout_minutes: 30,
     depends_on_stage: null, params: {tiles: [1, 2]}}
  - {stage_number: 2, stage_name: tile, task_type: echo, max_parallel_tasks: 100, depends_on_stage: 1,
     source: "{{ stages.validate.results[0].echoed_params.tiles }}", params: {tile: "{{ item }}"}}
"""


def test_stages_may_be_declared_as_earlier_releases_do() -> None:
    graph = graph_of(EARLIER_STAGES)
    assert (graph.workflow_id, graph.job_id) == ("process_raster", "params")
    assert [*graph.nodes] == ["start", "validate", "tile", "tile_results", "end"]
    assert graph.nodes["tile"].max_parallel == 100
    assert graph.nodes["validate"].task is not None
    assert graph.nodes["validate"].task.timeout_seconds == 1800


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("total_stages: 2", "total_stages: 3", "'total_stages' must be 2: so many stages are listed."),
        ("stage_number: 2", "stage_number: 4", "'stages[1].stage_number'|must be 2: stages run as they are listed."),
        ("depends_on_stage: 1", "depends_on_stage: 2", "a whole number from 1 to 1"),
        ("depends_on_stage: null", "depends_on_stage: 1", "The first stage depends on no other."),
        ("stage_name: tile", "stage_name: tile, name: other", "'stage_name' is another name of 'name'"),
        ("job_type: process_raster", "job_type: a\nworkflow_id: b", "'job_type' is another name of 'workflow_id'"),
    ],
)
def test_stages_that_contradict_themselves_are_refused(right: str, wrong: str, message: str) -> None:
    compiled = compile_workflow(EARLIER_STAGES.replace(right, wrong), file="x.yaml", handlers=HANDLERS)
    assert any(message.rpartition("|")[2] in problem.message for problem in compiled.problems)
    assert compiled.graph is None


def test_stages_compile_to_the_same_graph() -> None:
    graph = graph_of(STAGES)
    assert list(graph.nodes) == [
        "start",
        "scheme",
        "tiles",
        "tiles_results2",
        "cogs",
        "cogs_results",
        "tiles_results",
        "end",
    ]
    assert [node.type for node in graph.nodes.values()] == [
        "start",
        "task",
        "fan_out",
        "fan_in",
        "fan_out",
        "fan_in",
        "task",
        "end",
    ]
    assert {node.node_id: node.stage for node in graph.nodes.values() if node.stage} == {
        "scheme": "scheme",
        "tiles_results2": "tiles",
        "cogs_results": "cogs",
        "tiles_results": "tiles_results",
    }
    scheme, tiles = graph.nodes["scheme"].task, graph.nodes["tiles"]
    assert scheme is not None
    assert tiles.task is not None
    assert (scheme.handler, scheme.timeout_seconds) == ("echo", 120)
    assert (tiles.max_parallel, tiles.task.queue, tiles.task.params["index"]) == (4, "container-tasks", "{{ index }}")
    assert graph.nodes["tiles_results2"].fan_out == "tiles"
    assert graph.nodes["tiles_results2"].aggregation == "collect"


# Shipped workflows

SHIPPED = sorted(file.name for file in files("graticule.workflows").iterdir() if file.name.endswith(".yaml"))


def shipped(name: str) -> Graph:
    text = files("graticule.workflows").joinpath(name).read_text()
    found = compile_workflow(text, file=name, handlers=HANDLERS)
    assert found.problems == ()
    assert found.graph is not None
    return found.graph


@pytest.mark.parametrize(
    "name", ["hello_world", "echo_test", "fan_out_test", "conditional_test", "retry_test", "retry_fan_out_test", "demo"]
)
def test_the_shipped_workflows_have_no_problems(name: str) -> None:
    graph = shipped(f"{name}.yaml")
    assert graph.workflow_id == name
    assert graph.description
    assert all(spec.description for spec in graph.inputs.values())


def test_the_nodes_of_the_echo_test() -> None:
    graph = shipped("echo_test.yaml")
    assert [(node.node_id, str(node.type)) for node in graph.nodes.values()] == [
        ("start", "start"),
        ("echo_handler", "task"),
        ("end", "end"),
    ]
    task = graph.nodes["echo_handler"].task
    assert task is not None
    assert task.handler == "echo"


def test_the_retries_of_the_retry_tests() -> None:
    single, many = shipped("retry_test.yaml"), shipped("retry_fan_out_test.yaml")
    assert (single.inputs["failure_rate"].default, many.inputs["failure_rate"].default) == (0.5, 0.3)
    flaky, split = single.nodes["flaky"].task, many.nodes["split"].task
    assert flaky is not None
    assert split is not None
    assert (flaky.handler, flaky.retry.max_attempts) == ("flaky_echo", 5)
    assert split.handler == "flaky_echo"
    assert 0.3 ** (split.retry.max_attempts + 1) * 10_000 < 1e-6


# Random graphs


@st.composite
def random_nodes(draw: st.DrawFn) -> str:
    """Write a random graph: each node leads to some later ones, in a random order of the lines."""
    count = draw(st.integers(1, 12))
    lines = ["start: {next: n0}"]
    for place in range(count):
        later = [f"n{number}" for number in range(place + 1, count)] + ["end"]
        targets = draw(st.lists(st.sampled_from(later), min_size=1, max_size=3))
        if place + 1 < count:
            targets.append(f"n{place + 1}")
        sort = draw(st.sampled_from(["task", "conditional", "fan_out"]))
        names = "[" + ", ".join(targets) + "]"
        if sort == "conditional":
            lines.append(
                f"n{place}: {{type: conditional, condition: inputs.size > 1, on_true: {targets[0]}, on_false: {names}}}"
            )
        elif sort == "fan_out":
            lines.append(f"n{place}: {{type: fan_out, source: [1], task: {{handler: echo}}, next: {names}}}")
        else:
            lines.append(f"n{place}: {{handler: echo, next: {names}}}")
    return "\n".join(draw(st.permutations(lines)))


@settings(max_examples=examples(150), deadline=None)
@given(random_nodes())
def test_random_graphs_compile_and_stand_in_topological_order(nodes: str) -> None:
    graph = graph_of_nodes(nodes)
    place = {node_id: number for number, node_id in enumerate(graph.nodes)}
    assert next(iter(graph.nodes)) == graph.start
    for node in graph.nodes.values():
        assert all(place[node.node_id] < place[target] for target in node.next)
        assert set(node.next) == {target for branch in node.branches for target in branch.next} or not node.branches
    assert graph.downstream(graph.start) == set(graph.nodes) - {graph.start}


@settings(max_examples=examples(100), deadline=None)
@given(random_nodes(), st.data())
def test_a_random_edge_back_is_a_cycle(nodes: str, data: st.DataObject) -> None:
    graph = graph_of_nodes(nodes)
    tasks = [node for node in graph.nodes.values() if node.type is NodeType.TASK]
    if not tasks:
        return
    task = data.draw(st.sampled_from(tasks))
    upstream = [node_id for node_id in graph.nodes if task.node_id in graph.downstream(node_id) and node_id != "start"]
    target = data.draw(st.sampled_from([*upstream, task.node_id]))
    assert f"{task.node_id}: {{handler: echo, next: [" in nodes
    spoilt = nodes.replace(
        f"{task.node_id}: {{handler: echo, next: [", f"{task.node_id}: {{handler: echo, next: [{target}, "
    )
    assert "cycle" in {code for code, _, _ in told(errors_of(nodes_text(spoilt)))}


@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(max_size=300)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["workflow_id", "nodes", "stages", "inputs", "start", "type", "next", "handler", "a"]),
                inner,
            )
        ),
        max_leaves=15,
    ).map(repr)
)
def test_random_text_is_told_of_and_raises_nothing(text: str) -> None:
    found = compiled(text)
    assert found.graph is not None or found.problems
