"""What items and collections say when they leave: the catalogue's own addresses are replaced by those of this service.

In the catalogue an asset's address is the path of a file in the storage. Nobody outside can open it, but it tells which
file is meant, so it becomes a name (a URN). What can be opened are the services beside this one: the tiles, to which a
link and a picture lead, and the features: all of them as one file, in pages, and as vector tiles.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin

from graticule.core.models.platform import UrlMode

Document = dict[str, Any]

BLOB_NAME: Final = "urn:graticule:blob:"
TILES: Final = "/tiles/"
FEATURES: Final = "/features/"
SERVICES: Final = (TILES, FEATURES)  # as the catalogue has their addresses, which begin at the service itself
LEAST_DEPTH: Final = 3  # slashes of such an address: of the service, of the asset, of what there is
PAGES: Final = "collections/features/items"
DOWNLOAD: Final = "collections/features/download.geojson"
THUMBNAIL: Final = "thumbnail"
THUMBNAIL_SIZE: Final = 512
_ADDRESSES: Final = ("http://", "https://", "urn:")
_NAMED_ONLY: Final = "The address names the stored file, which is not handed out."


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """The version that an item stands for."""

    asset_id: str
    version_ordinal: int
    url_mode: str

    @property
    def parameters(self) -> dict[str, int]:
        """What an address has to say to lead to this version: nothing where there is but the latest."""
        return {"version": self.version_ordinal} if self.url_mode == UrlMode.ALL_VERSIONS else {}


def served_item(item: Document, version: ItemVersion | None, base: str, *, whole: bool = True) -> Document:
    """Give an item with addresses that lead to this service, whose STAC API is at `base`.

    Of an item that is not whole, because its caller chose some fields, nothing is added.
    """
    paths = [_service_path(link, base) for link in item.get("links", ())]
    served = _with_named_files(_with_services(item, version, base), whole=whole)
    if whole and version is not None and "assets" in served:
        if any(path.startswith(TILES) for path in paths):
            served["assets"] = {**served["assets"], THUMBNAIL: _thumbnail(version, base)}
        if any(path.startswith(FEATURES) for path in paths):
            served["assets"] = {**served["assets"], "features": _download(version, base)}
    return served


def served_collection(collection: Document) -> Document:
    """Give a collection whose files are named, not located."""
    return _with_named_files(collection, whole=True)


def blob_name(href: str) -> str:
    """Name a stored file; what is an address or a name already stays as it is."""
    return href if href.startswith(_ADDRESSES) else BLOB_NAME + quote(href)


def _with_named_files(document: Document, *, whole: bool) -> Document:
    if "assets" not in document:
        return dict(document)
    assets = {key: _named_file(asset, explained=whole) for key, asset in document["assets"].items()}
    return {**document, "assets": assets}


def _named_file(asset: Document, *, explained: bool) -> Document:
    if "href" not in asset or asset["href"].startswith(_ADDRESSES):
        return asset
    explanation = {"description": _NAMED_ONLY} if explained else {}
    return {**explanation, **asset, "href": blob_name(asset["href"])}


def _with_services(item: Document, version: ItemVersion | None, base: str) -> Document:
    """Give an item whose links and assets lead to this service's addresses; what is not served is left out."""
    served = dict(item)
    if "links" in item:
        served["links"] = [link for each in item["links"] if (link := _led(each, version, base)) is not None]
    if "assets" in item:
        assets = {key: _led(asset, version, base, is_whole=True) for key, asset in item["assets"].items()}
        served["assets"] = {key: asset for key, asset in assets.items() if asset is not None}
    return served


def _led(thing: Document, version: ItemVersion | None, base: str, *, is_whole: bool = False) -> Document | None:
    """Give a link or an asset as it is, or with this service's address; None if that is not served.

    What reads an asset does not follow pages: it is led to all features at once.
    """
    path = _service_path(thing, base)
    if not path:
        return thing
    if version is None:
        return None
    _, service, _, what = path.split("/", 3)
    return {**thing, "href": _address(base, service, version, DOWNLOAD if is_whole and what == PAGES else what)}


def _service_path(thing: Document, base: str) -> str:
    """Give the path to which a link or an asset leads, if that is a service's. The library makes links absolute."""
    path = str(thing.get("href")).removeprefix(urljoin(base, "/").rstrip("/")).partition("?")[0]
    return path if path.startswith(SERVICES) and path.count("/") >= LEAST_DEPTH else ""


def _download(version: ItemVersion, base: str) -> Document:
    href = _address(base, "features", version, DOWNLOAD)
    return {"href": href, "type": "application/geo+json", "title": "All features (GeoJSON)", "roles": ["data"]}


def _thumbnail(version: ItemVersion, base: str) -> Document:
    href = _address(base, "tiles", version, "preview.png", max_size=THUMBNAIL_SIZE)
    return {"href": href, "type": "image/png", "title": "Thumbnail", "roles": ["thumbnail"]}


def _address(base: str, service: str, version: ItemVersion, what: str, **parameters: int) -> str:
    """Give an address of a service that stands beside this one."""
    query = urlencode({**version.parameters, **parameters})
    return urljoin(base, f"../{service}/{version.asset_id}/{what}") + (f"?{query}" if query else "")
