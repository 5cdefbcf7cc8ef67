"""What a workflow says of itself: its id, name, version, and the inputs that it takes."""

import json
import re
from typing import Final

from pydantic import JsonValue

from graticule.dag.compiling.fields import Fields
from graticule.dag.compiling.yaml_source import YamlList, YamlMap, YamlValue, plain_value
from graticule.dag.graph import InputSpec, InputType
from graticule.dag.inputs import faults
from graticule.dag.patterns import compile_pattern

WORKFLOW_ID: Final = r"[a-z][a-z0-9_]*"
INPUT: Final = r"[A-Za-z][A-Za-z0-9_]*"
KEYS: Final = ("workflow_id", "name", "version", "description", "inputs", "job_id", "nodes", "stages")

_INPUT_KEYS: Final = ("type", "required", "default", "description", "enum", "minimum", "maximum", "pattern")
_NUMERIC: Final = frozenset({InputType.INTEGER, InputType.NUMBER})


def read_version(fields: Fields) -> str:
    """Give the version as text."""
    value = fields.raw("version")
    if value is None:
        return "1"
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value) or len(str(value)) > 64:
        fields.error("wrong_value", "'version' must be a whole number, or text such as \"1.0\".", "version")
    return str(value)


def read_inputs(fields: Fields) -> dict[str, InputSpec]:
    """Read the declared inputs."""
    declared = fields.mapping("inputs")
    found: dict[str, InputSpec] = {}
    if declared is None:
        return found
    for name in declared.source:
        if not re.fullmatch(INPUT, name) or len(name) > 64:
            hint = "Use letters, digits and '_', a letter first, at most 64."
            declared.error("bad_name", f"{name!r} cannot be the name of an input.", name, hint)
        inner = declared.mapping(name)
        if inner is not None:
            found[name] = _read_input(name, inner)
        elif declared.raw(name) is None:
            declared.error("missing_key", f"'inputs.{name}' needs at least a type.", name, "Write {type: string}.")
    return found


def _read_input(name: str, fields: Fields) -> InputSpec:
    fields.only(_INPUT_KEYS)
    fields.required("type")
    input_type = fields.choice("type", InputType)
    default = plain_value(fields.raw("default"))
    spec = InputSpec(
        type=input_type or InputType.OBJECT,
        required=fields.flag("required") or False,
        default=default,
        description=fields.text("description", most=10_000),
        enum=_read_enum(fields),
        minimum=_bound(fields, "minimum"),
        maximum=_bound(fields, "maximum"),
        pattern=_read_pattern(fields),
    )
    if input_type is not None:
        _check_input(name, spec, fields)
    return spec


def _check_input(name: str, spec: InputSpec, fields: Fields) -> None:
    """Check that what is said of an input fits together."""
    for key in ("minimum", "maximum"):
        if fields.has(key) and spec.type not in _NUMERIC:
            fields.error("wrong_value", f"'inputs.{name}.{key}' is for numbers, and it is {spec.type}.", key)
    if spec.pattern is not None and spec.type is not InputType.STRING:
        fields.error("wrong_value", f"'inputs.{name}.pattern' is for strings, and it is {spec.type}.", "pattern")
    for reason in faults(spec, spec.default):
        fields.error("wrong_value", f"'inputs.{name}.default' {reason}.", "default")
    for allowed in spec.enum or ():
        for reason in faults(spec.model_copy(update={"enum": None}), allowed):
            fields.error("wrong_value", f"'inputs.{name}.enum': {json.dumps(allowed)} {reason}.", "enum")
    if spec.required and spec.default is not None:
        message = f"'inputs.{name}' is required and has a default: the default is always there."
        fields.problems.warn("required_default", message, fields.line("required"))


def _read_enum(fields: Fields) -> tuple[JsonValue, ...] | None:
    value = fields.raw("enum")
    if value is None:
        return None
    if not isinstance(value, YamlList) or not value:
        fields.error("wrong_value", "'enum' must be a list of values.", "enum")
        return None
    return tuple(plain_value(part) for part in value)


def _bound(fields: Fields, name: str) -> float | None:
    return fields.number(name, -1e308, 1e308)


def _read_pattern(fields: Fields) -> str | None:
    pattern = fields.text("pattern")
    if pattern is None:
        return None
    try:
        compile_pattern(pattern)
    except ValueError as error:
        fields.error("wrong_value", f"'pattern' is no regular expression: {error}.", "pattern")
        return None
    return pattern


def node_maps(fields: Fields) -> dict[str, YamlMap]:
    """Give the nodes that are mappings, by their names."""
    nodes = fields.mapping("nodes")
    if nodes is None:
        return {}
    return {name: _node_map(name, node, nodes) for name, node in nodes.source.items()}


def _node_map(name: str, node: YamlValue, nodes: Fields) -> YamlMap:
    if isinstance(node, YamlMap):
        node.line = nodes.line(name)  # where its name stands, and not its first field
        return node
    nodes.problems.error("wrong_value", "A node must be a mapping.", nodes.line(name), name)
    return YamlMap(nodes.line(name))
