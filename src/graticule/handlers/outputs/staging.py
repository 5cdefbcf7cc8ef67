"""Where the outputs of a job are: staged below the job's own folder while it runs, promoted as one when it is done.

So a job that fails or is cancelled leaves nothing but its folder, and what readers see is whole.

A promotion is written down in the job's folder before the first file moves, with the size of each. What stands at the
place of a file is set aside in the job's folder until the outputs are catalogued. So at any point it is known which
file is whose: a promotion can go on, or be taken back. All of that is for one at a time, who holds the prefix
(`repositories.promotions`).
"""

import hashlib
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from graticule.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from graticule.storage.paths import scratch_name
from graticule.storage.protocol import Storage

COGS: Final = "cogs"
MOSAICS: Final = "mosaics"
SCHEMES: Final = "schemes"
GEOPARQUET: Final = "geoparquet"
PMTILES: Final = "pmtiles"
_FOLDERS: Final = (COGS, MOSAICS, SCHEMES, GEOPARQUET, PMTILES)  # all that an output's prefix holds
_STAGED: Final = "out"
_ASIDE: Final = "before"
_PROMOTION: Final = "promoted.json"
# How deep files lie at most in the folders that jobs make below their own; what lies elsewhere is not theirs.
_DEPTHS: Final = {_STAGED: 2, _ASIDE: 2, "source": 1, "tiles": 1}
_LONGEST_STEM: Final = 100
_SAFE_PREFIX: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*", re.ASCII)


class Zoned(Protocol):
    """A storage that has a container for what we made."""

    @property
    def silver(self) -> str:
        """The name of that container."""


def scratch_path(storage: Zoned, job_id: str, name: str = "") -> str:
    """Give the path of a file that only this job uses; without a name, that of its folder."""
    return f"{storage.silver}/{scratch_name(job_id)}/{name}"


def staged_path(storage: Zoned, job_id: str, name: str) -> str:
    """Give where an output is until the job is done."""
    return scratch_path(storage, job_id, f"{_STAGED}/{name}")


def final_path(storage: Zoned, blob_prefix: str, name: str) -> str:
    """Give where an output is when the job is done."""
    return f"{storage.silver}/{checked_prefix(blob_prefix)}/{name}"


def checked_prefix(blob_prefix: str) -> str:
    """Give a prefix back, if it leads into a folder of its own."""
    if not _SAFE_PREFIX.fullmatch(blob_prefix):
        raise InvalidInput(
            "The blob_prefix is not a folder.",
            hint="Write names of letters, digits, '.', '_' and '-', with '/' between.",
        )
    return blob_prefix


def prefix_for(source: str) -> str:
    """Name the outputs of a job that was given no prefix, after its source.

    The digest keeps apart `a.tif` and `a.jp2`, and the folders of `a.tif` and `a/b.tif`, one of which would else
    lie in the other.
    """
    container = re.sub(r"[^A-Za-z0-9-]+", "_", source.lstrip("/").partition("/")[0]).strip("_") or "other"
    return f"direct/{container}/{stem_of(source)}-{hashlib.sha256(source.encode()).hexdigest()[:8]}"


def table_prefix_for(source: str, table_name: str) -> str:
    """Name the outputs of a job that makes a table: of one source several can be made, as of its layers."""
    return f"{prefix_for(source)}/{table_name}"


def stem_of(path: str) -> str:
    """Give the name of a file without folders and ending, in characters that are safe in any path."""
    name = path.rsplit("/", 1)[-1]
    stem = name.rsplit(".", 1)[0] if "." in name.lstrip(".") else name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:_LONGEST_STEM] or "data"


class Promotion(BaseModel):
    """What a job puts where: the files with their sizes, and the item that will speak of them."""

    model_config = ConfigDict(frozen=True)

    blob_prefix: str
    collection_id: str
    item_id: str
    href: str | None  # of the blob that stands for all of it, as its item has it; None when there is no blob
    checksum: str | None  # of that blob, too
    beside: dict[str, str | None] = Field(default_factory=dict)  # other blobs that the item describes, likewise
    sizes: dict[str, int]
    at: AwareDatetime

    def is_in(self, item: dict[str, Any] | None) -> bool:
        """Tell whether the item speaks of these files, and of no others."""
        if item is None:
            return False
        described = {each["href"]: each.get("file:checksum") for each in item["assets"].values() if _is_described(each)}
        return described == ({} if self.href is None else {self.href: self.checksum}) | self.beside

    def is_over(self, item: dict[str, Any] | None) -> bool:
        """Tell whether the item was written after these files began to move, whosever they are that it speaks of."""
        return item is not None and datetime.fromisoformat(item["properties"]["updated"]) >= self.at


Confirm = Callable[[], Awaitable[None]]


def _is_described(asset: dict[str, Any]) -> bool:
    """Tell whether an asset of an item is a blob that the item describes; what leads elsewhere has no size."""
    return "file:size" in asset or "file:checksum" in asset


async def promotion_of(storage: Storage, job_id: str) -> Promotion | None:
    """Give the promotion that a job has begun and not finished, or None."""
    path = scratch_path(storage, job_id, _PROMOTION)
    try:
        return Promotion.model_validate_json(await storage.get(path))
    except NotFound:
        return None
    except ValidationError as error:
        raise Unavailable(f"What is written in {path!r} cannot be read.") from error


async def staged_sizes(storage: Storage, job_id: str) -> dict[str, int]:
    """Give the outputs that a job has staged, with their sizes."""
    return await _sizes(storage, scratch_path(storage, job_id, f"{_STAGED}/"))


async def begin(storage: Storage, job_id: str, promotion: Promotion) -> None:
    """Write a promotion down; from now on it is known whose files are where."""
    for name in promotion.sizes:
        _check_name(name)
    try:
        path, data = scratch_path(storage, job_id, _PROMOTION), promotion.model_dump_json().encode()
        await storage.put(path, data, only_new=True)
    except Conflict as error:  # an attempt that is not known to have ended yet: what it moves must stay known
        raise Unavailable("Another attempt is moving the outputs of this job.") from error


async def move_outputs(storage: Storage, job_id: str, promotion: Promotion, confirm: Confirm) -> None:
    """Move the outputs of a promotion that is written down to where they stay, and set aside what stands there."""
    there = await promoted_sizes(storage, promotion.blob_prefix)
    for name in promotion.sizes:
        await confirm()
        final = final_path(storage, promotion.blob_prefix, name)
        if name in there:
            await storage.move(final, _aside_path(storage, job_id, name))
        await storage.move(staged_path(storage, job_id, name), final)


async def stage_again(storage: Storage, job_id: str, promotion: Promotion, confirm: Confirm) -> None:
    """Take a promotion back: what it moved is staged again, and what it set aside is at its place.

    It can be repeated at any time. A file that is staged has not moved, or is back already.
    """
    staged, aside = await staged_sizes(storage, job_id), await _sizes(storage, _aside_path(storage, job_id, ""))
    there = await promoted_sizes(storage, promotion.blob_prefix)
    for name, size in promotion.sizes.items():
        await confirm()
        final = final_path(storage, promotion.blob_prefix, name)
        if name not in staged and there.get(name) == size:
            await storage.move(final, staged_path(storage, job_id, name))
        if name in aside:
            await storage.move(_aside_path(storage, job_id, name), final)
    await storage.delete(scratch_path(storage, job_id, _PROMOTION))


async def finish(storage: Storage, job_id: str, promotion: Promotion, confirm: Confirm) -> None:
    """Remove what a promotion that is catalogued has superseded, and then the job's folder."""
    for name in sorted((await promoted_sizes(storage, promotion.blob_prefix)).keys() - promotion.sizes.keys()):
        await confirm()
        await storage.delete(final_path(storage, promotion.blob_prefix, name))
    await remove_scratch(storage, job_id)


async def remove_scratch(storage: Storage, job_id: str) -> int:
    """Remove what a job has made in its folder, and tell how many files that were.

    A partner's platform may have the same name as the folder; what belongs to it lies deeper, and stays.
    """
    removed = 0
    for folder, depth in _DEPTHS.items():
        removed += await _remove_at(storage, scratch_path(storage, job_id, f"{folder}/"), depth)
    path = scratch_path(storage, job_id, _PROMOTION)
    removed += await storage.exists(path)
    await storage.delete(path)
    return removed


async def promoted_sizes(storage: Storage, blob_prefix: str) -> dict[str, int]:
    """Give the outputs that are below a prefix, with their sizes."""
    found: dict[str, int] = {}
    for folder in _FOLDERS:
        below = await _sizes(storage, final_path(storage, blob_prefix, f"{folder}/"))
        found |= {f"{folder}/{name}": size for name, size in below.items()}
    return found


async def _remove_at(storage: Storage, folder: str, depth: int) -> int:
    found = await _sizes(storage, folder)
    own = [name for name in found if name.count("/") < depth]
    if len(own) == len(found):
        return await storage.delete_below(folder)  # with what was never finished
    for name in own:
        await storage.delete(folder + name)
    return len(own)


def _check_name(name: str) -> None:
    if name.partition("/")[0] not in _FOLDERS or name.count("/") != 1:
        raise InvalidInput(f"The output {name!r} does not lie in one of the folders {', '.join(_FOLDERS)}.")


def _aside_path(storage: Zoned, job_id: str, name: str) -> str:
    return scratch_path(storage, job_id, f"{_ASIDE}/{name}")


async def _sizes(storage: Storage, folder: str) -> dict[str, int]:
    return {blob.path.removeprefix(folder): blob.size async for blob in storage.list(folder)}
