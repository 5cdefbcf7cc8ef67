"""`/storage/…`: a blob of a folder, for whoever has an address that was signed for it.

The addresses are made by the storage (`presigned_read`) and read by GDAL, piece by piece. They are no part of the API
that callers are told of: nobody can make one up. Blobs of Azure have addresses there, and none here.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import FileResponse

from graticule.core.errors import NotFound, PermissionDenied
from graticule.storage.local import LocalStorage
from graticule.storage.paths import LONGEST_PATH
from graticule.storage.signing import PREFIX

# What was stored must not act as a page of ours.
HEADERS: Final = {"Cache-Control": "private, max-age=60", "Content-Security-Policy": "sandbox"}

router = APIRouter(prefix=PREFIX, include_in_schema=False)


async def _storage(request: Request) -> LocalStorage:
    storage = request.app.state.storage
    if not isinstance(storage, LocalStorage):
        raise NotFound("This gateway has no files.")
    return storage


@router.api_route("/{path:path}", methods=["GET", "HEAD"])
async def signed_blob(
    path: Annotated[str, Path(max_length=LONGEST_PATH)],
    storage: Annotated[LocalStorage, Depends(_storage)],
    expires: Annotated[str, Query(max_length=20)] = "",
    signature: Annotated[str, Query(max_length=64)] = "",
) -> FileResponse:
    """Give a blob, or a range of it."""
    if not storage.admits(path, expires, signature):
        raise PermissionDenied("The address is not signed, or does not hold any more.", hint="Ask for a new one.")
    found = await storage.stat(path)
    headers = {**HEADERS, "ETag": f'"{found.etag}"'}
    return FileResponse(storage.readable(path), headers=headers, media_type="application/octet-stream")
