"""Blobs that are written block by block: nothing of one is seen before all of its blocks are committed at once.

A block is named by when its upload began, its place and its content. So an upload that was broken off goes on where it
was: blocks that Azure holds already are not sent again. And it can be told how old blocks are that nobody committed.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from graticule.core.errors import Unavailable
from graticule.storage.azure_conditions import as_it_was, delete_as_it_was
from graticule.storage.azure_errors import code_of

if TYPE_CHECKING:
    from azure.storage.blob import BlobBlock, BlobClient

BLOCK_BYTES: Final = 8 * 1024 * 1024
COPIED_BYTES: Final = 64 * 1024 * 1024  # of a block that Azure fetches itself
MOST_BLOCKS: Final = 50_000  # of a blob, as Azure has it
AT_ONCE: Final = 4
MARK: Final = "graticule_unfinished"  # in the metadata of a blob that is there only to be removed
_MOST_TRIES: Final = 5  # while others commit to the same blob
_ALWAYS: Final[Mapping[str, Any]] = {}
_ID: Final = re.compile(r"([0-9a-f]{9})-([0-9a-f]{5})-([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, in its place among the others."""

    index: int
    start: int
    length: int

    def read(self, file: Path) -> bytes:
        """Read it."""
        with file.open("rb") as opened:
            opened.seek(self.start)
            return opened.read(self.length)


def pieces_of(size: int, length: int = BLOCK_BYTES) -> list[Piece]:
    """Divide so many bytes into pieces; they are longer where there would be too many."""
    longest = max(length, -(-size // MOST_BLOCKS))
    starts = range(0, size, longest)
    return [Piece(index, start, min(longest, size - start)) for index, start in enumerate(starts)]


async def upload(
    client: "BlobClient", file: Path, size: int, length: int = BLOCK_BYTES, condition: Mapping[str, Any] = _ALWAYS
) -> None:
    """Make a blob of a file, in place of one that is there, if a condition of Azure's client holds."""
    begun, pieces = _now(), pieces_of(size, length)

    async def send() -> list[str]:
        held = await asyncio.to_thread(_held, client)
        return await _side_by_side(partial(_send, client, file, piece, begun, held) for piece in pieces)

    await _commit(client, send, condition)


async def copy(
    source: str,
    size: int,
    client: "BlobClient",
    check_source: Callable[[], Awaitable[None]],
    length: int = COPIED_BYTES,
) -> None:
    """Let Azure make a blob of what it reads itself at an address, if that is still the same when all is read."""
    begun, origin = _now(), hashlib.sha256(source.encode()).hexdigest()[:32]

    def send_piece(piece: Piece) -> str:
        name = f"{begun}-{piece.index:05x}-{origin}"
        client.stage_block_from_url(name, source, piece.start, piece.length)
        return name

    async def send() -> list[str]:
        names = await _side_by_side(partial(send_piece, piece) for piece in pieces_of(size, length))
        await check_source()
        return names

    await _commit(client, send)


async def _commit(
    client: "BlobClient", send: Callable[[], Awaitable[list[str]]], condition: Mapping[str, Any] = _ALWAYS
) -> None:
    """Send blocks and commit them; where another commit has swept them away meanwhile, send them again."""
    for _ in range(_MOST_TRIES):
        try:
            ids = await send()
            await asyncio.to_thread(client.commit_block_list, _blocks(ids), **condition)
        except HttpResponseError as error:
            if (code := code_of(error)) not in {"InvalidBlockList", "InvalidBlobOrBlock"}:
                raise
            if code == "InvalidBlobOrBlock":
                await asyncio.to_thread(_drop_blocks_of_others, client)
        else:
            return
    raise Unavailable("Others write to the same blob again and again.")


def _blocks(ids: Iterable[str]) -> "list[BlobBlock]":
    from azure.storage.blob import BlobBlock  # noqa: PLC0415 - heavy, and only needed here

    return [BlobBlock(each) for each in ids]


def _drop_blocks_of_others(client: "BlobClient") -> None:
    """Drop blocks that wait under names of another length, beside which Azure takes none of ours.

    A commit drops them: so the blob is committed once more as it is, or an empty one that is removed at once.
    """
    try:
        found = client.get_blob_properties()
        committed, waiting = client.get_block_list("all")
        ids = [str(block.id) for block in committed]
        if not committed and waiting and found.size <= BLOCK_BYTES:  # it was put as a whole
            ids = ["0" * len(str(waiting[0].id))]
            client.stage_block(ids[0], client.download_blob().readall())
        if ids:
            client.commit_block_list(
                _blocks(ids),
                content_settings=found.content_settings,
                metadata=dict(found.metadata or {}),
                **as_it_was(str(found.etag)),
            )
    except ResourceNotFoundError:
        with contextlib.suppress(ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):
            drop_blocks(client)
    except ResourceModifiedError:  # someone has written it, which drops them too
        return


def drop_blocks(client: "BlobClient") -> None:
    """Drop all blocks where there is no blob: for a moment an empty one can be seen there."""
    made = client.commit_block_list([], match_condition=MatchConditions.IfMissing, metadata={MARK: "true"})
    delete_as_it_was(client, str(made["etag"]))


def unfinished_since(client: "BlobClient") -> datetime | None:
    """Tell when the last upload began whose blocks are not committed; None when there are none of ours."""
    found = [_ID.fullmatch(block) for block in _uncommitted(client)]
    times = [int(each[1], 16) for each in found if each]
    return datetime.fromtimestamp(max(times), UTC) if times else None


async def _side_by_side(steps: Iterable[Callable[[], str]]) -> list[str]:
    """Take steps, some at once in threads; after the first error none is begun."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def taken(step: Callable[[], str]) -> str:
        async with limit:
            return await asyncio.to_thread(step)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(taken(step)) for step in steps]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _now() -> str:
    return f"{int(datetime.now(UTC).timestamp()):09x}"


def _send(client: "BlobClient", file: Path, piece: Piece, begun: str, held: dict[str, str]) -> str:
    """Send a piece, unless Azure holds it, and give the name of its block."""
    data = piece.read(file)
    place = f"{piece.index:05x}-{hashlib.sha256(data).hexdigest()[:32]}"
    if place in held:
        return held[place]
    client.stage_block(name := f"{begun}-{place}", data, length=len(data))
    return name


def _held(client: "BlobClient") -> dict[str, str]:
    """Give the blocks that wait to be committed, by place and content."""
    found = _uncommitted(client)
    return {block.partition("-")[2]: block for block in found if _ID.fullmatch(block)}


def _uncommitted(client: "BlobClient") -> Iterator[str]:
    try:
        _, waiting = client.get_block_list("uncommitted")
    except ResourceNotFoundError:
        return
    yield from (str(block.id) for block in waiting)
