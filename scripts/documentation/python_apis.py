"""The pages of what Python programs import: handlers and the client, made from signatures and docstrings."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel
from scripts.documentation.markdown import anchor_of, block, code, heading, page, table

from graticule import client, handlers
from graticule.client import calls
from graticule.handlers import context
from graticule.storage.blocking import BlockingStorage
from graticule.storage.protocol import Storage

_PLACES: Final = re.compile(r"(?:\w+\.)+(?=[A-Z])|\btyping\.")
_ADDRESSES: Final = re.compile(r"<(\w+)[^<>]*>")
_LONGEST_LINE: Final = 100
_STARS: Final[dict[Any, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
INTERNAL: Final = frozenset({"signals", "report_progress", "pace"})  # of a context: between it and its worker
GIVEN: Final = (context.Checkpoints, context.BlockingCheckpoints, Storage, BlockingStorage, context.BlockingStaging)


def pages() -> dict[str, str]:
    """Give both pages."""
    return {"reference/python/handlers.md": _handlers(), "reference/python/client.md": _client()}


def _handlers() -> str:
    introduction = (
        "All that the author of a handler imports from `graticule.handlers`. [Writing a handler]"
        "(../../how-to/handlers.md) shows it at work."
    )
    exported = [_object(name, getattr(handlers, name)) for name in handlers.__all__]
    given = [_object(each.__name__, each) for each in GIVEN]
    return page(
        "Python: handlers", introduction, "## `graticule.handlers`", *exported, "## What a context leads to", *given
    )


def _client() -> str:
    introduction = (
        "All that a program imports from `graticule.client`. [The Python client](../../how-to/client.md) shows it at "
        "work."
    )
    exported = [_object(name, getattr(client, name)) for name in client.__all__ if name != "calls"]
    sections = (_functions(calls, "Calls to the orchestrator"), _functions(calls.gateway, "Calls to the gateway"))
    return page("Python: the client", introduction, "## `graticule.client`", *exported, *sections)


def _functions(module: ModuleType, title: str) -> str:
    found = [
        (name, each) for name, each in vars(module).items() if inspect.isfunction(each) and not name.startswith("_")
    ]
    place = module.__name__.removeprefix("graticule.client.")
    told = [_function(f"{place}.{name}", name, each) for name, each in sorted(found)]
    return "\n\n".join([f"## {title}", *told])


def _object(name: str, found: Any) -> str:
    if inspect.isclass(found):
        return _class(name, found)
    if inspect.isfunction(found):
        return _function(name, name, found)
    return "\n\n".join([heading(3, code(name), anchor_of(name)), block("python", f"{name} = {_type(str(found))}")])


def _function(title: str, name: str, function: Any) -> str:
    parts = [heading(3, code(title), anchor_of(title)), block("python", _signature(name, function)), _told(function)]
    return "\n\n".join(part for part in parts if part)


def _class(name: str, kind: type) -> str:
    members = [part for member, each in _members(kind) for part in _member(member, each)]
    parts = [heading(3, code(name), anchor_of(name)), _told(kind), _constructor(name, kind), _fields(kind), *members]
    return "\n\n".join(part for part in parts if part)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Give what the class and its bases of ours offer, in the order of the source, those of bases first."""
    ours = [each for each in reversed(kind.__mro__) if each.__module__.startswith("graticule.")]
    found = {name: each for owner in ours for name, each in vars(owner).items() if not name.startswith("_")}
    for name, each in found.items():
        if isinstance(each, property | classmethod | staticmethod) or inspect.isfunction(each):
            yield name, each


def _member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        yield f"**{code(name)}** : {_told(member.fget)}"
        return
    function = getattr(member, "__func__", member)
    yield f"**{code(name)}**"
    yield block("python", _signature(name, function))
    yield _told(function)


def _constructor(name: str, kind: type) -> str:
    """Show how one is made by its author; others are given."""
    is_made = inspect.isfunction(vars(kind).get("__init__")) and not getattr(kind, "_is_protocol", False)
    if not is_made or dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel):
        return ""
    made = vars(kind)["__init__"]
    return f"{block('python', _line('class ' + name, inspect.signature(made)))}\n\n{_told(made)}"


def _fields(kind: type) -> str:
    if issubclass(kind, BaseModel):
        told = [
            (code(name), code(_type(each.annotation)), _default(each.default), each.description or "")
            for name, each in kind.model_fields.items()
        ]
        return table(("field", "type", "default", "what"), told)
    if not dataclasses.is_dataclass(kind):
        return ""
    shown = [each for each in dataclasses.fields(kind) if each.name not in INTERNAL]
    rows = [(code(each.name), code(_type(each.type)), _default(each.default)) for each in shown]
    return table(("field", "type", "default"), rows)


def _default(value: Any) -> str:
    unsaid = value is dataclasses.MISSING or repr(value) == "PydanticUndefined"
    return "" if unsaid else code(_address_free(repr(value)))


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    answer = "" if signature.return_annotation is signature.empty else f" -> {_type(signature.return_annotation)}"
    return _line(f"{'async def' if inspect.iscoroutinefunction(function) else 'def'} {name}", signature, answer)


def _line(before: str, signature: inspect.Signature, after: str = "") -> str:
    """Write a signature, with a line for each parameter when it is long."""
    parameters = list(_parameters(signature))
    line = f"{before}({', '.join(parameters)}){after}"
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{before}(" + "".join(f"\n    {each}," for each in parameters) + f"\n){after}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    named_only = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "*"
        named_only = named_only or each.kind is each.VAR_POSITIONAL
        kind = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        default = "" if each.default is each.empty else f" = {_address_free(repr(each.default))}"
        yield f"{_STARS.get(each.kind, '')}{each.name}{kind}{default}"


def _type(annotation: Any) -> str:
    """Name a type without the modules: a reader looks for the last word."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _PLACES.sub("", re.sub("[~+']", "", text))


def _address_free(text: str) -> str:
    return _ADDRESSES.sub(r"\1", text)


def _told(found: Any) -> str:
    return inspect.cleandoc(found.__doc__) if found is not None and found.__doc__ else ""
