"""The inputs of a workflow: declared with types, checked all at once when a job is submitted."""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from graticule.core.errors import InvalidInput
from graticule.dag.graph import Graph, InputSpec, InputType
from graticule.dag.patterns import compile_pattern
from graticule.dag.problems import did_you_mean

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64

_ARTICLE: Final[Mapping[InputType, str]] = {InputType.INTEGER: "an", InputType.ARRAY: "an", InputType.OBJECT: "an"}


def validate_inputs(graph: Graph, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Give the inputs with the defaults filled in, or tell all that is wrong with them."""
    _check_size(given)
    wrong = [_unknown(name, graph.inputs) for name in given if name not in graph.inputs]
    inputs: dict[str, JsonValue] = {}
    for name, spec in graph.inputs.items():
        value = given.get(name)
        inputs[name] = spec.default if value is None else value
        if inputs[name] is None and spec.required:
            wrong.append(f"'{name}' is required ({spec.type}).")
        wrong += [f"'{name}' {reason}." for reason in faults(spec, inputs[name])]
    if wrong:
        raise InvalidInput(f"The inputs of workflow '{graph.workflow_id}' are not valid: {' '.join(wrong)}")
    return inputs


def _unknown(name: str, known: Mapping[str, InputSpec]) -> str:
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    return " ".join(part for part in (f"'{shown}' is not an input.", did_you_mean(name[:100], known)) if part)


def _check_size(given: Mapping[str, JsonValue]) -> None:
    if _depth_exceeds(given, MAX_DEPTH):
        raise InvalidInput(f"The inputs are nested more than {MAX_DEPTH} levels deep.")
    try:
        size = len(json.dumps(given, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):  # of which a text that no encoding can write is one
        raise InvalidInput("The inputs are not JSON.") from None
    if size > MAX_BYTES:
        raise InvalidInput(
            f"The inputs have {size:,} bytes as JSON, and at most {MAX_BYTES:,} are allowed.",
            hint="Put large data into storage and pass its path.",
        )


def _depth_exceeds(value: object, most: int) -> bool:
    """Go level by level, so that no depth is too much for the check itself."""
    level: list[object] = [value]
    for _ in range(most + 1):
        level = [part for each in level for part in _inner(each)]
        if not level:
            return False
    return True


def _inner(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def faults(spec: InputSpec, value: JsonValue) -> list[str]:
    """Tell what is wrong with the value of an input; null stands for one that is not given."""
    if value is None:
        return []
    if not _has_type(spec.type, value):
        return [f"must be {_ARTICLE.get(spec.type, 'a')} {spec.type}, and is {_told(value)}"]
    found: list[str] = []
    if spec.enum is not None and not any(_equal(value, allowed) for allowed in spec.enum):
        found.append(f"must be one of {', '.join(json.dumps(allowed) for allowed in spec.enum)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if spec.minimum is not None and value < spec.minimum:
            found.append(f"must be at least {spec.minimum:.15g}")
        if spec.maximum is not None and value > spec.maximum:
            found.append(f"must be at most {spec.maximum:.15g}")
    if spec.pattern is not None and isinstance(value, str):
        found += [] if compile_pattern(spec.pattern)(value) else [f"must match {spec.pattern}"]
    return found


def _has_type(wanted: InputType, value: JsonValue) -> bool:
    if isinstance(value, bool):
        return wanted is InputType.BOOLEAN
    types: Mapping[InputType, tuple[type, ...]] = {
        InputType.STRING: (str,),
        InputType.INTEGER: (int,),
        InputType.NUMBER: (int, float),
        InputType.ARRAY: (list,),
        InputType.OBJECT: (dict,),
    }
    return isinstance(value, types.get(wanted, ()))


def _equal(value: JsonValue, allowed: JsonValue) -> bool:
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)


def _told(value: JsonValue) -> str:
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), "null")


def deterministic_job_id(graph: Graph, inputs: Mapping[str, JsonValue]) -> str:
    """Give the id that identical requests share: a digest of the workflow's id and its validated inputs."""
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256((graph.workflow_id + canonical).encode()).hexdigest()
