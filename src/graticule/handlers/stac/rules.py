"""What collections and items of the catalogue must be like, whoever writes them."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.repositories.catalogue import Document

LONGEST_ID: Final = 255
LONGEST_ITEM_ID: Final = 2 * LONGEST_ID + 1  # of a tile: the id of the whole, and its own
TEXTS: Final = frozenset({"title", "description", "license", "keywords"})
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_DEPTHS: Final = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}


def check_collection(document: Document, text: Document) -> None:
    """Refuse a collection that the catalogue cannot keep, or texts by which one is not described."""
    if document.get("type") != "Collection" or not _is_identifier(document.get("id"), LONGEST_ID):
        raise InvalidInput("A collection of the catalogue has the type 'Collection' and a simple id.")
    _check_shape(document, f"The collection {document['id']}", ("summaries", "item_assets"), ("item_assets",))
    if unknown := text.keys() - TEXTS:
        raise InvalidInput(f"A collection cannot be described anew by {min(unknown)!r}.")


def check_item(item: Document, collection_id: str) -> None:
    """Refuse an item that the catalogue cannot keep in this collection."""
    if item.get("type") != "Feature" or not _is_identifier(item.get("id"), LONGEST_ITEM_ID):
        raise InvalidInput("An item of the catalogue has the type 'Feature' and a simple id.")
    _check_shape(item, f"The item {item['id']}", ("properties", "assets"), ("assets",))
    if item.get("collection") != collection_id:
        raise InvalidInput(f"The item {item['id']} is not of the collection {collection_id}.")
    if not _is_geometry(item.get("geometry")):
        raise InvalidInput(f"The item {item['id']} has no sound geometry.")
    time_of(item)


def _check_shape(document: Document, what: str, objects: Sequence[str], of_objects: Sequence[str]) -> None:
    """Refuse parts that are not what every reader of the catalogue takes them for."""
    sound = all(isinstance(document.get(name, {}), dict) for name in objects)
    if not sound or not all(isinstance(each, dict) for name in of_objects for each in document.get(name, {}).values()):
        raise InvalidInput(f"{what} is not as STAC has it: {', '.join(objects)} must be objects.")
    try:
        json_codec.encode(document)
    except TypeError as error:
        raise InvalidInput(f"{what} cannot be written as JSON: {error}.") from None


def _is_identifier(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and _IDENTIFIER.fullmatch(value) is not None


def time_of(item: Document) -> datetime:
    """Give when an item is."""
    properties = item.get("properties")
    try:
        at = datetime.fromisoformat(properties["datetime"]) if isinstance(properties, dict) else None
    except (KeyError, TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidInput(f"The item {item['id']} has no `datetime` with a zone.")
    return at


def _is_geometry(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") not in _DEPTHS:
        return False
    return _are_positions(value.get("coordinates"), _DEPTHS[value["type"]], "Polygon" in value["type"])


def _are_positions(value: Any, depth: int, are_rings: bool) -> bool:
    """Tell whether these are coordinates, in lists of lists to this depth; a ring ends where it begins."""
    if not isinstance(value, list) or not value:
        return False
    if depth == 0:
        return 2 <= len(value) <= 3 and all(_is_number(each) for each in value)
    if not all(_are_positions(each, depth - 1, are_rings) for each in value):
        return False
    return depth > 1 or not are_rings or (len(value) >= 4 and value[0] == value[-1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
