"""A node as it is written: read field by field, before it is known how the nodes hang together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from graticule.core.models.engine import NodeType
from graticule.dag.compiling.conditions import branch_expression, condition_field, expression_of
from graticule.dag.compiling.fields import Fields, Target
from graticule.dag.compiling.yaml_source import YamlList, YamlMap, plain_value, texts
from graticule.dag.graph import (
    DEFAULT_TIMEOUT_SECONDS,
    Aggregation,
    Backoff,
    ChildFailure,
    Join,
    RetryPolicy,
    TaskSpec,
)
from graticule.dag.problems import did_you_mean
from graticule.dag.templates import TemplateError

MAX_TIMEOUT_SECONDS: Final = 7 * 86_400
MAX_DELAY_SECONDS: Final = 86_400
MAX_CHILDREN: Final = 100_000
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.:-]*"

_COMMON: Final = ("type", "description", "depends_on")
_TASK: Final = ("handler", "queue", "params", "timeout_seconds", "retry")
_KEYS: Final[Mapping[NodeType, tuple[str, ...]]] = {
    NodeType.START: (*_COMMON, "next"),
    NodeType.END: _COMMON,
    NodeType.TASK: (*_COMMON, *_TASK, "next"),
    NodeType.CONDITIONAL: (*_COMMON, "condition_field", "branches", "condition", "on_true", "on_false"),
    NodeType.FAN_OUT: (*_COMMON, "source", "key", "max_parallel", "on_child_failure", "task", "next"),
    NodeType.FAN_IN: (*_COMMON, "aggregation", "next"),
}
_RETRY: Final = ("max_attempts", "backoff", "initial_delay_seconds", "max_delay_seconds", "jitter")


@dataclass(frozen=True)
class KnownHandler:
    """What is known of a handler: where its tasks go when the workflow does not say."""

    queue: str
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class Written:
    """A template, or the expression of a condition, and where it stands."""

    text: str
    where: str
    line: int
    per_item: bool = False
    is_expression: bool = False  # written without braces


@dataclass(slots=True)
class DraftBranch:
    """One way out of a conditional."""

    condition: str | None
    targets: list[Target]


@dataclass(slots=True)
class Draft:
    """One node as it is written."""

    node_id: str
    line: int
    type: NodeType
    next: list[Target] = field(default_factory=list)
    join: Join = Join.ALL_OF
    depends_on: list[Target] = field(default_factory=list)
    task: TaskSpec | None = None
    branches: list[DraftBranch] = field(default_factory=list)
    source: JsonValue = None
    key: str | None = None
    max_parallel: int | None = None
    on_child_failure: ChildFailure = ChildFailure.FAIL
    aggregation: Aggregation = Aggregation.COLLECT
    fan_out: str | None = None
    stage: str | None = None
    names_unknown: bool = False  # a node that is not there: told already, and where it leads is not known
    written: list[Written] = field(default_factory=list)


def read_node(node_id: str, fields: Fields, handlers: Mapping[str, KnownHandler]) -> Draft:
    """Read one node; what is wrong is noted, and the rest is given all the same."""
    node_type = _type_of(node_id, fields)
    draft = Draft(node_id, fields.line(), node_type or NodeType.TASK, next=fields.targets("next"))
    _read_depends_on(draft, fields)
    if node_type is None:
        return draft
    fields.only(_KEYS[node_type])
    if node_type is NodeType.TASK:
        draft.task = read_task(draft, fields, handlers, "params")
    elif node_type is NodeType.CONDITIONAL:
        _read_conditional(draft, fields)
    elif node_type is NodeType.FAN_OUT:
        _read_fan_out(draft, fields, handlers)
    elif node_type is NodeType.FAN_IN:
        draft.aggregation = fields.choice("aggregation", Aggregation) or Aggregation.COLLECT
    return draft


def _type_of(node_id: str, fields: Fields) -> NodeType | None:
    if fields.has("type"):
        return fields.choice("type", NodeType)
    if fields.has("handler"):
        return NodeType.TASK
    if node_id.lower() in {"start", "end"}:
        return NodeType(node_id.lower())
    hint = f"Write 'type', one of {', '.join(NodeType)}, or the 'handler' of a task."
    fields.error("missing_key", "It has neither a type nor a handler.", hint=hint)
    return None


def _read_depends_on(draft: Draft, fields: Fields) -> None:
    value = fields.raw("depends_on")
    if not isinstance(value, YamlMap):
        draft.depends_on = fields.targets("depends_on")
        return
    inner = Fields(value, fields.problems, fields.node, "depends_on")
    inner.only([str(join) for join in Join])
    if len(value) != 1:
        inner.error("wrong_value", "'depends_on' must have either 'all_of' or 'any_of'.")
        return
    for join in Join:
        if inner.has(join):
            draft.join, draft.depends_on = join, inner.targets(join)


# Tasks


def read_task(
    draft: Draft, fields: Fields, handlers: Mapping[str, KnownHandler], where: str, handler_key: str = "handler"
) -> TaskSpec | None:
    """Read what is sent to a queue."""
    _note_templates(draft, fields, "params", where, per_item=draft.type is NodeType.FAN_OUT)
    params = fields.mapping("params")
    timeout = fields.whole("timeout_seconds", 1, MAX_TIMEOUT_SECONDS)
    retry = _read_retry(fields)
    queue = fields.text("queue", pattern=NAME, most=64, expected="the name of a queue")
    if not fields.required(handler_key):
        return None
    handler = fields.text(handler_key, pattern=NAME, most=128, expected="the name of a handler")
    if handler is None:
        return None
    known = _known_handler(handler, queue, fields, handlers, handler_key)
    return TaskSpec(
        handler=handler,
        queue=queue or (known.queue if known else "unknown"),
        params={} if params is None else plain_value(params.source),
        timeout_seconds=timeout or (known.timeout_seconds if known else DEFAULT_TIMEOUT_SECONDS),
        retry=retry,
    )


def _known_handler(
    handler: str, queue: str | None, fields: Fields, handlers: Mapping[str, KnownHandler], key: str
) -> KnownHandler | None:
    if handler in handlers:
        return handlers[handler]
    hint = did_you_mean(handler, handlers, or_list=False)
    if fields.has("queue"):
        message = f"The handler {handler!r} is not known here; it lives only on the workers of queue {queue!r}."
        fields.problems.warn("handler_on_workers", message, fields.line(key), fields.node, hint)
    else:
        message = f"The handler {handler!r} is not known here, and no 'queue' is given."
        fields.error("unknown_handler", message, key, hint)
    return None


def _read_retry(fields: Fields) -> RetryPolicy:
    inner = fields.mapping("retry")
    if inner is None:
        return RetryPolicy()
    inner.only(_RETRY)
    usual = RetryPolicy()
    attempts, jitter = inner.whole("max_attempts", 0, 1000), inner.flag("jitter")
    first = inner.number("initial_delay_seconds", 0, MAX_DELAY_SECONDS)
    longest = inner.number("max_delay_seconds", 0, MAX_DELAY_SECONDS)
    if first is not None and longest is not None and first > longest:
        inner.error(
            "wrong_value",
            "'retry.initial_delay_seconds' is longer than 'retry.max_delay_seconds'.",
            "initial_delay_seconds",
        )
    first = usual.initial_delay_seconds if first is None else first
    return RetryPolicy(
        max_attempts=usual.max_attempts if attempts is None else attempts,
        backoff=inner.choice("backoff", Backoff) or usual.backoff,
        initial_delay_seconds=first,
        max_delay_seconds=max(usual.max_delay_seconds, first) if longest is None else longest,
        jitter=usual.jitter if jitter is None else jitter,
    )


def _note_templates(draft: Draft, fields: Fields, name: str, where: str, *, per_item: bool) -> None:
    for text, path, line in texts(fields.raw(name), where, fields.line(name)):
        draft.written.append(Written(text, path, line, per_item))


# Fan-outs


def _read_fan_out(draft: Draft, fields: Fields, handlers: Mapping[str, KnownHandler]) -> None:
    read_expansion(draft, fields, "max_parallel")
    task = fields.mapping("task")
    if task is None:
        if not fields.has("task"):
            fields.error("missing_key", "'task' is missing.", hint="It says what each child runs.")
        return
    task.only(_TASK)
    draft.task = read_task(draft, task, handlers, "task.params")


def read_expansion(draft: Draft, fields: Fields, most_at_once: str) -> None:
    """Read over what a fan-out goes, and how."""
    if fields.required("source"):
        _read_source(draft, fields)
    draft.key = fields.text("key")
    _note_templates(draft, fields, "key", "key", per_item=True)
    draft.max_parallel = fields.whole(most_at_once, 1, MAX_CHILDREN)
    draft.on_child_failure = fields.choice("on_child_failure", ChildFailure) or ChildFailure.FAIL


def _read_source(draft: Draft, fields: Fields) -> None:
    source = fields.raw("source")
    draft.source = plain_value(source)
    if isinstance(source, str) and "{{" not in source and "{%" not in source:
        hint = 'Write a template such as "{{ nodes.prepare.output.items }}", or a list.'
        fields.error("wrong_value", f"'source' is the text {source!r}, which is no list.", "source", hint)
    elif not isinstance(source, str | YamlMap | YamlList):
        fields.error("wrong_value", "'source' must be a template, a list or a mapping.", "source")
    _note_templates(draft, fields, "source", "source", per_item=False)


# Conditionals


def _read_conditional(draft: Draft, fields: Fields) -> None:
    has_branches, has_condition = (fields.has(name) for name in ("branches", "condition"))
    if has_branches == has_condition:
        hint = "Write 'branches' (and 'condition_field'), or 'condition' with 'on_true' and 'on_false'."
        fields.error("wrong_value", "A conditional has either branches or one condition.", hint=hint)
    if has_branches:
        _read_branches(draft, fields)
    elif has_condition:
        _read_two_ways(draft, fields)
    draft.next = [target for branch in draft.branches for target in branch.targets]


def _read_two_ways(draft: Draft, fields: Fields) -> None:
    for name in ("condition_field", "branches"):
        if fields.has(name):
            fields.error("wrong_value", f"'{name}' cannot stand beside 'condition'.", name)
    condition = _expression(draft, fields, "condition", expression_of)
    for name, expression in (("on_true", condition), ("on_false", None)):
        fields.required(name)
        draft.branches.append(DraftBranch(expression, fields.targets(name)))


def _read_branches(draft: Draft, fields: Fields) -> None:
    for name in ("on_true", "on_false"):
        if fields.has(name):
            fields.error("wrong_value", f"'{name}' belongs to 'condition', not to 'branches'.", name)
    field_expression = None
    if fields.has("condition_field"):
        field_expression = _expression(draft, fields, "condition_field", condition_field)
    listed = fields.raw("branches")
    if not isinstance(listed, YamlList) or not all(isinstance(each, YamlMap) for each in listed):
        fields.error("wrong_value", "'branches' must be a list of mappings.", "branches")
        return
    known_field = field_expression is not None or not fields.has("condition_field")
    branches = [
        _read_branch(
            draft, Fields(each, fields.problems, fields.node, f"branches[{place}]"), field_expression, known_field
        )
        for place, each in enumerate(listed)
        if isinstance(each, YamlMap)
    ]
    defaults = [branch for branch, is_default in branches if is_default]
    if len(defaults) != 1:
        found = "none" if not defaults else str(len(defaults))
        hint = "Add {default: true, next: …}, which is taken when no condition is met."
        fields.error(
            "no_default", f"A conditional has exactly one default branch, and this one has {found}.", "branches", hint
        )
    draft.branches = [*(branch for branch, is_default in branches if not is_default), *defaults]


def _read_branch(
    draft: Draft, fields: Fields, field_expression: str | None, known_field: bool
) -> tuple[DraftBranch, bool]:
    fields.only(("condition", "default", "next"))
    fields.required("next")
    is_default = fields.flag("default") is True
    if is_default == fields.has("condition"):
        fields.error("wrong_value", "A branch has either a 'condition' or 'default: true'.")
    condition = None
    if fields.has("condition") and known_field:
        condition = _expression(draft, fields, "condition", lambda text: branch_expression(field_expression, text))
    return DraftBranch(condition, fields.targets("next")), is_default


def _expression(draft: Draft, fields: Fields, name: str, make: Callable[[str], str]) -> str | None:
    """Read a condition and note it for the check of what it mentions."""
    text = fields.raw(name)
    if not isinstance(text, str):
        fields.error("wrong_value", f"'{name}' must be text.", name, f'Write it between quotes, such as "== {text}".')
        return None
    try:
        expression = make(text)
    except TemplateError as error:
        fields.error("bad_template", f"The condition `{text}` cannot be read: {error.reason}.", name)
        return None
    draft.written.append(Written(expression, name, fields.line(name), is_expression=True))
    return expression
