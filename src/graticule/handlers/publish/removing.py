"""Removes copies, one by one, and tells what there was."""

from collections.abc import Sequence

from graticule.handlers.publish.inputs import Copy, Version
from graticule.handlers.publish.pacing import Pace, unbroken
from graticule.handlers.stac.coverage import covering
from graticule.repositories.catalogue import CatalogueRepository
from graticule.repositories.publications import PublishedItems
from graticule.storage.protocol import Storage


async def remove_blobs(storage: Storage, paths: Sequence[str], pace: Pace) -> None:
    """Remove blobs; none of them goes after this task has ended."""
    for path in paths:
        pace.go_on()
        await unbroken(storage.delete(path), pace)


def stray_copies(storage: Storage, version: Version, copies: Sequence[Copy]) -> list[str]:
    """Give the copies that lie elsewhere in the public's zone: a workflow of one's own may have put them there."""
    zone = f"{storage.options.external}/"
    dataset = f"{zone}{version.version_prefix.rpartition('/')[0]}/"
    named = {copy.external_blob_path for copy in copies if copy.external_blob_path}
    return sorted(path for path in named if path.startswith(zone) and not path.startswith(dataset))


async def withdraw_items(
    catalogue: CatalogueRepository,
    items: PublishedItems,
    collections: Sequence[str],
    *,
    kept: str | None = None,
    kept_revision: int | None = None,
) -> int:
    """Delete the items of a version but those that are kept, and tell how many; collections tell what is left."""
    found = await items.ids(await items.collections(collections), but=kept_revision)
    return await delete_items(
        catalogue, items, {name: [each for each in ids if each != kept] for name, ids in found.items()}
    )


async def delete_items(catalogue: CatalogueRepository, items: PublishedItems, found: dict[str, list[str]]) -> int:
    """Delete items by their collections, and tell how many; a collection that has no others goes with them."""
    removed = await items.delete(found)
    for name in found:
        await _settle_collection(catalogue, items, name)
    return removed


async def _settle_collection(catalogue: CatalogueRepository, items: PublishedItems, collection_id: str) -> None:
    """Let a collection tell what its items cover; one without items goes."""
    coverage = await catalogue.coverage(collection_id)
    if coverage is None:
        await items.delete_empty(collection_id)
        return
    present = await catalogue.collection(collection_id) or {}
    if (covered := covering(present, coverage)) != present:
        await catalogue.write_collection(covered)
