"""Which parts of the STAC API there are here, and what each claims to conform to."""

from dataclasses import dataclass
from typing import Any, Final, cast

import attr
from stac_fastapi.api.models import (
    ItemCollectionUri,
    create_get_request_model,
    create_post_request_model,
    create_request_model,
)
from stac_fastapi.extensions import CollectionSearchExtension
from stac_fastapi.extensions.fields import FieldsConformanceClasses, FieldsExtension
from stac_fastapi.extensions.filter import (
    CollectionSearchFilterExtension,
    FilterConformanceClasses,
    ItemCollectionFilterExtension,
    SearchFilterExtension,
)
from stac_fastapi.extensions.free_text import FreeTextConformanceClasses, FreeTextExtension
from stac_fastapi.extensions.pagination import OffsetPaginationExtension, TokenPaginationExtension
from stac_fastapi.extensions.sort import (
    CollectionSearchSortExtension,
    ItemCollectionSortExtension,
    SearchSortExtension,
    SortConformanceClasses,
)
from stac_fastapi.types.conformance import OAFConformanceClasses, STACConformanceClasses
from stac_fastapi.types.search import APIRequest, _collection_converter, _ids_converter

from graticule.serve.stac.client import QueryablesClient
from graticule.serve.stac.searches import Search

CORE: Final = [*STACConformanceClasses, *OAFConformanceClasses]
CQL2: Final = [
    FilterConformanceClasses.FILTER,
    FilterConformanceClasses.CQL2_TEXT,
    FilterConformanceClasses.CQL2_JSON,
    FilterConformanceClasses.BASIC_CQL2,
    FilterConformanceClasses.ADVANCED_COMPARISON_OPERATORS,
    FilterConformanceClasses.CASE_INSENSITIVE_COMPARISON,
    FilterConformanceClasses.ACCENT_INSENSITIVE_COMPARISON,
    FilterConformanceClasses.BASIC_SPATIAL_FUNCTIONS,
    FilterConformanceClasses.TEMPORAL_FUNCTIONS,
    FilterConformanceClasses.ARRAY_FUNCTIONS,
    FilterConformanceClasses.PROPERTY_PROPERTY,
]


# pystac-client looks for version 1.0 of it, which is the same without a list of what can be sorted by.
SORT: Final = "https://api.stacspec.org/v1.0.0/item-search#sort"
SORT_ITEMS: Final = "https://api.stacspec.org/v1.0.0/ogcapi-features#sort"


@attr.s
class NamedItems(APIRequest):
    """Parameters that pystac-client sends to a collection's items as it does to a search."""

    collections: list[str] | None = attr.ib(default=None, converter=_collection_converter)
    ids: list[str] | None = attr.ib(default=None, converter=_ids_converter)


@dataclass(frozen=True, slots=True)
class Extensions:
    """The extensions of the searches for items, of the items of a collection, and of the search for collections."""

    search: list[Any]
    items: list[Any]
    collections: Any

    @property
    def all(self) -> list[Any]:
        """All of them."""
        return [*self.search, *self.items, self.collections]

    def search_model(self) -> type[Search]:
        """Give the form of a search's body."""
        return cast("type[Search]", create_post_request_model(self.search, base_model=Search))

    def parameters(self) -> dict[str, Any]:
        """Give the parameters of each address, as the library wants them."""
        mixins: list[type[APIRequest]] = [NamedItems]
        return {
            "search_get_request_model": create_get_request_model(self.search),
            "items_get_request_model": create_request_model("ItemCollectionUri", ItemCollectionUri, self.items, mixins),
            "collections_get_request_model": self.collections.GET,
        }


def offered_extensions() -> Extensions:
    """Give the extensions that are offered: filters, order, choice of fields, and pages."""
    return Extensions(_of_search(), _of_items(), CollectionSearchExtension.from_extensions(_of_collections()))


def _filtering(kind: Any, conformance: FilterConformanceClasses) -> Any:
    return kind(client=QueryablesClient(), conformance_classes=[*CQL2, conformance])


def _of_search() -> list[Any]:
    return [
        SearchSortExtension(conformance_classes=[SortConformanceClasses.ITEM_SEARCH_SORT, SORT]),
        FieldsExtension(),
        _filtering(SearchFilterExtension, FilterConformanceClasses.SEARCH),
        TokenPaginationExtension(),
    ]


def _of_items() -> list[Any]:
    return [
        ItemCollectionSortExtension(conformance_classes=[SortConformanceClasses.FEATURES_SORT, SORT_ITEMS]),
        FieldsExtension(conformance_classes=[FieldsConformanceClasses.ITEMS]),
        _filtering(ItemCollectionFilterExtension, FilterConformanceClasses.ITEMS),
        TokenPaginationExtension(),
    ]


def _of_collections() -> list[Any]:
    return [
        CollectionSearchSortExtension(),
        _filtering(CollectionSearchFilterExtension, FilterConformanceClasses.COLLECTIONS),
        FreeTextExtension(conformance_classes=[FreeTextConformanceClasses.COLLECTIONS]),
        OffsetPaginationExtension(),
    ]
