"""Where a path leads: the one place in which names of blobs and of sources are read, and refused.

A name that a caller made up never reaches GDAL as it is. A blob is opened by the absolute name of its file, a file
outside of the storage by its absolute name without links, an address as `/vsicurl/https://…`: what GDAL would read as
options, as a dataset inside of a file or as another file system cannot stand at the beginning of any of these.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote

from graticule.core.errors import InvalidInput, NotFound
from graticule.storage.options import HOST, StorageOptions

LONGEST_PATH: Final = 1024
LONGEST_NAME_BYTES: Final = 255  # of a file, as file systems have it
LONGEST_SUFFIX: Final = 16
LONGEST_ADDRESS: Final = 4096
RANDOM_ID_LENGTH: Final = 32  # of the id of a job; one that follows from its inputs is a SHA-256
AZURE_HOST: Final = "blob.core.windows.net"

CURL: Final = "/vsicurl/"
AZURE: Final = "/vsiaz/"
FORMS: Final = "Write container/path, or an https:// address or an absolute path that this installation allows."

_CONTAINER: Final = re.compile(r"[A-Za-z0-9$][A-Za-z0-9_.-]{0,62}")
# Control characters, what breaks lines, halves of characters, and the backslash, which some read as a slash.
_NEVER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\]")
_PARTIAL: Final = re.compile(r"\.[0-9a-f]{32}\.partial")  # what is being written; see `partial_name`
# An authority of nothing but a host and a port: no other reader can find another host in it.
_ADDRESS: Final = re.compile(
    rf"https://(?P<host>{HOST})(?::(?P<port>[0-9]{{1,5}}))?(?P<path>/[^?]*)(?:\?.*)?", re.ASCII | re.IGNORECASE
)
_NO_ADDRESS: Final = re.compile(r"[^!-~]|[\"#<>\[\\\]^`{|}]")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a source is: `shown` may stand in logs, events and errors, `opened` is for GDAL's eyes only."""

    shown: str
    opened: str = field(repr=False)  # it may hold a signature
    blob: str | None = None  # its path in the storage, when it lies there


class Sources(Protocol):
    """What resolves sources: the storage, in both of its forms."""

    @property
    def options(self) -> StorageOptions:
        """Tell whose containers are whose."""

    def source(self, name: str) -> Source:
        """Resolve a source."""


def blob_parts(path: str) -> tuple[str, ...]:
    """Take the path of a blob apart: its container, and the names that lead to it."""
    parts = prefix_parts(path)
    if len(parts) < 2 or path.endswith("/"):
        raise _no_blob(path, "Write container/path: a blob lies in a container.")
    return parts


def prefix_parts(prefix: str) -> tuple[str, ...]:
    """Take a container, or a path below one, apart; a slash at its end means nothing."""
    parts = prefix.removesuffix("/").split("/")
    if len(prefix) > LONGEST_PATH or _NEVER.search(prefix):
        raise _no_blob(prefix, f"It has at most {LONGEST_PATH} characters, no control characters and no backslash.")
    if not _CONTAINER.fullmatch(parts[0]):
        raise _no_blob(prefix, "It begins with the name of a container: letters, digits, '-', '_' and '.'.")
    if not all(map(is_name, parts[1:])):
        raise _no_blob(prefix, "It has no empty parts, no '.' and '..', and no names of more than 255 bytes.")
    return tuple(parts)


def scratch_name(job_id: str) -> str:
    """Return the name of the folder of the silver container in which a job works, and nobody else.

    Of a random id these are the last characters: the first tell the time, and jobs of the same minute share them.
    An id that follows from a job's inputs is kept whole: whoever chooses the inputs could make its end that of
    another job's id.
    """
    return job_id if len(job_id) > RANDOM_ID_LENGTH else job_id[-8:]


def is_name(name: str) -> bool:
    """Tell whether this can be one part of a blob's path."""
    return not (
        name in {"", ".", ".."}
        or _NEVER.search(name)
        or _PARTIAL.match(name)
        or len(name.encode()) > LONGEST_NAME_BYTES
    )


def is_partial(name: str) -> bool:
    """Tell whether a file is one that is being written, or was when its writer ended."""
    return _PARTIAL.match(name) is not None


def partial_name(key: str, name: str) -> str:
    """Give the name under which a file is written; some writers choose the format by its suffix."""
    suffix = Path(name).suffix
    return f".{key}.partial{suffix if len(suffix) <= LONGEST_SUFFIX else ''}"


def below(root: Path, parts: tuple[str, ...]) -> Path:
    """Give the file of a blob, without links; one that a link leads out of its container is refused."""
    real = os.path.realpath(root)
    found, container = Path(os.path.realpath(Path(real, *parts))), Path(real, parts[0])
    if not found.is_relative_to(container) or (found == container) != (len(parts) == 1):
        raise InvalidInput("The path does not lead into the storage, but through a link out of its container.")
    return found


def check_admitted(path: str, options: StorageOptions) -> None:
    """Refuse a blob that the task at hand may not reach, as if it were not there."""
    if not options.admits(path):
        raise missing_blob(path)


def missing_blob(path: str) -> NotFound:
    """Return the error for a blob that is not there, or not for this task."""
    return NotFound(f"There is no file {path!r} in the storage.")


def resolve(name: str, options: StorageOptions, of_blob: Callable[[str], Source]) -> Source:
    """Resolve a source in any of its forms; how a blob is opened is for the storage to say."""
    if options.sources is not None and name.startswith(("https://", "/")):
        raise NotFound("There is no such file in the storage.")  # a partner's sources are blobs
    if name.startswith(("https://", CURL)):
        return _at_address(name.removeprefix(CURL), options)
    if name.startswith(AZURE):
        return _in_azure(name, options)
    return _in_folder(name, options) if name.startswith("/") else of_blob(name)


def resolve_source(storage: Sources, container_name: str | None, blob_name: str) -> Source:
    """Resolve what a partner or an operator names as the source of a job, which is never what we made ourselves."""
    if container_name:
        check_partner_blob(container_name, blob_name, storage.options)
        return storage.source(f"{container_name}/{blob_name}")
    found = storage.source(blob_name)
    _check_container((found.blob or found.shown).partition("/")[0], storage.options)
    return found


def check_partner_blob(container_name: str, blob_name: str, options: StorageOptions) -> None:
    """Refuse a blob that cannot be a partner's: no path of a blob, or one in a container of ours."""
    blob_parts(f"{container_name}/{blob_name}")
    _check_container(container_name, options)


def _check_container(container: str, options: StorageOptions) -> None:
    if options.is_ours(container):
        raise InvalidInput(
            f"container_name: {container!r} holds what this platform makes, and no sources.",
            hint="Put the file into a container of your own, such as bronze.",
        )


def _at_address(address: str, options: StorageOptions) -> Source:
    found = _ADDRESS.fullmatch(address)
    if found is None or len(address) > LONGEST_ADDRESS or _NO_ADDRESS.search(address):
        raise InvalidInput(
            "The source is not an address that can be read.",
            hint="Write https://host/path, without a login and a fragment, special characters percent-encoded.",
        )
    if any(part in {".", ".."} for part in unquote(found["path"]).split("/")):
        raise InvalidInput("The address of the source has '.' or '..' in its path.", hint="Write where it really is.")
    host = found["host"].lower()
    place = host if found["port"] in {None, "443"} else f"{host}:{found['port']}"
    _check_host(place, options)
    return Source(f"https://{place}{found['path']}", f"{CURL}{address}")


def _in_azure(name: str, options: StorageOptions) -> Source:
    blob = name.removeprefix(AZURE)
    if "?" in "/".join(blob_parts(blob)):
        raise _no_blob(blob, "GDAL would read what follows the '?' as something else.")
    if options.azure_account is None:
        raise InvalidInput("This installation reads no blobs of Azure.", hint=FORMS)
    _check_host(f"{options.azure_account}.{AZURE_HOST}", options)
    return Source(blob, name)


def _check_host(place: str, options: StorageOptions) -> None:
    if place not in options.hosts:
        raise InvalidInput(
            f"The host {place!r} is not one that sources may be read from.",
            hint="An operator can allow it: GRATICULE_STORAGE_ALLOW_HOSTS.",
        )


def _in_folder(name: str, options: StorageOptions) -> Source:
    parts = name.split("/")[1:]
    if parts[0].casefold().startswith("vsi"):
        raise InvalidInput("Of GDAL's own file systems only /vsicurl/ and /vsiaz/ are read.", hint=FORMS)
    if len(name) > LONGEST_PATH or not all(map(is_name, parts)):
        raise InvalidInput("The source is not an absolute path that can be read.", hint="Write where it really is.")
    file = Path(os.path.realpath(name))
    if not any(_lies_below(file, root) for root in options.roots):
        raise InvalidInput(
            "The source does not lie in a folder that sources may be read from.",
            hint="An operator can allow it: GRATICULE_STORAGE_ALLOW_ROOTS. A link counts as what it leads to.",
        )
    return Source(name, str(file))


def _lies_below(file: Path, root: Path) -> bool:
    real = Path(os.path.realpath(root))
    return file != real and file.is_relative_to(real)


def _no_blob(path: str, hint: str) -> InvalidInput:
    """Refuse a path; what looks like an address may hold a secret, and is not repeated."""
    told = "The path" if ":" in path or "?" in path else f"The path {path[:LONGEST_PATH]!r}"
    return InvalidInput(f"{told} does not lead into the storage.", hint=hint)
