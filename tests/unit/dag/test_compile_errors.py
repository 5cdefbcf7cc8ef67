"""Every rule of a workflow: what breaks it is told with its line and its node, and everything at once."""

# ruff: noqa: E501 - a node is one line of YAML

from textwrap import dedent

import pytest
from tests.unit.dag.workflow_texts import FIRST_NODE, compiled, errors_of, graph_of, nodes_text, told

from graticule.dag.compile import Severity

START = "start: {type: start, next: a}\n"

NODES = [
    # (nodes, code, node, line after the first node, part of the message or hint)
    ("a: {handler: echo, next: end}", "no_start", None, -1, "no start"),
    (START + "a: {handler: echo, next: end}\ns2: {type: start, next: a}", "second_start", "s2", 2, "'start'"),
    ("start: {type: start, next: a}\na: {type: conditional}", "no_end", None, -1, "no end"),
    (START + "a: {handler: echo, next: b}\nend: {type: end}", "unknown_node", "a", 1, "'b'"),
    (START + "alpha: {handler: echo, next: end}\na: {handler: echo, next: [alpha, alpa]}", "unknown_node", "a", 2, "'alpha'"),
    (START + "a:\n  handler: echo\n  next:\n    - end\n    - x", "unknown_node", "a", 5, "'x'"),
    (START + "a: {handler: echo, depends_on: [b], next: end}", "unknown_node", "a", 1, "'b'"),
    (START + "a: {type: conditional, condition: '{{ inputs.size }} > 1', on_true: x, on_false: end}", "unknown_node", "a", 1, "'x'"),
    (START + "a: {handler: echo, next: b}\nb: {handler: echo, next: [a, end]}", "cycle", "a", 1, "a → b → a"),
    (START + "a: {handler: echo, next: [a, end]}", "cycle", "a", 1, "a → a"),
    (START + "a: {handler: echo, next: end}\nb: {handler: echo, next: end}", "unreachable", "b", 2, "from the start"),
    (START + "a: {handler: echo}\nb: {handler: echo, next: end}", "dead_end", "a", 1, "next: end"),
    (START + "a: {handler: echo, next: [start, end]}", "before_start", "start", 0, "'a'"),
    (START + "a: {handler: echo, next: end}\nend: {type: end, depends_on: [a]}\nb: {handler: echo, depends_on: [end], next: e2}\ne2: {type: end}", "after_end", "end", 3, "'b'"),
    # names
    ("start: {type: start, next: a__b}\na__b: {handler: echo, next: end}", "bad_name", "a__b", 1, "no '__'"),
    ("start: {type: start, next: 1a}\n1a: {handler: echo, next: end}", "bad_name", "1a", 1, "a letter first"),
    ("start: {type: start, next: a-b}\na-b: {handler: echo, next: end}", "bad_name", "a-b", 1, "cannot be the name"),
    (f"start: {{type: start, next: {'a' * 101}}}\n{'a' * 101}: {{handler: echo, next: end}}", "bad_name", "a" * 101, 1, "at most 100"),
    # types and keys
    (START + "a: {next: end}", "missing_key", "a", 1, "neither a type nor a handler"),
    (START + "a: {type: tusk, handler: echo, next: end}", "wrong_value", "a", 1, "'task'"),
    (START + "a: 5", "wrong_value", "a", 1, "must be a mapping"),
    (START + "a: {handler: echo, nxt: end, next: end}", "unknown_key", "a", 1, "'next'"),
    (START + "a: {type: task, next: end}", "missing_key", "a", 1, "'handler' is missing"),
    (START + "a: {handler: echo, next: {b: 1}}", "wrong_value", "a", 1, "list of names"),
    (START + "a: {handler: echo, next: end}\nend: {type: end, next: a}", "unknown_key", "end", 2, "'next'"),
    # tasks
    (START + "a: {handler: ecko, next: end}", "unknown_handler", "a", 1, "'echo'"),
    (START + "a: {handler: 5, next: end}", "wrong_value", "a", 1, "name of a handler"),
    (START + "a: {handler: echo, queue: 'a b', next: end}", "wrong_value", "a", 1, "name of a queue"),
    (START + "a: {handler: echo, params: [1], next: end}", "wrong_value", "a", 1, "'params' must be a mapping"),
    (START + "a: {handler: echo, timeout_seconds: 0, next: end}", "wrong_value", "a", 1, "from 1 to 604,800"),
    (START + "a: {handler: echo, timeout_seconds: 604801, next: end}", "wrong_value", "a", 1, "604,800"),
    (START + "a: {handler: echo, timeout_seconds: true, next: end}", "wrong_value", "a", 1, "and is true"),
    (START + "a:\n  handler: echo\n  retry: {max_attempts: 1001}\n  next: end", "wrong_value", "a", 3, "from 0 to 1,000"),
    (START + "a: {handler: echo, retry: {max_attempts: -1}, next: end}", "wrong_value", "a", 1, "max_attempts"),
    (START + "a: {handler: echo, retry: {backoff: cubic}, next: end}", "wrong_value", "a", 1, "fixed, linear, exponential"),
    (START + "a: {handler: echo, retry: {initial_delay_seconds: -1}, next: end}", "wrong_value", "a", 1, "initial_delay"),
    (START + "a: {handler: echo, retry: {max_delay_seconds: 90000}, next: end}", "wrong_value", "a", 1, "max_delay"),
    (START + "a: {handler: echo, retry: {initial_delay_seconds: 9, max_delay_seconds: 3}, next: end}", "wrong_value", "a", 1, "longer than"),
    (START + "a: {handler: echo, retry: {jitter: 1}, next: end}", "wrong_value", "a", 1, "true or false"),
    (START + "a: {handler: echo, retry: {attempts: 1}, next: end}", "unknown_key", "a", 1, "'retry.attempts'"),
    (START + "a: {handler: echo, retry: 3, next: end}", "wrong_value", "a", 1, "'retry' must be a mapping"),
    # joins
    (START + "a: {handler: echo, depends_on: {any: [start]}, next: end}", "unknown_key", "a", 1, "any_of"),
    (START + "a: {handler: echo, depends_on: {any_of: [start], all_of: [start]}, next: end}", "wrong_value", "a", 1, "either"),
    (
        START + "a: {type: conditional, condition: '{{ inputs.size }} > 1', on_true: b, on_false: end}\n"
        "b: {handler: echo, next: c}\nc: {handler: echo, depends_on: [b, a], next: end}",
        "no_branch",
        "c",
        3,
        "'a'",
    ),
    # conditionals
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: [{condition: '< 1', next: end}]}", "no_default", "a", 1, "has none"),
    (
        START + "a:\n  type: conditional\n  condition_field: '{{ inputs.size }}'\n  branches:\n"
        "    - {default: true, next: end}\n    - {default: true, next: end}",
        "no_default",
        "a",
        4,
        "has 2",
    ),
    (START + "a: {type: conditional, branches: [{condition: '> 1', next: end}, {default: true, next: end}]}", "bad_template", "a", 1, "no 'condition_field'"),
    (
        START + "a:\n  type: conditional\n  condition_field: '{{ inputs.size }}'\n  branches:\n"
        "    - {condition: large, next: end}\n    - {default: true, next: end}",
        "bad_template",
        "a",
        5,
        "begin with an operator",
    ),
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: [{condition: 5, next: end}, {default: true, next: end}]}", "wrong_value", "a", 1, '"== 5"'),
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: [{condition: '= 5', next: end}, {default: true, next: end}]}", "bad_template", "a", 1, "operator"),
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: [{next: end}, {default: true, next: end}]}", "wrong_value", "a", 1, "either a 'condition'"),
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: [{condition: '> 1'}, {default: true, next: end}]}", "missing_key", "a", 1, "next"),
    (START + "a: {type: conditional, condition_field: '{{ inputs.size }}', branches: x}", "wrong_value", "a", 1, "list of mappings"),
    (START + "a: {type: conditional, condition: '{{ inputs.size }} > 1', on_true: end}", "missing_key", "a", 1, "on_false"),
    (START + "a: {type: conditional, condition: '{{ inputs.size }} >', on_true: end, on_false: end}", "bad_template", "a", 1, "cannot be"),
    (START + "a: {type: conditional, condition: \"'{{ inputs.size }}' == '1'\", on_true: end, on_false: end}", "bad_template", "a", 1, "quotes"),
    (START + "a: {type: conditional, condition: '{% if 1 %}', on_true: end, on_false: end}", "bad_template", "a", 1, "one expression"),
    (START + "a: {type: conditional, condition: true, on_true: end, on_false: end}", "wrong_value", "a", 1, "must be text"),
    (START + "a: {type: conditional, condition: 'inputs.size', branches: [], on_true: end, on_false: end}", "wrong_value", "a", 1, "either branches or one"),
    (START + "a: {type: conditional, condition: '{{ inputs.size }} > 1', on_true: end, on_false: end, next: end}", "unknown_key", "a", 1, "'next'"),
    # fan-outs
    (START + "a: {type: fan_out, task: {handler: echo}, next: end}", "missing_key", "a", 1, "'source'"),
    (START + "a: {type: fan_out, source: '{{ inputs.names }}', next: end}", "missing_key", "a", 1, "'task'"),
    (START + "a: {type: fan_out, source: names, task: {handler: echo}, next: end}", "wrong_value", "a", 1, "no list"),
    (START + "a: {type: fan_out, source: 5, task: {handler: echo}, next: end}", "wrong_value", "a", 1, "'source' must be"),
    (START + "a: {type: fan_out, source: [1], max_parallel: 0, task: {handler: echo}, next: end}", "wrong_value", "a", 1, "max_parallel"),
    (START + "a: {type: fan_out, source: [1], on_child_failure: ignore, task: {handler: echo}, next: end}", "wrong_value", "a", 1, "fail, continue"),
    (START + "a: {type: fan_out, source: [1], task: {handler: echo, next: b}, next: end}", "unknown_key", "a", 1, "'task.next' is not known"),
    (START + "a: {type: fan_out, source: [1], task: {handler: nope}, next: end}", "unknown_handler", "a", 1, "'nope'"),
    (START + "a: {type: fan_in, next: end}", "fan_in", "a", 1, "'start'"),
    (
        START + "a: {type: fan_out, source: [1], task: {handler: echo}, next: m}\nm: {type: fan_in, depends_on: [a, start], next: end}",
        "fan_in",
        "m",
        2,
        "exactly one fan_out",
    ),
    (
        ("start: {type: start, next: [a, b]}\na: {type: fan_out, source: [1], task: {handler: echo}, next: m}\n"
        "b: {type: fan_out, source: [1], task: {handler: echo}, next: m}\nm: {type: fan_in, next: end}"),
        "fan_in",
        "m",
        3,
        "'a', 'b'",
    ),
    (
        START + "a: {type: fan_out, source: [1], task: {handler: echo}, next: m}\nm: {type: fan_in, aggregation: avg, next: end}",
        "wrong_value",
        "m",
        2,
        "collect",
    ),
    # templates
    (START + "a:\n  handler: echo\n  params:\n    x: 1\n    y: ['{{ inputs.size', 1]\n  next: end", "bad_template", "a", 5, "params.y[0]"),
    (START + "a: {handler: echo, params: {x: '{{ inputs.size | nope }}'}, next: end}", "bad_template", "a", 1, "no filter 'nope'"),
    (START + "a: {handler: echo, params: {x: '{{ inputs.__class__ }}'}, next: end}", "bad_template", "a", 1, "begins with '_'"),
    (START + "a: {handler: echo, params: {x: '{% include \"x\" %}'}, next: end}", "bad_template", "a", 1, "include"),
    (START + "a: {handler: echo, params: {x: '{{ inputs.sise }}'}, next: end}", "unknown_input", "a", 1, "'size'"),
    (START + "a: {handler: echo, params: {x: '{{ input.size }}'}, next: end}", "unknown_name", "a", 1, "'inputs'"),
    (START + "a: {handler: echo, params: {x: '{{ job.id }}'}, next: end}", "unknown_name", "a", 1, "job_id"),
    (START + "a: {handler: echo, params: {x: '{{ item }}'}, next: end}", "no_item", "a", 1, "fan_out"),
    (START + "a: {type: fan_out, source: '{{ item }}', task: {handler: echo}, next: end}", "no_item", "a", 1, "source"),
    (START + "a: {handler: echo, params: {x: '{{ stages.one.results }}'}, next: end}", "unknown_node", "a", 1, "stages.one"),
    (START + "a: {handler: echo, params: {x: '{{ nodes.none.output }}'}, next: end}", "unknown_node", "a", 1, "nodes.none"),
    (START + "a: {handler: echo, params: {x: '{{ nodes.start.outputs }}'}, next: end}", "unknown_name", "a", 1, "'output'"),
    (START + "a: {handler: echo, params: {x: '{{ nodes[inputs.names[0]].output }}'}, next: end}", "unnamed", "a", 1, "followed by a name"),
    (START + "a: {handler: echo, params: {x: '{{ nodes.a.output }}'}, next: end}", "not_upstream", "a", 1, "nodes.a"),
    (START + "a: {handler: echo, params: {x: '{{ nodes.b.output }}'}, next: b}\nb: {handler: echo, next: end}", "not_upstream", "a", 1, "nodes.b"),
    (START + "a: {handler: echo, params: {x: '{{ nodes.b.output | default(1) }}'}, next: b}\nb: {handler: echo, next: end}", "not_upstream", "a", 1, "nodes.b"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "code", "node", "line", "part"), NODES, ids=[f"{case[1]}-{place}" for place, case in enumerate(NODES)]
)
def test_a_node_that_breaks_a_rule_is_told(nodes: str, code: str, node: str | None, line: int, part: str) -> None:
    found = errors_of(nodes_text(nodes))
    assert (code, node, FIRST_NODE + line) in told(found)
    matching = [str(problem) for problem in found if (problem.code, problem.node) == (code, node)]
    assert any(part in text for text in matching), matching
    place = f"test.yaml:{FIRST_NODE + line}: " + (f"node '{node}': " if node else "")
    assert any(text.startswith(place) for text in matching), matching


NODE = "nodes: {start: {type: start, next: end}}\n"
WHOLE = [
    ("a: [1", "bad_yaml", 1, "not YAML"),
    ("a: b: c\n", "bad_yaml", 1, "not YAML"),
    ("a: 1\n\tb: 2\n", "bad_yaml", 2, "not YAML"),
    ("workflow_id: !!python/name:os.system x\n", "bad_yaml", 1, "!!python/name:os.system"),
    ("workflow_id: !thing x\n", "bad_yaml", 1, "!thing"),
    ("a: *b\n", "bad_yaml", 1, "*b"),
    ("workflow_id: a\n---\nworkflow_id: b\n", "bad_yaml", 2, "second document"),
    (f"workflow_id: a\n{NODE}workflow_id: b\n", "duplicate_key", 3, "line 1"),
    ("workflow_id: a\nnodes:\n  start: {type: start, next: end}\n  start: {type: start, next: end}\n", "duplicate_key", 4, "line 3"),
    ("- a\n", "not_a_mapping", 1, "mapping"),
    ("", "not_a_mapping", 1, "mapping"),
    ("just text", "not_a_mapping", 1, "mapping"),
    (NODE, "missing_key", 1, "'workflow_id'"),
    (f"workflow_id: Abc\n{NODE}", "wrong_value", 1, "small letters"),
    (f"workflow_id: 1abc\n{NODE}", "wrong_value", 1, "small letters"),
    (f"workflow_id: {'a' * 65}\n{NODE}", "wrong_value", 1, "at most 64"),
    (f"workflow_id: a\nversions: 1\n{NODE}", "unknown_key", 2, "'version'"),
    (f"workflow_id: a\nversion: [1]\n{NODE}", "wrong_value", 2, "'version'"),
    (f"workflow_id: a\nname: 5\n{NODE}", "wrong_value", 2, "'name'"),
    (f"workflow_id: a\njob_id: inputs\n{NODE}", "wrong_value", 2, "'params'"),
    ("workflow_id: a\n", "wrong_value", 1, "either 'nodes' or 'stages'"),
    (f"workflow_id: a\nstages: []\n{NODE}", "wrong_value", 1, "either 'nodes' or 'stages'"),
    ("workflow_id: a\nnodes: {}\n", "missing_key", 2, "no nodes"),
    ("workflow_id: a\nnodes: [1]\n", "wrong_value", 2, "'nodes' must be a mapping"),
    # inputs
    (f"workflow_id: a\ninputs: [1]\n{NODE}", "wrong_value", 2, "'inputs' must be"),
    (f"workflow_id: a\ninputs:\n  x: {{}}\n{NODE}", "missing_key", 3, "'inputs.x.type'"),
    (f"workflow_id: a\ninputs:\n  x:\n{NODE}", "missing_key", 3, "at least a type"),
    (f"workflow_id: a\ninputs:\n  x: string\n{NODE}", "wrong_value", 3, "'inputs.x' must be a mapping"),
    (f"workflow_id: a\ninputs:\n  x: {{type: str}}\n{NODE}", "wrong_value", 3, "'string'"),
    (f"workflow_id: a\ninputs:\n  _x: {{type: string}}\n{NODE}", "bad_name", 3, "'_x'"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, defualt: 1}}\n{NODE}", "unknown_key", 3, "'default'"),
    (f"workflow_id: a\ninputs:\n  x: {{type: integer, default: 1.5}}\n{NODE}", "wrong_value", 3, "an integer"),
    (f"workflow_id: a\ninputs:\n  x: {{type: integer, default: 5, maximum: 3}}\n{NODE}", "wrong_value", 3, "at most 3"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, enum: [a, 1]}}\n{NODE}", "wrong_value", 3, "enum"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, enum: a}}\n{NODE}", "wrong_value", 3, "list of values"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, enum: [a], default: b}}\n{NODE}", "wrong_value", 3, "one of"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, minimum: 1}}\n{NODE}", "wrong_value", 3, "for numbers"),
    (f"workflow_id: a\ninputs:\n  x: {{type: integer, pattern: a}}\n{NODE}", "wrong_value", 3, "for strings"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, pattern: '['}}\n{NODE}", "wrong_value", 3, "regular expression"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, pattern: '(?=a)'}}\n{NODE}", "wrong_value", 3, "look-around"),
    (f"workflow_id: a\ninputs:\n  x: {{type: string, required: 1}}\n{NODE}", "wrong_value", 3, "true or false"),
    # stages
    ("workflow_id: a\nstages: {a: 1}\n", "wrong_value", 2, "list of stages"),
    ("workflow_id: a\nstages:\n  - {task_type: echo}\n", "wrong_value", 3, "'name'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo}\n  - {name: a, task_type: echo}\n", "duplicate_name", 4, "line 3"),
    ("workflow_id: a\nstages:\n  - {name: start, task_type: echo}\n", "duplicate_name", 3, "'start'"),
    ("workflow_id: a\nstages:\n  - {name: a}\n", "missing_key", 3, "'task_type'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: nope}\n", "unknown_handler", 3, "'nope'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo, parallelism: many}\n", "wrong_value", 3, "single, fan_out"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo, parallelism: fan_out}\n", "missing_key", 3, "'source'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo, source: [1]}\n", "unknown_key", 3, "'source'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo, timeout_minutes: 0}\n", "wrong_value", 3, "timeout_minutes"),
    ("workflow_id: a\nstages:\n  - {name: a-b, task_type: echo}\n", "bad_name", 3, "'a-b'"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo, params: {x: '{{ stages.b.results }}'}}\n  - {name: b, task_type: echo}\n", "not_upstream", 3, "stages.b"),
    ("workflow_id: a\nstages:\n  - {name: a, task_type: echo}\n  - {name: b, task_type: echo, params: {x: '{{ stages.a.result }}'}}\n", "unknown_name", 4, "'results'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "line", "part"), WHOLE, ids=[f"{case[1]}-{place}" for place, case in enumerate(WHOLE)]
)
def test_a_file_that_breaks_a_rule_is_told(text: str, code: str, line: int, part: str) -> None:
    matching = [problem for problem in errors_of(text) if (problem.code, problem.line) == (code, line)]
    assert any(part in str(problem) for problem in matching), [str(problem) for problem in errors_of(text)]


def test_all_errors_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = dedent(
        """\
        workflow_id: Bad-Id
        nam: x
        inputs:
          a: {type: strin}
        nodes:
          start: {type: start, next: [p, nowhere]}
          p: {handler: ech, params: {x: "{{ inputs.zz }}", z: "{{ item }}"}, next: c}
          c:
            type: conditional
            condition_field: "{{ nodes.p.output.v }}"
            branches:
              - {condition: "< 1", next: q}
          q: {handler: echo, next: j}
          j: {handler: echo, retry: {max_attempts: -1}, next: END}
          lonely: {handler: echo}
        """
    )
    assert told(errors_of(text)) == [
        ("wrong_value", None, 1),
        ("unknown_key", None, 2),
        ("wrong_value", None, 4),
        ("unknown_node", "start", 6),
        ("unknown_handler", "p", 7),
        ("unknown_input", "p", 7),
        ("no_item", "p", 7),
        ("no_default", "c", 11),
        ("wrong_value", "j", 14),
        ("dead_end", "lonely", 15),
        ("unreachable", "lonely", 15),
    ]


def test_two_cycles_are_both_told() -> None:
    nodes = "start: {next: [a, c]}\na: {handler: echo, next: b}\nb: {handler: echo, next: [a, end]}\nc: {handler: echo, next: d}\nd: {handler: echo, next: [c, end]}"
    assert [problem.message for problem in errors_of(nodes_text(nodes))] == [
        "It leads back to itself: a → b → a.",
        "It leads back to itself: c → d → c.",
    ]


def test_a_mistake_in_a_condition_field_is_told_once() -> None:
    nodes = START + (
        "a:\n  type: conditional\n  condition_field: '{{ inputs.sise }}'\n  branches:\n"
        "    - {condition: '< 1', next: end}\n    - {condition: '< 2', next: end}\n    - {default: true, next: end}"
    )
    assert told(errors_of(nodes_text(nodes))) == [("unknown_input", "a", FIRST_NODE + 3)]


def test_a_handler_that_is_not_known_may_live_on_the_workers_of_a_queue() -> None:
    found = compiled(nodes_text(START + "a: {handler: raster.secret, queue: container-tasks, next: end}"))
    assert found.graph is not None
    task = found.graph.nodes["a"].task
    assert task is not None
    assert (task.queue, task.timeout_seconds) == ("container-tasks", 3600)
    (warning,) = found.problems
    assert (warning.severity, warning.node, warning.line) == (Severity.WARNING, "a", FIRST_NODE + 1)
    assert "lives only on the workers" in str(warning)
    assert str(warning).startswith(f"test.yaml:{FIRST_NODE + 1}: warning: node 'a': ")


def test_an_input_that_is_required_and_has_a_default_is_a_warning() -> None:
    text = f"workflow_id: a\ninputs:\n  x: {{type: string, required: true, default: b}}\n{NODE}"
    assert [problem.code for problem in compiled(text).problems] == ["required_default"]
    assert graph_of(text).inputs["x"].required


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"k{i}: &b{i} [{','.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(12)),
            "200,000 values",
        ),
        ("[" * 100_000, "levels deep"),
        ("a: " + "{a: " * 1000, "levels deep"),
        ("workflow_id: " + "a" * (1 << 20), "1,048,576 characters"),
        ("a: &a [*a]", "no anchor before it"),
        ("a: \0", "not YAML"),
        ("a: \ud800", "not YAML"),
        ("a: 1e999", "too large"),
        ("? [a]\n: 1", "key must be text"),
    ],
)
def test_a_hostile_file_is_refused_at_once(text: str, part: str) -> None:
    (problem,) = errors_of(text)
    assert part in problem.message


def test_too_many_nodes_are_refused() -> None:
    nodes = "\n".join(f"n{number}: {{handler: echo, next: end}}" for number in range(5001))
    assert told(errors_of(nodes_text(nodes))) == [("too_many_nodes", None, 1)]
