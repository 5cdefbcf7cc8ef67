"""What the STAC API answers with: pgstac's answers, with the addresses of this service."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attr
from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from stac_fastapi.pgstac.core import CoreCrudClient
from stac_fastapi.pgstac.extensions.filter import FiltersClient
from stac_fastapi.types.errors import NotFoundError
from stac_fastapi.types.requests import get_base_url
from stac_pydantic.links import Relations
from stac_pydantic.shared import MimeTypes

from graticule.core.audience import Audience
from graticule.repositories.queries import load_queries
from graticule.serve.links import Addresses
from graticule.serve.openapi import description_links
from graticule.serve.stac.documents import Document, ItemVersion, served_collection, served_item
from graticule.serve.stac.searches import (
    LONGEST_WORDS,
    MOST_SKIPPED,
    Search,
    arguments_of,
    check_order,
    flat_box,
    page_limit,
    search_of,
)

QUERIES: Final = load_queries("items.sql", package=__package__)
LANDING_ID: Final = "graticule"
DESCRIBED_AT: Final = "/api"
NO_QUERYABLES: Final = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}
Key = tuple[str, str]
T = TypeVar("T")


@attr.s
class CatalogueClient(CoreCrudClient):  # type: ignore[misc]  # the library is untyped
    """Answers from the catalogue what an audience may see of it; that is decided by the role of the connection."""

    audience: Audience = attr.ib(default=Audience.EXTERNAL, kw_only=True)
    search_model: type[Search] = attr.ib(default=Search, kw_only=True)
    core_classes: Sequence[str] = attr.ib(default=(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        self.pgstac_search_model = self._search_of
        self.base_conformance_classes = list(self.core_classes)
        self.landing_page_id = LANDING_ID

    def _search_of(self, **given: Any) -> Search:
        return search_of(self.search_model, given)

    async def landing_page(self, **kwargs: Any) -> Any:
        """Give the page that leads to everything else."""
        request = kwargs["request"]
        base = get_base_url(request)
        page = self._landing_page(base, self.conformance_classes(), [])
        queryables = {"title": "What can be filtered by", "type": MimeTypes.jsonschema.value, "method": "GET"}
        page["links"] += [
            {"rel": Relations.queryables.value, "href": f"{base}queryables", **queryables},
            *description_links(Addresses(request), DESCRIBED_AT),
        ]
        return page

    async def all_collections(self, request: Request, **given: Any) -> Any:
        """Give a page of collections."""
        given = _as_invalid(lambda: _checked_collections(given))
        found = await super().all_collections(request, **given)
        found["collections"] = [served_collection(each) for each in found["collections"]]
        return found

    async def get_collection(self, collection_id: str, request: Request, **kwargs: Any) -> Any:
        """Give one collection."""
        return served_collection(await super().get_collection(collection_id, request, **kwargs))

    async def item_collection(
        self, collection_id: str, request: Request, collections: list[str] | None = None, **given: Any
    ) -> Any:
        """Give a page of the items of a collection; it may be named once more."""
        if collections and collection_id not in collections:
            raise HTTPException(400, "These are the items of one collection, and another is asked for.")
        return _as_geojson(await super().item_collection(collection_id, request, **given))

    async def get_search(self, *given: Any, **named: Any) -> Any:
        """Search, as the address says."""
        return _as_geojson(await super().get_search(*given, **named))

    async def post_search(self, *given: Any, **named: Any) -> Any:
        """Search, as the body says."""
        return _as_geojson(await super().post_search(*given, **named))

    async def _search_base(self, search_request: Search, request: Request) -> Any:
        """Search; everything that answers with items comes through here."""
        found = await super()._search_base(search_request, request)
        fields = getattr(search_request, "fields", None)
        whole = not (fields and (fields.include or fields.exclude))
        versions = await self._versions(request, [_key(item) for item in found["features"]])
        base = get_base_url(request)
        found["features"] = [
            served_item(item, versions.get(_key(item)), base, whole=whole) for item in found["features"]
        ]
        return found

    async def _versions(self, request: Request, keys: Sequence[Key]) -> Mapping[Key, ItemVersion]:
        """Find the versions that items stand for; the tiles of one are not among them."""
        if not keys:
            return {}
        query = QUERIES.numbered(f"{self.audience}_versions_of_items")
        given = {"collection_ids": [collection for collection, _ in keys], "item_ids": [item for _, item in keys]}
        async with request.app.state.get_connection(request, "r") as connection:
            rows = await connection.fetch(query.text, *(given[name] for name in query.names))
        return {
            (row["collection_id"], row["item_id"]): ItemVersion(
                row["asset_id"], row["version_ordinal"], row["url_mode"]
            )
            for row in rows
        }

    def _clean_search_args(self, base_args: Mapping[str, Any], **given: Any) -> dict[str, Any]:
        return _as_invalid(lambda: arguments_of(base_args, **given))


class QueryablesClient(FiltersClient):  # type: ignore[misc]  # the library is untyped
    """Tells what can be filtered by."""

    async def get_queryables(self, request: Request, collection_id: str | None = None, **kwargs: Any) -> Document:
        """Give the schema of the properties; that of a catalogue without collections has none."""
        try:
            found = await super().get_queryables(request, collection_id, **kwargs)
        except NotFoundError:
            if collection_id is not None:
                raise
            found = NO_QUERYABLES
        place = "queryables" if collection_id is None else f"collections/{collection_id}/queryables"
        return {**found, "$id": f"{get_base_url(request)}{place}"}


def _as_geojson(found: Any) -> Any:
    """Give an answer the type that it has; of items with chosen fields the library says that they are just JSON."""
    if isinstance(found, Response):
        found.headers["content-type"] = MimeTypes.geojson.value
    return found


def _key(item: Document) -> Key:
    return item["collection"], item["id"]


def _checked_collections(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search for collections, within their bounds."""
    if not 0 <= (given.get("offset") or 0) <= MOST_SKIPPED:
        raise ValueError(f"The offset is from 0 to {MOST_SKIPPED}.")
    if sum(map(len, given.get("q") or ())) > LONGEST_WORDS:
        raise ValueError(f"At most {LONGEST_WORDS} characters can be searched for.")
    check_order([name.lstrip("+-").strip() for name in given.get("sortby") or () if name.strip()])
    box = given.get("bbox")
    return {**given, "limit": page_limit(given.get("limit")), "bbox": None if box is None else flat_box(box)}


def _as_invalid(read: Callable[[], T]) -> T:
    """Tell what is wrong with parameters as FastAPI does."""
    try:
        return read()
    except ValueError as error:
        fault = {"loc": ("query",), "msg": str(error), "type": "value_error"}
        raise RequestValidationError([fault]) from error
