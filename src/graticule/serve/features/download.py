"""All features of a layer in one answer: written page by page, so that memory and statements stay small.

Each page begins after the key of the last: no connection is held while a slow client reads, and each statement has its
own limit of time. The table of a revision never changes, so the pages fit together. When one cannot be read, the
connection is closed without an end, and the client knows that something is missing.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from graticule.core.errors import Unavailable
from graticule.repositories.served_tables import BYTES, Bound, Selection, ServedTableRepository
from graticule.serve.features.asked import Conditions, TheConditions, chosen_properties
from graticule.serve.features.formats import Format, dumps
from graticule.serve.features.items import ID, Shown
from graticule.serve.features.limits import LARGE
from graticule.serve.features.links import DOWNLOAD, GEOJSON

PAGE_ROWS: Final = 1_000
PAGE_BYTES: Final = 4 * 1024**2
CHUNK_BYTES: Final = 256 * 1024  # each has to be taken within the time limit of a request
MAX_DOWNLOADS: Final = 4  # at once, of one process; the places are needed by others, too
_BEFORE_ALL: Final = -(2**63)

router = APIRouter(tags=["Features"])


@router.get(DOWNLOAD, response_class=Response, responses={200: {"content": {GEOJSON: {}}}})
async def download(
    request: Request,
    conditions: TheConditions,
    *,
    properties: Annotated[
        str | None, Query(description="Only these properties, with commas between them; none when empty.")
    ] = None,
) -> Response:
    """Return all features, or all that the filters leave, as one GeoJSON file."""
    layer = conditions.layer
    shown = Shown(layer, Format.GEOJSON, chosen_properties(layer, properties), layer.geometry)
    headers = {"Content-Disposition": 'attachment; filename="features.geojson"', **shown.crs.content_crs}
    if getattr(request.state, "is_head", False):
        head = Response(media_type=GEOJSON, headers=headers)
        del head.headers["content-length"]  # nobody knows it yet
        return head
    pages = _Pages(request, shown, conditions)
    first = await pages.read()  # what is wrong with the request is answered as such
    return _Download(_places(request), _stream(pages, first), headers)


def _places(request: Request) -> asyncio.Semaphore:
    state = request.app.state
    if not hasattr(state, "downloads"):
        state.downloads = asyncio.Semaphore(MAX_DOWNLOADS)
    places: asyncio.Semaphore = state.downloads
    return places


class _Download(StreamingResponse):
    """A file that is written while it is sent, at one of a few places."""

    def __init__(self, places: asyncio.Semaphore, content: AsyncIterator[bytes], headers: dict[str, str]) -> None:
        super().__init__(content, media_type=GEOJSON, headers=headers)
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._places.locked():
            told = f"Too many downloads are running (limit: {MAX_DOWNLOADS})."
            raise Unavailable(told, hint="Try again in a few minutes.")
        async with self._places:
            await super().__call__(scope, receive, send)


class _Pages:
    """The rows of a selection in the order of their keys."""

    def __init__(self, request: Request, shown: Shown, conditions: Conditions) -> None:
        self._pool = request.app.state.pool
        self._shown = shown
        self._values = conditions.parameters.values
        after = conditions.parameters.add(_BEFORE_ALL, "bigint")
        conditions.sql.append(f"{shown.layer.key.quoted} > {after}")
        self._selection: Selection = shown.selection(conditions, [shown.layer.key.quoted])

    async def read(self) -> list[Any]:
        """Return the next rows; none at the end."""
        bound = Bound(PAGE_ROWS, read=PAGE_BYTES, written=PAGE_BYTES)
        async with self._pool.acquire() as connection:
            rows = await ServedTableRepository(connection).page(self._selection, bound)
        if rows:
            self._values[-1] = rows[-1][ID]
        return rows

    async def write(self, rows: Sequence[Any]) -> bytes:
        """Return rows as GeoJSON with commas between them; many of them are written in a thread."""
        if rows[-1][BYTES] > LARGE:
            return await asyncio.to_thread(self._written, rows)
        return self._written(rows)

    def _written(self, rows: Sequence[Any]) -> bytes:
        return b",\n".join(dumps(self._shown.bare_feature(row)) for row in rows)


async def _stream(pages: _Pages, rows: Sequence[Any]) -> AsyncIterator[bytes]:
    yield b'{"type":"FeatureCollection","features":[\n'
    separator = b""
    while rows:
        content = separator + await pages.write(rows)
        for start in range(0, len(content), CHUNK_BYTES):
            yield content[start : start + CHUNK_BYTES]
        separator = b",\n"
        rows = await pages.read()
    yield b"\n]}\n"
