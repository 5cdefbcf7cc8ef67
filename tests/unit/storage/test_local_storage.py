"""Files below one folder: whole or not at all, and never outside of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graticule.core.errors import InvalidInput, NotFound, Unavailable
from graticule.storage.local import LocalStorage

OUTSIDE = ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a/../..", "./", "a\0b", "\0"]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "not" / "there" / "yet")


async def test_what_is_put_can_be_read_and_deleted(storage: LocalStorage) -> None:
    data = bytes(range(256)) * 1000
    await storage.put("a/b/c.json", data)
    assert await storage.get("a/b/c.json") == data
    assert await storage.exists("a/b/c.json")
    await storage.delete("a/b/c.json")
    assert not await storage.exists("a/b/c.json")
    await storage.delete("a/b/c.json")


async def test_a_second_put_replaces_the_first(storage: LocalStorage) -> None:
    await storage.put("x", b"long before")
    await storage.put("x", b"new")
    assert await storage.get("x") == b"new"


@pytest.mark.parametrize("path", ["nowhere", "a/nowhere", "folder", "folder/file/below"])
async def test_what_is_not_there_is_not_found(storage: LocalStorage, path: str) -> None:
    await storage.put("folder/file", b"")
    with pytest.raises(NotFound, match="There is no file"):
        await storage.get(path)
    assert not await storage.exists(path)


@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_path_leads_out_of_the_root(storage: LocalStorage, path: str) -> None:
    with pytest.raises(InvalidInput, match="does not lead into the storage"):
        await storage.put(path, b"")
    for action in (storage.get, storage.exists, storage.delete):
        with pytest.raises(InvalidInput, match="does not lead into the storage"):
            await action(path)


async def test_no_link_leads_out_of_the_root(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    root.mkdir()
    secret.mkdir()
    (secret / "key").write_bytes(b"secret")
    (root / "folder").symlink_to(secret)
    (root / "file").symlink_to(secret / "key")
    storage = LocalStorage(root)
    for path in ("folder/key", "file"):
        with pytest.raises(InvalidInput):
            await storage.get(path)
        with pytest.raises(InvalidInput):
            await storage.put(path, b"changed")
    assert (secret / "key").read_bytes() == b"secret"


@pytest.mark.parametrize("path", ["a..b", "..a/b..", "a/./b", "a//b", "a/../b", "Zürich 地図"])
async def test_odd_names_are_names(storage: LocalStorage, path: str) -> None:
    await storage.put(path, b"x")
    assert await storage.get(path) == b"x"


async def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.put("folder/x", b"before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("graticule.storage.local.os.fsync", full)
        with pytest.raises(Unavailable, match="No space"):
            await storage.put("folder/x", b"half")
    assert await storage.get("folder/x") == b"before"
    assert _files(tmp_path) == ["x"]


def _files(folder: Path) -> list[str]:
    return [file.name for file in folder.rglob("*") if file.is_file()]


async def test_a_reader_sees_one_of_the_writes_as_a_whole(storage: LocalStorage) -> None:
    versions = [bytes([number]) * 200_000 for number in range(8)]
    await storage.put("x", versions[0])

    async def read() -> list[bytes]:
        return [await storage.get("x") for _ in range(20)]

    writes: list[Any] = [storage.put("x", data) for data in versions]
    found, *_ = await asyncio.gather(read(), *writes)
    assert set(found) <= set(versions)
