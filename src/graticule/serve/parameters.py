"""Which query parameters a route takes: those that it declares, and no others.

A parameter that nobody reads is a mistake of the caller's, or an attempt to name data by it.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from copy import deepcopy
from functools import cache
from inspect import isasyncgenfunction, isclass, iscoroutinefunction, isfunction, isgeneratorfunction
from typing import Any, Final

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.routing import APIRoute, iter_route_contexts

VERSION: Final = "version"  # the gate reads it
_VERSION_DESCRIBED: Final = {
    "name": VERSION,
    "in": "query",
    "required": False,
    "schema": {"type": "string", "pattern": "^(latest|0|[1-9][0-9]{0,8})$", "default": "latest"},
    "description": "Which version of the asset: `latest`, or its number; the first is 0.",
}
MOST_TOLD: Final = 5

Names = Callable[[Request], Awaitable[Collection[str]]]


def refuse_unknown_parameters(app: FastAPI, *, also: Mapping[str, Names] | None = None) -> None:
    """Let each route of an application refuse what it does not declare; called when all routes are there.

    `also` tells, by the name of a route, which further parameters a request may have because of what it reaches.
    """
    for route in iter_route_contexts(app.routes):  # those of included routers, too
        if isinstance(route.original_route, APIRoute):
            known = frozenset([VERSION, *_declared(route.dependant)])
            refuse = _refusal(known, (also or {}).get(route.name or ""))
            refusal = get_parameterless_sub_dependant(depends=Depends(refuse), path=route.path_format or "")
            route.dependant.dependencies.insert(0, refusal)


def described(app: FastAPI) -> dict[str, Any]:
    """Give the OpenAPI document of an application, in which every operation takes a version; it is made once."""
    known: dict[str, Any] | None = getattr(app.state, "described", None)
    if known is None:
        known = deepcopy(app.openapi())
        for operation in (each for item in known["paths"].values() for each in item.values()):
            operation.setdefault("parameters", []).append(_VERSION_DESCRIBED)
        app.state.described = known
    return known


def read_in_the_loop(app: FastAPI) -> None:
    """Let what only reads parameters run where requests are answered; called when all routes are there.

    FastAPI gives every plain function and class a thread. To hand over to ten of them, and back, takes longer than all
    that they do.
    """
    for route in app.routes:
        if isinstance(route, APIRoute):
            _read_in_the_loop(route.dependant)


def _read_in_the_loop(dependant: Dependant) -> None:
    for each in dependant.dependencies:
        _read_in_the_loop(each)
        if each.call is not None and _takes_a_thread(each.call):
            each.call = _awaited(each.call)


def _takes_a_thread(call: Callable[..., Any]) -> bool:
    is_other = iscoroutinefunction(call) or isgeneratorfunction(call) or isasyncgenfunction(call)
    return isclass(call) or (isfunction(call) and not is_other)


@cache  # by its function FastAPI knows that a dependency was solved already
def _awaited(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def called(**given: Any) -> Any:
        return call(**given)

    return called


def _declared(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _declared(each)


def _refusal(declared: frozenset[str], also: Names | None) -> Callable[[Request], Awaitable[None]]:
    async def refuse_unknown(request: Request) -> None:
        known: Collection[str] = declared
        unknown = [name for name in request.query_params if name not in known]
        if unknown and also is not None:
            known = declared.union(await also(request))
            unknown = [name for name in unknown if name not in known]
        if unknown:
            told = ", ".join(repr(name[:40]) for name in unknown[:MOST_TOLD])
            raise HTTPException(400, f"There is no parameter {told} here. There are: {', '.join(sorted(known))}.")

    return refuse_unknown
