"""A storage that is limited to the sources of one partner: what is another's is not there, in folders and in Azure."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from graticule.core.errors import NotFound
from graticule.storage.blocking import BlockingStorage
from graticule.storage.protocol import Storage

OWN, TARGET = "bronze/ab/dem.tif", "bronze/ab/copy.tif"
# Files of others, and names beside them under which there is nothing.
FOREIGN = (
    "bronze/abc/dem.tif",
    "bronze/a/dem.tif",
    "bronze/dem.tif",
    "bronze/ab.tif",
    "bronze/AB/dem.tif",
    "bronze/abc/ab/dem.tif",
    "other/ab/dem.tif",
)
PATTERNS = ("bronze/ab/", "mine")
Deed = Callable[[Storage, str], Awaitable[object]]


async def gather(found: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in found]


async def write(storage: Storage, path: str) -> None:
    async with storage.writing(path) as file:
        file.write_bytes(b"changed")


async def name_of(storage: Storage, path: str) -> object:
    return storage.readable(path)


async def source_of(storage: Storage, path: str) -> object:
    return storage.source(path)


READS: Mapping[str, Deed] = {
    "get": lambda storage, path: storage.get(path),
    "read": lambda storage, path: storage.read(path, 1, 2),
    "read nothing": lambda storage, path: storage.read(path, 0, 0),
    "read behind the end": lambda storage, path: storage.read(path, 10_000),
    "stream": lambda storage, path: gather(storage.stream(path)),
    "stat": lambda storage, path: storage.stat(path),
    "local": lambda storage, path: storage.local(path),
    "copy": lambda storage, path: storage.copy(path, TARGET),
    "move": lambda storage, path: storage.move(path, TARGET),
    "move to itself": lambda storage, path: storage.move(path, path),
}
NAMES: Mapping[str, Deed] = {"readable": name_of, "source": source_of}
WRITES: Mapping[str, Deed] = {
    "put": lambda storage, path: storage.put(path, b"changed"),
    "put in pieces": lambda storage, path: storage.put(path, [b"changed"]),
    "put what is new": lambda storage, path: storage.put(path, b"changed", only_new=True),
    "put in place of another": lambda storage, path: storage.put(path, b"changed", etag="x"),
    "write": write,
    "copy over": lambda storage, path: storage.copy(OWN, path),
    "move over": lambda storage, path: storage.move(OWN, path),
    "delete": lambda storage, path: storage.delete(path),
    "delete below": lambda storage, path: storage.delete_below(path),
}


async def refusal(deed: Deed, storage: Storage, path: str) -> tuple[str, ...]:
    """Return all that a refusal says, without the path that was named."""
    with pytest.raises(NotFound) as refused:
        await deed(storage, path)
    error = refused.value
    return error.code, str(error).replace(path, "PATH"), str(error.hint).replace(path, "PATH")


@pytest.fixture
async def limited(either: Storage) -> Storage:
    for path in (OWN, *FOREIGN):
        await either.put(path, path.encode())
    return either.limited_to(PATTERNS)


@pytest.mark.parametrize("deed", [*READS, *WRITES, *NAMES])
async def test_what_is_anothers_is_refused_whether_or_not_it_is_there(
    limited: Storage, either: Storage, deed: str
) -> None:
    act = {**READS, **WRITES, **NAMES}[deed]
    said = {await refusal(act, limited, f"{path}{end}") for path in FOREIGN for end in ("", ".none")}
    if deed in READS:
        said.add(await refusal(act, limited, "bronze/ab/none.tif"))
        said.add(await refusal(act, limited, "mine/none.tif"))
    assert len(said) == 1
    assert [await either.get(path) for path in (OWN, *FOREIGN)] == [path.encode() for path in (OWN, *FOREIGN)]
    assert not await either.exists(f"{FOREIGN[0]}.none")
    assert not await either.exists(TARGET)


async def test_what_is_anothers_does_not_exist(limited: Storage) -> None:
    assert [await limited.exists(path) for path in (*FOREIGN, "bronze/ab/none.tif")] == [False] * (len(FOREIGN) + 1)
    assert await limited.exists(OWN)


@pytest.mark.parametrize("prefix", ["bronze", "bronze/abc", "bronze/a", "bronze/A", "other", "none", "bronze/none"])
async def test_folders_of_others_are_not_listed(limited: Storage, prefix: str) -> None:
    for listed in (limited.list, limited.folders):
        with pytest.raises(NotFound):
            await gather(listed(prefix))


async def test_its_own_is_listed_read_and_copied(limited: Storage) -> None:
    assert [blob.path for blob in await gather(limited.list("bronze/ab"))] == [OWN]
    await limited.copy(OWN, TARGET)
    await limited.put("mine/a.tif", b"a")
    await limited.put(f"{limited.silver}/a.tif", b"a")
    assert (await limited.local(TARGET)).read_bytes() == await limited.get(OWN) == OWN.encode()


async def test_what_was_copied_here_for_another_is_not_lent(limited: Storage, either: Storage) -> None:
    """Both keep their local copies in one folder."""
    for path in FOREIGN:
        await either.local(path)
        with pytest.raises(NotFound):
            await limited.local(path)


async def test_a_storage_without_sources_reaches_only_our_own_containers(limited: Storage, either: Storage) -> None:
    none = either.limited_to(())
    for path in (OWN, *FOREIGN):
        with pytest.raises(NotFound):
            await none.get(path)
    await none.put(f"{none.silver}/a.tif", b"a")


def test_handlers_are_limited_likewise(either: Storage) -> None:
    with BlockingStorage(either) as storage:
        for path in (OWN, *FOREIGN):
            storage.put(path, path.encode())
        limited = storage.limited_to(PATTERNS)
        assert limited.get(OWN) == OWN.encode()
        for path in FOREIGN:
            for deed in (limited.get, limited.stat, limited.local, limited.readable, limited.source):
                with pytest.raises(NotFound):
                    deed(path)
