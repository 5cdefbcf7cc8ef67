"""The pages of the handlers and workflows that come along, made from the registry and the files."""

from typing import Final

from scripts.documentation.markdown import anchor_of, block, code, heading, page, table
from scripts.documentation.schemas import fields_table, named, value_of

from graticule.dag.compile import KnownHandler
from graticule.dag.graph import Graph, InputSpec
from graticule.dag.mermaid import to_mermaid
from graticule.handlers.compatibility import HANDLER_ALIASES
from graticule.handlers.registry import BUILT_IN, RegisteredHandler, handlers
from graticule.services.workflow_library import compile_file, shipped_folder

HANDLERS: Final = (
    "The handlers that come along, as workers register them: where their tasks wait, how long one may take, and the "
    "parameters that it must fit. [Writing a handler](../how-to/handlers.md) tells how to add others."
)
WORKFLOWS: Final = (
    "The workflows that come along: their inputs, and their graphs as `graticule workflow graph` draws them. A "
    "workflow of your own with the same id takes the place of one of these; see [writing a workflow]"
    "(../how-to/workflows.md)."
)


def pages() -> dict[str, str]:
    """Give both pages."""
    return {
        "reference/handler_list.md": page("Handlers that come along", HANDLERS, *map(_handler, shipped_handlers())),
        "reference/workflow_list.md": page(
            "Workflows that come along", WORKFLOWS, *map(_workflow, shipped_workflows())
        ),
    }


def shipped_handlers() -> list[RegisteredHandler]:
    """Give our own handlers by name; those of other packages may be installed beside them."""
    ours = {each.name: each for each in handlers().values() if each.module in BUILT_IN}
    return [ours[name] for name in sorted(ours)]


def shipped_workflows() -> list[Graph]:
    """Give the compiled workflows by id."""
    known = {each.name: KnownHandler(each.queue, each.timeout_seconds) for each in shipped_handlers()}
    compiled = (compile_file(path, known) for path in sorted(shipped_folder().glob("*.yaml")))
    return [each.graph for each in compiled if each.graph is not None]


def _handler(handler: RegisteredHandler) -> str:
    facts = [
        ("queue", code(handler.queue)),
        ("runs", "in the worker's loop" if handler.is_async else "in a child process"),
        ("timeout", f"{handler.timeout_seconds} s"),
        *([("memory", f"{handler.memory_limit_mb} MiB")] if handler.memory_limit_mb else []),
        *([("database", "needed")] if handler.needs_database else []),
        *(("also called", code(alias)) for alias, name in HANDLER_ALIASES.items() if name == handler.name),
    ]
    parts = (
        heading(2, code(handler.name), anchor_of(handler.name)),
        (handler.function.__doc__ or "").strip(),
        ", ".join(f"{name} {value}" for name, value in facts),
        _parameters(handler),
    )
    return "\n\n".join(part for part in parts if part)


def _parameters(handler: RegisteredHandler) -> str:
    if handler.params is None:
        return "It takes any parameters."
    schema = handler.params.model_json_schema()
    return fields_table(schema, named)


def _workflow(graph: Graph) -> str:
    rows = [(code(name), _input(each), _default(each), each.description or "") for name, each in graph.inputs.items()]
    parts = (
        heading(2, code(graph.workflow_id), anchor_of(graph.workflow_id)),
        graph.description or "",
        table(("input", "type", "default", "what"), rows),
        block("mermaid", to_mermaid(graph)),
    )
    return "\n\n".join(part for part in parts if part)


def _input(spec: InputSpec) -> str:
    bounds = (("at least", spec.minimum), ("at most", spec.maximum))
    told = [", ".join(map(value_of, spec.enum)) if spec.enum else str(spec.type)]
    told += [f"{words} {bound:g}" for words, bound in bounds if bound is not None]
    return ", ".join([*told, *([f"matches {code(spec.pattern)}"] if spec.pattern else [])])


def _default(spec: InputSpec) -> str:
    if spec.required:
        return "required"
    return "" if spec.default is None else value_of(spec.default)
