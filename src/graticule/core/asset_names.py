"""The identity of an asset, and the names of what is made of it."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graticule.core.ids import AssetId, PlatformId

SHORTEST_PREFIX: Final = 8
LONGEST_SLUG: Final = 40
LONGEST_TABLE_NAME: Final = 63
DIRECT: Final = "direct"  # begins the names of what hand-made jobs write, and no name of an asset
PUBLIC_COLLECTION: Final = "-public"  # after a collection's id: the copies for the public have one of their own
# What makes an id unique: the hash of an item, or of a collection; eight digits in the latter may be a date.
_UNIQUE: Final = re.compile(r"(-[0-9a-f]{8,32}-v[0-9]+(-r[0-9]+)?|-(?=[0-9]*[a-f])[0-9a-f]{8,32})?(-public)?$")
RefValue = str | int


def asset_id_of(platform_id: str, identity_refs: Mapping[str, RefValue]) -> AssetId:
    """Give the id of a partner's dataset; the version is never part of it."""
    identity = json.dumps(dict(identity_refs), sort_keys=True)
    return AssetId(hashlib.sha256(f"{platform_id}|{identity}".encode()).hexdigest()[:32])


@dataclass(frozen=True, slots=True)
class OutputNames:
    """What the outputs of one revision are called. No two assets share a name: `short_id` belongs to one alone."""

    table_name: str
    blob_prefix: str
    stac_item_id: str
    stac_collection_id: str


def output_names(
    platform_id: PlatformId,
    short_id: str,
    refs: Mapping[str, RefValue],
    *,
    label: str,
    ordinal: int,
    revision: int,
) -> OutputNames:
    """Name the outputs of a revision, readably and uniquely; the order of the refs does not matter."""
    identifiers = [refs[name] for name in sorted(refs)]
    dataset = _slug(*identifiers) or "data"
    unique = f"_{short_id}_v{ordinal}" + (f"_r{revision}" if revision > 1 else "")  # stands beside the one before
    readable = _slug(*identifiers, label) or "data"
    table = readable if readable[0].isalpha() and not readable.startswith(DIRECT) else f"t_{readable}"
    return OutputNames(
        table_name=f"{_cut(table, LONGEST_TABLE_NAME - len(unique))}{unique}",
        blob_prefix=f"{platform_id}/{dataset}/{short_id}/v{ordinal}/r{revision}",
        stac_item_id=f"{readable}{unique}".replace("_", "-"),
        stac_collection_id=f"{platform_id}_{dataset}_{short_id}".replace("_", "-"),
    )


def title_of_id(catalogue_id: str) -> str:
    """Name what has this id in the catalogue by the words of the id, which anyone may see who sees the id."""
    return _UNIQUE.sub("", catalogue_id).replace("-", " ").strip() or catalogue_id


def _slug(*parts: object) -> str:
    """Keep of the parts what every file system, table and address can carry."""
    plain = unicodedata.normalize("NFKD", "_".join(map(str, parts))).encode("ascii", "ignore").decode().lower()
    return _cut(re.sub(r"[^a-z0-9]+", "_", plain).strip("_"), LONGEST_SLUG)


def _cut(slug: str, length: int) -> str:
    return slug[: min(length, LONGEST_SLUG)].rstrip("_")
