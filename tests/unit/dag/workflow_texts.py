"""Workflow texts for tests: short to write, compiled with the example handlers known."""

from textwrap import indent

from graticule.dag.compile import Compiled, KnownHandler, Problem, Severity, compile_workflow
from graticule.dag.graph import Graph

NAMES = ("echo", "hello_world", "sleep", "fail", "flaky_echo", "multi_phase", "size_check", "chunk_processor")
HANDLERS = {name: KnownHandler("functionapp-tasks", 600) for name in NAMES}
HEADER = "workflow_id: test_case\ninputs:\n  size: {type: number, default: 1}\n  names: {type: array, default: []}\n"
FIRST_NODE = 6  # the line of the first node of `nodes_text`


def nodes_text(nodes: str) -> str:
    """Give a workflow with these nodes; the first stands in line `FIRST_NODE`."""
    return f"{HEADER}nodes:\n{indent(nodes.strip(chr(10)), '  ')}\n"


def compiled(text: str) -> Compiled:
    """Compile a text."""
    return compile_workflow(text, file="test.yaml", handlers=HANDLERS)


def graph_of(text: str) -> Graph:
    """Give the graph of a text that has no errors."""
    found = compiled(text)
    assert found.graph is not None, [str(problem) for problem in found.problems]
    return found.graph


def graph_of_nodes(nodes: str) -> Graph:
    """Give the graph of nodes without errors."""
    return graph_of(nodes_text(nodes))


def errors_of(text: str) -> tuple[Problem, ...]:
    """Give the errors of a text that must have some."""
    found = compiled(text)
    assert found.graph is None
    errors = tuple(problem for problem in found.problems if problem.severity is Severity.ERROR)
    assert errors
    return errors


def told(problems: tuple[Problem, ...]) -> list[tuple[str, str | None, int | None]]:
    """Give the code, the node and the line of each problem."""
    return [(problem.code, problem.node, problem.line) for problem in problems]
