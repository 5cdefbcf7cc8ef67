"""What routes depend on runs in the event loop: FastAPI would hand a plain function to a thread, at each request."""

import inspect
from collections.abc import Iterator

import pytest
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from graticule.api.app import ROUTERS as ORCHESTRATOR
from graticule.gateway import platform
from graticule.gateway.app import ROUTERS as GATEWAY


@pytest.mark.parametrize("router", [*ORCHESTRATOR, *GATEWAY, platform.router], ids=lambda router: router.prefix or "/")
def test_no_dependency_needs_a_thread(router: APIRouter) -> None:
    called = [call for route in router.routes if isinstance(route, APIRoute) for call in _called(route.dependant)]
    assert [call for call in called if not _is_coroutine(call)] == []


def _called(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _called(each)


def _is_coroutine(call: object) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
