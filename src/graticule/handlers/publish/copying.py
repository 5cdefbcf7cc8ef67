"""Copies blobs to the public's zone: a few at a time, whole or not at all, and none twice."""

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from pydantic import JsonValue

from graticule.core.cancellation import end_tasks
from graticule.core.errors import GraticuleError, Unavailable
from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.staging import MOSAICS, SCHEMES
from graticule.handlers.publish.documents import Copied, public_mosaic, public_scheme, sha256_of
from graticule.handlers.publish.pacing import Pace, unbroken
from graticule.storage.protocol import BlobInfo, Storage

AT_ONCE: Final = 4
SAVE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Zones:
    """Where the blobs of a revision are, and where their copies belong; both end with a slash."""

    source: str
    target: str

    @classmethod
    def of(cls, storage: Storage, prefix: str) -> "Zones":
        """Give the zones of a storage."""
        return cls(f"{storage.options.silver}/{prefix}/", f"{storage.options.external}/{prefix}/")

    def copy_of(self, path: str) -> str:
        """Give where the copy of a blob belongs."""
        return self.target + path.removeprefix(self.source)

    def is_document(self, path: str) -> bool:
        """Tell whether a blob speaks of the internal zone, so that its copy has to be another."""
        folder, _, name = path.removeprefix(self.source).rpartition("/")
        return (folder, name.rpartition(".")[2]) in {(MOSAICS, "json"), (SCHEMES, "geojson")}


class Notes:
    """What the attempts of a task know of each other, in parts: a checkpoint as a whole takes the place of the last."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._checkpoint = ctx.checkpoint
        self._data: dict[str, JsonValue] | None = None

    async def get(self, part: str) -> dict[str, Any]:
        """Give what was noted last."""
        if self._data is None:
            found = await self._checkpoint.load()
            self._data = dict(found.data) if found else {}
        noted = self._data.get(part)
        return dict(noted) if isinstance(noted, dict) else {}

    async def put(self, part: str, noted: Mapping[str, JsonValue]) -> None:
        """Note something, in place of what was noted."""
        await self.get(part)
        self._data = {**(self._data or {}), part: dict(noted)}
        await self._checkpoint.save(part, self._data)


class Copying:
    """The copying of one revision's blobs."""

    def __init__(
        self, ctx: HandlerContext, zones: Zones, pace: Pace, notes: Notes, checksums: Mapping[str, str]
    ) -> None:
        """`checksums` are the SHA-256 that some of the blobs must have, by their paths."""
        self._ctx, self._storage, self._zones, self._pace = ctx, ctx.storage, zones, pace
        self._checksums = checksums
        self._notes = notes
        self._copies: dict[str, Copied] = {}
        self._etags: dict[str, str] = {}  # of the copies, by the paths of their originals
        self._done_bytes = self._total_bytes = 0

    async def run(self, blobs: Sequence[BlobInfo]) -> dict[str, Copied]:
        """Copy all, and give the copies by the paths of their originals; documents come last."""
        self._total_bytes = sum(blob.size for blob in blobs)
        ordered = sorted(blobs, key=lambda blob: self._zones.is_document(blob.path))
        there = {blob.path: blob async for blob in self._storage.list(self._zones.target)}
        known = await self._known(ordered, there)
        left = deque(blob for blob in ordered if blob.path not in known)
        self._done_bytes = self._total_bytes - sum(blob.size for blob in left)
        self._copies |= known
        self._told("blobs")
        saver = asyncio.create_task(self._note_often(ordered))
        try:
            await self._work_off(left, there)
        except Exception:
            with contextlib.suppress(GraticuleError):  # a note less costs a copy more
                await self._note(ordered)
            raise
        finally:
            await end_tasks(saver)
        return self._copies

    async def check(self, blobs: Sequence[BlobInfo]) -> None:
        """See that copies that someone else has made are there, and right."""
        self._total_bytes = sum(blob.size for blob in blobs)
        there = {blob.path: blob async for blob in self._storage.list(self._zones.target)}
        for blob in blobs:
            self._pace.go_on()
            copy = there.get(self._zones.copy_of(blob.path))
            if copy is None or copy.size != blob.size:
                raise Unavailable(f"The copy of {blob.path!r} is {'not there' if copy is None else 'not whole'}.")
            if blob.path in self._checksums and await self._digest(copy.path) != self._checksums[blob.path]:
                raise Unavailable(f"The copy of {blob.path!r} is another than the catalogue says.")
            self._copies[blob.path] = Copied(blob.path, copy.path, copy.size, self._checksums.get(blob.path))

    async def _work_off(self, left: deque[BlobInfo], there: Mapping[str, BlobInfo]) -> None:
        async def work() -> None:
            while left:
                self._pace.go_on()
                blob = left.popleft()
                await self._settled(blob, there.get(self._zones.copy_of(blob.path)))

        ended = await unbroken(
            asyncio.gather(*(self._stopping(work()) for _ in range(AT_ONCE)), return_exceptions=True), self._pace
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _stopping(self, work: Any) -> None:
        """Let all others stop when one fails."""
        try:
            await work
        except Exception as error:
            self._pace.stop(error)
            raise

    async def _settled(self, blob: BlobInfo, there: BlobInfo | None) -> None:
        """Let the copy be there, and be right."""
        if self._zones.is_document(blob.path):
            copied = await self._documented(blob)
        else:
            copied = await self._present(blob, there) or await self._copied(blob)
        await self._check_size(copied)
        self._copies[blob.path] = copied

    async def _check_size(self, copied: Copied) -> None:
        found = await self._storage.stat(copied.path)
        if found.size != copied.size:
            raise Unavailable(f"The copy {copied.path!r} has {found.size} bytes, not {copied.size}.")
        self._etags[copied.source] = found.etag

    async def _present(self, blob: BlobInfo, there: BlobInfo | None) -> Copied | None:
        """Give the copy that is there, if it is known by its checksum."""
        wanted = self._checksums.get(blob.path)
        if wanted is None or there is None or there.size != blob.size:
            return None
        before = self._done_bytes
        if await self._digest(there.path) == wanted:
            return Copied(blob.path, there.path, there.size, wanted)
        self._done_bytes = before
        return None

    async def _copied(self, blob: BlobInfo) -> Copied:
        target, digest = self._zones.copy_of(blob.path), hashlib.sha256()

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in self._counted(blob.path):
                await asyncio.to_thread(digest.update, piece)
                yield piece
            _check(blob.path, digest.hexdigest(), self._checksums)  # before it is seen

        await self._storage.put(target, pieces())
        return Copied(blob.path, target, blob.size, digest.hexdigest())

    async def _documented(self, blob: BlobInfo) -> Copied:
        """Write the public's form of a document."""
        text = await self._storage.get(blob.path)
        _check(blob.path, sha256_of(text), self._checksums)
        told = await asyncio.to_thread(self._public, blob.path, text)
        target = self._zones.copy_of(blob.path)
        await self._storage.put(target, told)
        self._done_bytes += blob.size
        self._told("blobs")
        return Copied(blob.path, target, len(told), sha256_of(told))

    def _public(self, path: str, text: bytes) -> bytes:
        if path.startswith(f"{self._zones.source}{MOSAICS}/"):
            return public_mosaic(text, self._zones.source, self._zones.target)
        return public_scheme(text)

    async def _digest(self, path: str) -> str:
        digest = hashlib.sha256()
        async for piece in self._counted(path):
            await asyncio.to_thread(digest.update, piece)
        return digest.hexdigest()

    async def _counted(self, path: str) -> AsyncIterator[bytes]:
        async for piece in self._storage.stream(path):
            self._pace.go_on()
            yield piece
            self._done_bytes += len(piece)
            self._told("blobs")

    def _told(self, what: str) -> None:
        self._ctx.progress(self._done_bytes, self._total_bytes, what)

    async def _known(self, ordered: Sequence[BlobInfo], there: Mapping[str, BlobInfo]) -> dict[str, Copied]:
        """Give the copies that an earlier attempt has noted, if neither they nor their originals have changed since."""
        noted = await self._notes.get("copied")
        first = ordered[: int(noted.get("count", 0))]
        targets = [self._zones.copy_of(blob.path) for blob in first]
        etags = [there[path].etag if path in there else "" for path in targets]
        if not first or _marked(first, etags) != noted.get("mark"):
            return {}
        self._etags |= {blob.path: etag for blob, etag in zip(first, etags, strict=True)}
        known = [Copied(blob.path, path, blob.size, None) for blob, path in zip(first, targets, strict=True)]
        return {copy.source: copy for copy in known}

    async def _note_often(self, ordered: Sequence[BlobInfo]) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            try:
                await self._note(ordered)
            except GraticuleError as error:  # the task is another worker's
                self._pace.stop(error)
                return

    async def _note(self, ordered: Sequence[BlobInfo]) -> None:
        """Note how many of the first blobs are copied; a document is quickly written again."""
        first = [*takewhile(lambda blob: blob.path in self._copies and not self._zones.is_document(blob.path), ordered)]
        if first:
            etags = [self._etags[blob.path] for blob in first]
            await self._notes.put("copied", {"count": len(first), "mark": _marked(first, etags)})


def _check(path: str, digest: str, checksums: Mapping[str, str]) -> None:
    if checksums.get(path, digest) != digest:
        raise Unavailable(f"The blob {path!r} is not what the catalogue says: its SHA-256 is {digest}.")


def _marked(blobs: Sequence[BlobInfo], etags: Sequence[str]) -> str:
    """Mark blobs and their copies, so that it shows when one of them is another."""
    return sha256_of(
        "\n".join(f"{blob.path} {blob.etag} {etag}" for blob, etag in zip(blobs, etags, strict=True)).encode()
    )
