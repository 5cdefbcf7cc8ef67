"""The pages of the words that Graticule uses: states, errors and events, made from the tables and enums of the core."""

import inspect
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from scripts.documentation.markdown import block, code, page, table

from graticule.core import errors
from graticule.core.errors import PASSING, CrossSiteRequest, GraticuleError, TooManyRequests, TooSlow
from graticule.core.models.engine import EventType
from graticule.core.refusals import Refusal
from graticule.core.states import APPROVAL, CLEARANCE, JOB, NODE, NODE_RESUME, PROCESSING, REQUEST, S, Transitions
from graticule.http.problems import status_of

STATES: Final = (
    ("Jobs", JOB),
    ("Nodes", NODE),
    ("Nodes of a job that is resumed", NODE_RESUME),
    ("Processing of a version", PROCESSING),
    ("Review of a version", APPROVAL),
    ("Clearance of an asset", CLEARANCE),
    ("Requests of partners", REQUEST),
)
ABOUT_STATES: Final = (
    "Every step that anything may take, drawn from the transition tables that guard each write. [How a job runs]"
    "(../explanation/engine.md) and [assets, versions and review](../explanation/assets.md) tell what leads to them."
)
ABOUT_ERRORS: Final = (
    "Every error that leaves a process by HTTP is a problem document (RFC 9457): `code` is for programs and does not "
    "change between versions, `detail` says what happened, and `hint` how to mend it. `request_id` finds the "
    "request in the log."
)
ABOUT_REFUSALS: Final = (
    "A rule of the platform forbids it (409): `code` names the rule, and `current` tells how things stand. [Assets, "
    "versions and review](../explanation/assets.md) tells the rules."
)
ABOUT_EVENTS: Final = (
    "Every change leaves an event, in the same transaction. [How a job runs](../explanation/engine.md) tells what the "
    "data of those of jobs hold, and `graticule events JOB` prints them."
)
_MEMBER: Final = re.compile(r'^ +\w+ = "(\w+)"(?:  # (.+))?$', re.MULTILINE)
_ADVICE: Final = {
    401: "Send a key or a token that is known.",
    403: "Ask for the role, or let someone who has it do so.",
    404: "Look at what was named; it may also be hidden from this caller.",
    409: "Read how things stand, and decide anew.",
    410: "Nothing: it was withdrawn.",
    422: "Mend what `errors` and `detail` name.",
    500: "The log of the process has the details.",
}


def pages() -> dict[str, str]:
    """Give the three pages."""
    return {
        "reference/states.md": page("States", ABOUT_STATES, *(_states(title, steps) for title, steps in STATES)),
        "reference/errors.md": _errors(),
        "reference/events.md": _events(),
    }


def state_diagram(steps: Transitions[S], *, whole: bool = True) -> str:
    """Draw a transition table as Mermaid; a part of one has neither a beginning nor an end."""
    lines = ["stateDiagram-v2"]
    if whole:
        lines.append(f"    [*] --> {steps.initial}")
    for old, targets in steps.steps.items():
        lines += [f"    {old} --> {new}" for new in _in_order(steps, targets)]
    if whole:
        lines += [f"    {state} --> [*]" for state in steps.final()]
    return "\n".join(lines) + "\n"


def _in_order(steps: Transitions[S], targets: Iterable[S]) -> list[S]:
    wanted = set(targets)
    return [state for state in steps.steps if state in wanted]


def _states(title: str, steps: Transitions[Any]) -> str:
    kind = type(steps.initial)
    rows = [
        (code(old), ", ".join(map(code, _in_order(steps, targets)))) for old, targets in steps.steps.items() if targets
    ]
    diagram = block("mermaid", state_diagram(steps, whole=steps is not NODE_RESUME))
    return "\n\n".join([f"## {title}", (kind.__doc__ or "").strip(), diagram, table(("from", "to"), rows)])


def _errors() -> str:
    rows = [(code(each.code), str(status), _sentence(each), _advice(each, status)) for each, status in _kinds()]
    refusals = [(code(value), told) for value, told in _commented(Refusal)]
    return page(
        "Errors",
        ABOUT_ERRORS,
        table(("code", "status", "what happened", "what to do"), rows),
        "## Refusals",
        ABOUT_REFUSALS,
        table(("code", "why"), refusals),
    )


def _kinds() -> Iterator[tuple[type[GraticuleError], int]]:
    """Give each error that has a code of its own, with its status, in the order of the statuses."""
    classes = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, GraticuleError)]
    found = [(each, status_of(each.__new__(each))) for each in classes if "code" in vars(each)]
    yield from sorted(found, key=lambda pair: pair[1])


def _sentence(kind: type[GraticuleError]) -> str:
    return "Something went wrong here." if kind is GraticuleError else inspect.cleandoc(kind.__doc__ or "")


def _advice(kind: type[GraticuleError], status: int) -> str:
    if issubclass(kind, CrossSiteRequest):
        return "Let the console's own page send it."
    if issubclass(kind, TooManyRequests):
        return "Wait as long as `Retry-After` says."
    if issubclass(kind, PASSING):
        return "Send the same once more, a little later."
    if issubclass(kind, TooSlow):
        return "Ask for less at a time, or later."
    return _ADVICE.get(status, HTTPStatus(status).phrase)


def _events() -> str:
    groups: dict[str, list[tuple[str, str]]] = {}
    for value, told in _commented(EventType):
        groups.setdefault(value.split("_")[0], []).append((code(value), told))
    parts = [f"## Of {name}s\n\n{table(('event', 'when'), rows)}" for name, rows in groups.items() if len(rows) > 2]
    others = [row for rows in groups.values() if len(rows) <= 2 for row in rows]
    return page("Events", ABOUT_EVENTS, *parts, f"## Others\n\n{table(('event', 'when'), others)}")


def _commented(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Give the values of an enum with what the comments beside them say, as sentences."""
    for value, comment in _MEMBER.findall(inspect.getsource(kind)):
        words = comment or value.replace("_", " ")
        yield value, f"{words[0].upper()}{words[1:]}."
