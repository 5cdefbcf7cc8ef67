"""The storage for code that does not await: each of its methods, made from the one that is awaited."""

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from graticule.storage.options import StorageOptions
from graticule.storage.paths import Source
from graticule.storage.protocol import Storage

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Storage, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["BlockingStorage", P], T]:
    """Make a plain call of a coroutine."""

    @wraps(method)
    def call(self: "BlockingStorage", /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._storage, method.__name__)(*args, **kwargs)
        return self._run(work)

    return call


def _iterated(
    method: Callable[Concatenate[Storage, P], AsyncIterator[T]],
) -> Callable[Concatenate["BlockingStorage", P], Generator[T, None, None]]:
    """Make a plain iterator of an awaited one; left before its end, it is closed at the latest when it is let go."""

    @wraps(method)
    def call(self: "BlockingStorage", /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        found = getattr(self._storage, method.__name__)(*args, **kwargs)
        try:
            while True:
                yield self._run(_whole(anext(found)))
        except StopAsyncIteration:
            return
        finally:
            self._run(_whole(found.aclose()))

    return call


def _entered(
    method: Callable[Concatenate[Storage, P], AbstractAsyncContextManager[T]],
) -> Callable[Concatenate["BlockingStorage", P], AbstractContextManager[T]]:
    """Make a plain block of an awaited one."""

    @wraps(method)
    @contextmanager
    def call(self: "BlockingStorage", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        block = getattr(self._storage, method.__name__)(*args, **kwargs)
        entered: T = self._run(block.__aenter__())
        try:
            yield entered
        except BaseException as error:
            if not self._run(block.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._run(block.__aexit__(None, None, None))

    return call


async def _whole(step: Awaitable[T]) -> T:
    return await step


class BlockingStorage:
    """A storage whose methods are plain calls, from any thread but the one of its own loop."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="storage", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def options(self) -> StorageOptions:
        """Tell whose containers are whose, and what may be read besides."""
        return self._storage.options

    @property
    def silver(self) -> str:
        """Name the container of what we make."""
        return self._storage.silver

    def limited_to(self, sources: Sequence[str] | None) -> Self:
        """Return the same storage for a task that may reach these sources and our own containers; None: everything.

        All else is `NotFound`, whether or not it is there.
        """
        limited = copy.copy(self)  # with the loop of this one
        limited._storage = self._storage.limited_to(sources)  # noqa: SLF001 - it is one of us
        return limited

    def source(self, name: str) -> Source:
        """Resolve a source in any of its forms: a blob (see `readable`), an address, or another file."""
        return self._storage.source(name)

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens the blob for range reads, for an hour or what `read_for` has said.

        It may hold a signature: never show it. To make that may take a request: never ask in the loop's own thread.
        """
        return self._storage.readable(path)

    def read_for(self, seconds: int) -> None:
        """Let names that `readable` gives from now on hold for so long, and no less than an hour."""
        self._storage.read_for(seconds)

    put = _awaited(Storage.put)
    get = _awaited(Storage.get)
    read = _awaited(Storage.read)
    stream = _iterated(Storage.stream)
    list = _iterated(Storage.list)
    folders = _iterated(Storage.folders)
    copy = _awaited(Storage.copy)
    move = _awaited(Storage.move)
    delete = _awaited(Storage.delete)
    delete_below = _awaited(Storage.delete_below)
    delete_unfinished = _awaited(Storage.delete_unfinished)
    exists = _awaited(Storage.exists)
    stat = _awaited(Storage.stat)
    presigned_read = _awaited(Storage.presigned_read)
    local = _awaited(Storage.local)
    writing = _entered(Storage.writing)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
