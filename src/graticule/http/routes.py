"""Which route answered a request, by its template: a label of a metric must not grow with the addresses."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

UNMATCHED: Final = "unmatched"


class RouteFinder:
    """Made before a request is handled, called afterwards: on its way the scope collects what was chosen."""

    def __init__(self, scope: Scope) -> None:
        self._routes = _routes_of(scope)
        self._before = {key: scope.get(key, "") for key in ("type", "method", "path", "root_path")}

    def __call__(self, scope: Scope) -> str:
        """Return the template of the route that was chosen, with the prefixes it is reached by."""
        mount = self._mount() if scope.get("root_path", "") != self._before["root_path"] else None
        chosen = _chosen(scope)
        template = _template(chosen)
        if mount and template and chosen is not mount:
            return mount.path + template
        return template or _template(mount) or _template(_by_endpoint(self._routes, scope)) or UNMATCHED

    def _mount(self) -> Mount | None:
        mounts = (route for route in self._routes if isinstance(route, Mount))
        return next((mount for mount in mounts if mount.matches(self._before)[0] is Match.FULL), None)


def _routes_of(scope: Scope) -> Sequence[BaseRoute]:
    return getattr(scope.get("app"), "routes", ())


def _chosen(scope: Scope) -> Any:
    """Return the route that FastAPI notes in the scope; that of an included router knows its full path."""
    included: Any = scope.get("fastapi", {}).get("effective_route_context")
    if included is None:
        return scope.get("route")
    return getattr(included, "starlette_route", None) or included


def _by_endpoint(routes: Sequence[BaseRoute], scope: Scope) -> BaseRoute | None:
    """Find a route of Starlette itself, which FastAPI does not note in the scope."""
    endpoint = scope.get("endpoint")
    return next((route for route in routes if endpoint and getattr(route, "endpoint", None) is endpoint), None)


def _template(route: object | None) -> str | None:
    return getattr(route, "path_format", None) or None
