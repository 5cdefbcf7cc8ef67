"""Refuses a hand-made job whose inputs name outputs outside its namespace, before any work is done."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from graticule.core.direct_names import PATTERNS, direct_name, is_direct
from graticule.core.errors import OutputRefused
from graticule.dag.graph import Graph
from graticule.handlers.compatibility import HANDLER_ALIASES

OURS: Final = ("raster.", "vector.")  # handlers that write outputs
_INPUT: Final = re.compile(r"\{\{\s*inputs\.(\w+)(\s+or\s((?!\}\}).)*)?\s*\}\}", re.DOTALL)


def check_direct_outputs(graph: Graph, inputs: Mapping[str, JsonValue]) -> None:
    """Raise `OutputRefused` for a name that the database would refuse later; a computed one is checked only there."""
    for parameter, place, name in _named_outputs(graph, inputs):
        if not is_direct(parameter, name):
            suggested = direct_name(parameter, name)
            raise OutputRefused(
                f"{place}: a job that is submitted directly may not write {name[:200]!r}; such names belong to assets.",
                hint=f"Name it {suggested!r}. To change the data of an asset, submit or reprocess it.",
            )


def _named_outputs(graph: Graph, inputs: Mapping[str, JsonValue]) -> Iterator[tuple[str, str, str]]:
    """Yield parameter, place and name of the outputs that are known before the job runs."""
    tasks = ((node_id, node.task) for node_id, node in graph.nodes.items() if node.task is not None)
    for node_id, task in tasks:
        if not HANDLER_ALIASES.get(task.handler, task.handler).startswith(OURS):
            continue
        for parameter in PATTERNS:
            template = task.params.get(parameter)
            if not isinstance(template, str):
                continue
            named = _INPUT.fullmatch(template)
            value = inputs.get(named[1]) if named else None if "{" in template else template
            if isinstance(value, str) and value:
                yield parameter, named[1] if named else f"{node_id}.{parameter}", value
