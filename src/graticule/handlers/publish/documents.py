"""What the public is told: of the platform's own documents what is named here, with addresses of the public's zone.

A list of what is told, rather than of what is not: a property that is new tomorrow is not public by accident.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from graticule.core import json_codec
from graticule.core.asset_names import PUBLIC_COLLECTION
from graticule.core.errors import InvalidInput
from graticule.handlers.publish.inputs import Export

Document = dict[str, Any]
# An item says whose copy it is by what stands in the public addresses anyway, and leads its partner back to the version
# and the request. The partner's other identifiers, the software and the lineage, which names the source in the internal
# zone, stay inside.
_PROPERTIES: Final = frozenset(
    {"title", "description", "keywords", "license", "providers", "gsd", "created", "updated"}
    | {"datetime", "start_datetime", "end_datetime"}
    | {"platform:version_id", "platform:request_id"}
)
_ASSET: Final = frozenset({"title", "description", "type", "roles", "bands", "gsd"})
_EXTENSIONS: Final = ("proj:", "raster:", "table:", "file:", "eo:", "view:")
_EXTENSION_URLS: Final = ("/projection/", "/raster/", "/table/", "/file/", "/eo/", "/view/")
_SERVICES: Final = ("/tiles/", "/features/")
_ITEM: Final = ("type", "stac_version", "id", "geometry", "bbox")
_COLLECTION: Final = frozenset(
    {"type", "stac_version", "title", "description", "license", "keywords", "providers", "item_assets", "extent"}
)
_MOSAIC: Final = (
    *("mosaicjson", "name", "version", "minzoom", "maxzoom", "quadkey_zoom", "bounds", "center"),
    *("asset_type", "data_type", "colormap", "layers"),
)
_SCHEME: Final = (
    *("type", "name", "target_crs", "grid", "grid_size", "tile_size", "overlap", "raster_type", "bands"),
    *("compression", "features"),
)


@dataclass(frozen=True, slots=True)
class Copied:
    """A blob of the public's zone: of which one it is a copy, and what it is."""

    source: str
    path: str
    size: int
    sha256: str | None  # None when nobody had to know it


def public_mosaic(text: bytes, source_prefix: str, target_prefix: str) -> bytes:
    """Give a MosaicJSON that names the copies of its tiles."""
    mosaic = _object(text, "mosaic")
    squares: Mapping[str, list[str]] = mosaic["tiles"]
    if strange := next(
        (path for paths in squares.values() for path in paths if not path.startswith(source_prefix)), ""
    ):
        raise InvalidInput(f"The mosaic names a tile that is not its own: {strange[:200]!r}.")
    start = len(source_prefix)
    tiles = {square: [target_prefix + path[start:] for path in paths] for square, paths in squares.items()}
    return json_codec.encode({**{name: mosaic[name] for name in _MOSAIC if name in mosaic}, "tiles": tiles})


def public_scheme(text: bytes) -> bytes:
    """Give a tile grid without what the tiles were made of."""
    scheme = _object(text, "tile grid")
    return json_codec.encode({name: scheme[name] for name in _SCHEME if name in scheme})


def public_item(item: Document, collection_id: str, exported: Export, copies: Mapping[str, Copied]) -> Document:
    """Give the item of the copies; what it had beside them is left out."""
    properties = {name: value for name, value in item["properties"].items() if _is_told(name, _PROPERTIES)}
    properties |= {f"platform:{name}": getattr(exported, name) for name in ("asset_id", "version_ordinal", "revision")}
    assets = {key: told for key, each in item["assets"].items() if (told := _asset(each, copies))}
    if item["assets"] and not assets:
        raise InvalidInput(f"The item {item['id']!r} speaks of other files than those that are exported.")
    extensions = item.get("stac_extensions", [])
    return {
        **{name: item[name] for name in _ITEM if name in item},
        "collection": collection_id,
        "stac_extensions": [url for url in extensions if any(part in url for part in _EXTENSION_URLS)],
        "properties": properties,
        "assets": assets,
        "links": [
            _link(link, collection_id)
            for link in item.get("links", [])
            if link["rel"] == "collection" or _leads_to_service(link)
        ],
    }


def public_collection(collection: Document) -> Document:
    """Give the collection of the copies, still with the extent of the originals."""
    told = {name: value for name, value in collection.items() if name in _COLLECTION}
    links = [link for link in collection.get("links", []) if link["rel"] == "license"]
    return {**told, "id": f"{collection['id']}{PUBLIC_COLLECTION}", "links": links, "stac_extensions": []}


def checksum_of(sha256: str) -> str:
    """Write a SHA-256 as items have it: a multihash begins with the function, and the number of bytes."""
    return f"1220{sha256}"


def sha256_of(data: bytes) -> str:
    """Give the SHA-256 of a document."""
    return hashlib.sha256(data).hexdigest()


def _asset(asset: Document, copies: Mapping[str, Copied]) -> Document | None:
    """Give an asset as it is for the public; None when it is a file of which there is no copy."""
    told = {name: value for name, value in asset.items() if _is_told(name, _ASSET)}
    if _leads_to_service(asset):
        return {**told, "href": asset["href"]}
    copy = copies.get(asset["href"])
    if copy is None:
        return None
    told["href"] = copy.path
    if "file:size" in told:
        told["file:size"] = copy.size
    if "file:checksum" in told and copy.sha256 is not None:
        told["file:checksum"] = checksum_of(copy.sha256)
    return told


def _leads_to_service(asset: Document) -> bool:
    """Tell whether an asset or a link leads to a service, which shows the public its copies."""
    return str(asset["href"]).startswith(_SERVICES)


def _link(link: Document, collection_id: str) -> Document:
    if link["rel"] != "collection":
        return link
    return {"rel": "collection", "href": f"/stac/collections/{collection_id}", "type": "application/json"}


def _is_told(name: str, names: frozenset[str]) -> bool:
    return name in names or name.startswith(_EXTENSIONS)


def _object(text: bytes, what: str) -> Document:
    try:
        found = json_codec.decode(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"The {what} cannot be read.")
    return found
