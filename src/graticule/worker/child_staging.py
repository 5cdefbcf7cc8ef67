"""The staging table as a handler in a child process sees it: by way of the worker, which has a database."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.errors import ConfigurationError, GraticuleError, InvalidInput, Unavailable
from graticule.handlers.context import NotStaged, TooWideRows, UnfitRows
from graticule.worker.outcome import NotJson, document

PIECE_BYTES: Final = 4 * 1024 * 1024
_RAISED: Final[dict[str, type[GraticuleError]]] = {
    ConfigurationError.code: ConfigurationError,
    InvalidInput.code: UnfitRows,
    TooWideRows.code: TooWideRows,
    Unavailable.code: Unavailable,
}


class Asking(Protocol):
    """The link to the worker."""

    def ask(self, header: dict[str, Any], body: bytes | memoryview = b"") -> tuple[dict[str, Any], bytes]:
        """Send a frame and wait for the answer."""


class RelayedStaging:
    """Loads chunks by way of the worker."""

    def __init__(self, link: Asking) -> None:
        self._link = link

    def loaded(self, index: int) -> dict[str, JsonValue] | None:
        """Give the result of a chunk that the ledger has, or None: an attempt before this one has loaded it."""
        result: dict[str, JsonValue] | None = json_codec.decode(self._ask({"do": "find", "chunk": index}))
        return result

    @contextmanager
    def chunk(self, index: int, columns: Sequence[str]) -> Iterator["RelayedRows"]:
        """Load a chunk: at the end of the block its rows and its place in the ledger are committed as one."""
        self._ask({"do": "begin", "chunk": index, "columns": list(columns)})
        try:
            with ThreadPoolExecutor(1, "staging") as sender:
                rows = RelayedRows(self, sender)
                yield rows
                rows.wait()
            self._ask({"do": "commit"}, _document(rows.result))
        except BaseException:
            with suppress(GraticuleError):
                self._ask({"do": "undo"})
            raise

    def send(self, data: bytes) -> None:
        """Send a stream of rows, in pieces."""
        for begin in range(0, len(data), PIECE_BYTES):
            end = begin + PIECE_BYTES
            self._ask({"do": "write", "is_last": end >= len(data)}, memoryview(data)[begin:end])

    def _ask(self, asked: dict[str, Any], body: bytes | memoryview = b"") -> bytes:
        header, answer = self._link.ask({"kind": "staging", **asked}, body)
        if header.get("error"):
            raise _RAISED.get(header.get("code", ""), NotStaged)(header["error"])
        return answer


class RelayedRows:
    """The rows of a chunk; one stream of them is sent while the handler prepares the next."""

    def __init__(self, staging: RelayedStaging, sender: ThreadPoolExecutor) -> None:
        self.result: dict[str, JsonValue] = {}
        self._staging = staging
        self._sender = sender
        self._sent: Future[None] | None = None

    def write(self, data: bytes) -> None:
        """Write rows: a whole stream of COPY's binary format, from its header to its trailer."""
        self.wait()
        self._sent = self._sender.submit(self._staging.send, data)

    def wait(self) -> None:
        """Wait until all rows are written; what the database says against them is raised here."""
        if self._sent is not None:
            sent, self._sent = self._sent, None
            sent.result()


def _document(result: dict[str, JsonValue]) -> bytes:
    try:
        return document(result)
    except NotJson as error:
        raise NotStaged(f"The result of the chunk is not JSON: {error}.") from None
