"""Uploads to Azure that nobody finished: blocks that were sent and not committed.

Azure drops them a week after the last one came. To drop them earlier takes a blob in their place, which is removed at
once: for a moment it can be seen, empty, where nothing was written for long.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from graticule.storage.azure_blocks import unfinished_since

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobProperties, ContainerClient

MARK: Final = "graticule_unfinished"  # in the metadata of a blob that is there only to be removed


def delete_unfinished(container: "ContainerClient", before: datetime) -> int:
    """Drop the blocks of uploads that were begun before this time, and tell how many uploads that were."""
    found = container.list_blobs(include=["uncommittedblobs", "metadata"])
    empty = [blob for blob in found if not blob.size]  # what is not committed has no size
    return sum(_is_dropped(container.get_blob_client(blob.name), blob, before) for blob in empty)


def _is_dropped(client: "BlobClient", blob: "BlobProperties", before: datetime) -> bool:
    try:
        if MARK in (blob.metadata or {}):  # whose remover did not come so far
            _delete_as_it_was(client, str(blob.etag))
            return True
        since = unfinished_since(client)
        if since is None or since >= before:
            return False
        made = client.commit_block_list([], match_condition=MatchConditions.IfMissing, metadata={MARK: "true"})
        _delete_as_it_was(client, str(made["etag"]))
    except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):  # someone has written a blob there
        return False
    return True


def _delete_as_it_was(client: "BlobClient", etag: str) -> None:
    client.delete_blob(etag=etag, match_condition=MatchConditions.IfNotModified)
