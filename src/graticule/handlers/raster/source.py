"""The source of a task: the file that a partner sent, which must stay as it was when it was validated."""

from collections.abc import Iterator
from contextlib import contextmanager

from graticule.core.errors import NotFound
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.storage.blocking import BlockingStorage


@contextmanager
def unchanged(storage: BlockingStorage, source: str, etag: str | None, prepared: str | None = None) -> Iterator[str]:
    """Return the name under which GDAL opens a source; reject it if, before or after the block, it has another etag.

    What was prepared of it is read in its place, and is the job's own.
    """
    if prepared is not None:
        yield storage.readable(prepared)
        return
    try:
        resolved = storage.source(source)
    except NotFound:  # it is not among those that the task may read
        raise Rejected([finding(Code.NOT_FOUND, "The file is not there.")]) from None
    _check(storage, resolved.blob, etag, resolved.shown)
    try:
        yield resolved.opened
    except Exception:
        _check(storage, resolved.blob, etag, resolved.shown)  # it may have failed because of that
        raise
    _check(storage, resolved.blob, etag, resolved.shown)


def _check(storage: BlockingStorage, blob: str | None, etag: str | None, shown: str) -> None:
    if blob is None or etag is None:  # another's address, or a caller who does not mind
        return
    try:
        is_same = storage.stat(blob).etag == etag
    except NotFound:
        raise source_changed("The file was removed while it was processed.", shown) from None
    if not is_same:
        raise source_changed("The file was changed while it was processed.", shown)


def source_changed(what: str, shown: str) -> Rejected:
    """Give the rejection of a file that did not stay as it was."""
    return Rejected([finding(Code.SOURCE_CHANGED, what, shown)])
