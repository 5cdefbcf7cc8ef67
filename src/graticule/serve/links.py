"""Addresses in answers: absolute, and of the version that was asked for."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import Request

from graticule.serve.parameters import VERSION

JSON: Final = "application/json"
HTML: Final = "text/html"
OPENAPI_30: Final = "application/vnd.oai.openapi+json;version=3.0"
OPENAPI_31: Final = "application/vnd.oai.openapi+json;version=3.1"
_RELATIONS: Final = "http://www.opengis.net/def/rel/ogc/1.0/"

Link = dict[str, Any]
Query = Iterable[tuple[str, str]]


class Addresses:
    """Addresses below the one of the asset that a request has reached."""

    def __init__(self, request: Request) -> None:
        self.root = str(request.base_url).rstrip("/")
        self._version = request.query_params.getlist(VERSION)[:1]

    def to(self, path: str, query: Query = ()) -> str:
        """Give the address of a path; a version that was asked for is asked for again."""
        asked = [*((VERSION, each) for each in self._version), *(pair for pair in query if pair[0] != VERSION)]
        return f"{self.root}{path}?{urlencode(asked)}" if asked else f"{self.root}{path}"

    def link(self, rel: str, path: str, kind: str, title: str, query: Query = ()) -> Link:
        """Give a link."""
        return {"rel": rel, "href": self.to(path, query), "type": kind, "title": title}

    def template(self, rel: str, path: str, kind: str, title: str, query: Query = ()) -> Link:
        """Give a link with places to fill in."""
        return {**self.link(rel, path, kind, title, query), "templated": True}

    def itself(self, request: Request, kind: str = JSON) -> Link:
        """Give the link of an answer to itself."""
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        return self.link("self", path, kind, "This document", request.query_params.multi_items())


def relation(name: str) -> str:
    """Name a relation that OGC has defined."""
    return _RELATIONS + name
