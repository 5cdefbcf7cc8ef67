"""Uploads to Azure that nobody finished: blocks that were sent and not committed.

Azure drops them a week after the last one came. To drop them earlier takes a blob in their place, which is removed at
once: for a moment it can be seen, empty, where nothing was written for long.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from graticule.storage.azure_blocks import MARK, drop_blocks, unfinished_since
from graticule.storage.azure_conditions import delete_as_it_was

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobProperties, ContainerClient


def delete_unfinished(container: "ContainerClient", before: datetime) -> int:
    """Drop the blocks of uploads that were begun before this time, and tell how many uploads that were."""
    found = container.list_blobs(include=["uncommittedblobs", "metadata"])
    empty = [blob for blob in found if not blob.size]  # what is not committed has no size
    return sum(_is_dropped(container.get_blob_client(blob.name), blob, before) for blob in empty)


def _is_dropped(client: "BlobClient", blob: "BlobProperties", before: datetime) -> bool:
    try:
        if MARK in (blob.metadata or {}):  # whose remover did not come so far
            delete_as_it_was(client, str(blob.etag))
            return True
        since = unfinished_since(client)
        if since is None or since >= before:
            return False
        drop_blocks(client)
    except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):  # someone has written a blob there
        return False
    return True
