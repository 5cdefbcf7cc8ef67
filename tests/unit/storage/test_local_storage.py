"""Blobs as files below one folder: whole or not at all, and never outside of it."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graticule.core.errors import ConfigurationError, InvalidInput, NotFound, Unavailable
from graticule.storage.local import LocalStorage
from graticule.storage.protocol import Storage

OUTSIDE = [
    *("", ".", "..", "../x", "a/../../x", "/etc/passwd", "a/../..", "./", "a/b\0c", "\0", "container", "container/"),
    *("a//b", "a/./b", "a/../b", "a/b/", "a/b\\c", "a/b\nc", "a/\x85", "a/\ud800", "a b/c", "-a/b", "a/" + "b" * 256),
    *("a/" + "ä" * 128, "a/" + "b/" * 600 + "c", "a/." + "0" * 32 + ".partial", "https://host/a?sig=secret"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


def files(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def folders(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_dir())


async def paths(storage: LocalStorage, prefix: str) -> list[str]:
    return [blob.path async for blob in storage.list(prefix)]


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


def test_it_is_a_storage(storage: LocalStorage) -> None:
    kept: Storage = storage
    assert kept.silver == "silver"


async def test_what_is_put_can_be_read_and_deleted(storage: LocalStorage, root: Path) -> None:
    data = bytes(range(256)) * 1000
    await storage.put("a/b/c.json", data)
    assert await storage.get("a/b/c.json") == data
    assert await storage.exists("a/b/c.json")
    await storage.delete("a/b/c.json")
    assert not await storage.exists("a/b/c.json")
    await storage.delete("a/b/c.json")
    assert folders(root) == ["a"], "empty folders go, the container stays"


@pytest.mark.parametrize("given", [pieces(b"ab", b"", b"c" * 2_000_000), iter([b"ab", b"c" * 2_000_000])])
async def test_a_blob_can_be_put_piece_by_piece(storage: LocalStorage, given: Any) -> None:
    await storage.put("a/x", given)
    assert await storage.get("a/x") == b"ab" + b"c" * 2_000_000


async def test_a_stream_that_breaks_off_leaves_what_was_there(storage: LocalStorage, root: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    await storage.put("a/x", b"before")
    with pytest.raises(ConnectionError):
        await storage.put("a/x", broken())
    assert await storage.get("a/x") == b"before"
    assert files(root) == ["a/x"]


async def test_a_second_put_replaces_the_first(storage: LocalStorage) -> None:
    await storage.put("a/x", b"long before")
    await storage.put("a/x", b"new")
    assert await storage.get("a/x") == b"new"


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [(0, None, b"0123456789"), (3, 4, b"3456"), (8, 9, b"89"), (10, 5, b""), (99, None, b""), (4, 0, b"")],
)
async def test_a_part_can_be_read(storage: LocalStorage, start: int, length: int | None, part: bytes) -> None:
    await storage.put("a/x", b"0123456789")
    assert await storage.read("a/x", start, length) == part


async def test_a_part_has_no_negative_bounds(storage: LocalStorage) -> None:
    await storage.put("a/x", b"0123456789")
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(InvalidInput):
            await storage.read("a/x", start, length)


async def test_a_stream_begins_anywhere_and_comes_in_pieces(storage: LocalStorage) -> None:
    data = os.urandom(2_500_000)
    await storage.put("a/x", data)
    found = [piece async for piece in storage.stream("a/x", 300_000)]
    assert b"".join(found) == data[300_000:]
    assert [len(piece) for piece in found] == [1024 * 1024, 1024 * 1024, 2_200_000 - 2 * 1024 * 1024]


async def test_what_is_known_of_a_blob_changes_with_it(storage: LocalStorage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    await storage.put("a/x", b"12345")
    first = await storage.stat("a/x")
    assert (first.path, first.size) == ("a/x", 5)
    assert before < first.modified_at < datetime.now(UTC) + timedelta(seconds=2)
    assert await storage.stat("a/x") == first
    await storage.put("a/x", b"54321")
    assert (await storage.stat("a/x")).etag != first.etag


async def test_a_change_is_seen_though_its_time_is_set_back(storage: LocalStorage, root: Path) -> None:
    await storage.put("a/x", b"12345")
    first, file = await storage.stat("a/x"), root / "a" / "x"
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # which goes on in steps
        with file.open("r+b") as opened:
            opened.write(b"54321")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = await storage.stat("a/x")
    assert (found.size, found.modified_at) == (first.size, first.modified_at)
    assert found.etag != first.etag


async def test_blobs_are_listed_in_the_order_of_their_paths(storage: LocalStorage, root: Path) -> None:
    names = ["a/b", "a/b.tif", "a/c-d/e", "a/c/d", "a/c/e/f", "a/c0", "a2/x", "a/ä"]
    for name in reversed(names):
        await storage.put(f"box/{name}" if name != "a/b" else "box/a/b/c", name.encode())
    expected = sorted(f"box/{name}" for name in [*names[1:], "a/b/c"])
    assert await paths(storage, "box") == expected
    assert await paths(storage, "box/a/") == [path for path in expected if path.startswith("box/a/")]
    assert await paths(storage, "box/a/c") == ["box/a/c/d", "box/a/c/e/f"]
    assert await paths(storage, "box/a/c0") == await paths(storage, "box/nowhere") == await paths(storage, "none") == []
    assert [name async for name in storage.folders("box")] == ["a", "a2"]
    assert (await storage.stat("box/a2/x")).size == 4


async def test_a_list_of_many_is_whole(storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graticule.storage.local.NAMES_AT_ONCE", 7)
    (root / "box").mkdir(parents=True)
    for number in range(50):
        (root / "box" / f"{number:02}").touch()
    assert await paths(storage, "box") == [f"box/{number:02}" for number in range(50)]


async def test_what_is_being_written_is_not_seen(storage: LocalStorage, root: Path) -> None:
    async with storage.writing("box/x.tif") as partial:
        partial.write_bytes(b"half")
        partial.with_name(partial.name + ".aux.xml").write_bytes(b"beside it")
        assert partial.suffix == ".tif"
        assert partial.parent == (root / "box").resolve()
        assert not await storage.exists("box/x.tif")
        assert await paths(storage, "box") == []
        with pytest.raises(InvalidInput):
            await storage.get(f"box/{partial.name}")
    assert await paths(storage, "box") == ["box/x.tif"]
    assert await storage.get("box/x.tif") == b"half"


async def test_a_file_whose_writer_fails_is_gone(storage: LocalStorage, root: Path) -> None:
    await storage.put("box/x", b"before")
    with pytest.raises(FileNotFoundError):
        async with storage.writing("box/x") as partial:
            partial.rename(root / "nowhere" / "x")
    assert await storage.get("box/x") == b"before"
    assert files(root) == ["box/x"]


async def test_a_writer_that_removes_its_file_is_told(storage: LocalStorage) -> None:
    with pytest.raises(NotFound):
        async with storage.writing("box/x") as partial:
            partial.unlink()


async def test_what_was_never_finished_is_removed_after_a_while(storage: LocalStorage, root: Path) -> None:
    now = datetime.now(UTC)
    old, new = (root / "box" / "a" / f".{name * 32}.partial.tif" for name in "01")
    await storage.put("box/a/.hidden.partial", b"a blob with an odd name")
    for file, at in ((old, now - timedelta(hours=2)), (new, now)):
        file.write_bytes(b"half")
        os.utime(file, (at.timestamp(), at.timestamp()))
    assert await storage.delete_unfinished(now - timedelta(hours=1)) == 1
    assert files(root) == [f"box/a/{new.name}", "box/a/.hidden.partial"]


async def test_a_copy_and_a_moved_blob_have_the_content(storage: LocalStorage, root: Path) -> None:
    await storage.put("a/deep/down/x", b"new")
    await storage.put("b/y", b"old")
    await storage.copy("a/deep/down/x", "b/y")
    assert await storage.get("b/y") == await storage.get("a/deep/down/x") == b"new"
    await storage.move("a/deep/down/x", "b/c/z")
    assert files(root) == ["b/c/z", "b/y"]
    assert folders(root) == ["a", "b", "b/c"], "empty folders go, the container stays"
    await storage.move("b/y", "b/y")
    assert await storage.get("b/y") == b"new"
    for action in (storage.copy, storage.move):
        with pytest.raises(NotFound):
            await action("a/nowhere", "b/c/z")
    assert await storage.get("b/c/z") == b"new"


async def test_a_blob_moves_between_disks(storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await storage.put("a/x", b"data")
    replaced = Path.replace

    def across(source: Path, target: Path) -> Path:
        if source.parent != target.parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return replaced(source, target)

    monkeypatch.setattr(Path, "replace", across)
    await storage.move("a/x", "b/x")
    assert files(root) == ["b/x"]
    assert await storage.get("b/x") == b"data"


async def test_all_below_a_prefix_can_be_deleted_and_nothing_else(storage: LocalStorage, root: Path) -> None:
    for path in ("a/b/c", "a/b/d/e", "a/bc", "b/b/c"):
        await storage.put(path, b"")
    (root / "a" / "b" / "d" / f".{'0' * 32}.partial").touch()
    assert await storage.delete_below("a/b/") == 2
    assert files(root) == ["a/bc", "b/b/c"]
    assert await storage.delete_below("a/b") == await storage.delete_below("a/bc") == 0
    for prefix in ("", "a", "a/", "a/..", "..", "/"):
        with pytest.raises(InvalidInput):
            await storage.delete_below(prefix)
    assert files(root) == ["a/bc", "b/b/c"]


@pytest.mark.parametrize("path", ["box/nowhere", "box/a/nowhere", "box/folder", "box/folder/file/below", "box/pipe"])
async def test_what_is_not_there_is_not_found(storage: LocalStorage, root: Path, path: str) -> None:
    await storage.put("box/folder/file", b"")
    os.mkfifo(root / "box" / "pipe")
    for action in (storage.get, storage.stat):
        with pytest.raises(NotFound, match="There is no file"):
            await action(path)
    with pytest.raises(NotFound):
        _ = [piece async for piece in storage.stream(path)]
    assert not await storage.exists(path)
    await storage.delete(path)
    assert files(root) == ["box/folder/file"]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_what_is_no_path_of_a_blob_is_refused(storage: LocalStorage, path: str) -> None:
    for action in (storage.get, storage.exists, storage.delete, storage.stat, storage.presigned_read):
        with pytest.raises((InvalidInput, ConfigurationError)) as refused:
            await action(path)
        assert "secret" not in str(refused.value)
    for step in (storage.put(path, b""), storage.copy("a/b", path), storage.move(path, "a/b")):
        with pytest.raises(InvalidInput, match="does not lead into the storage"):
            await step
    with pytest.raises(InvalidInput):
        storage.readable(path)


async def test_no_link_leads_out_of_a_container(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"secret")
    await storage.put("a/mine", b"mine")
    await storage.put("silver/made", b"made")
    (root / "a" / "folder").symlink_to(secret)
    (root / "a" / "file").symlink_to(secret / "key")
    (root / "a" / "other").symlink_to(root / "silver")
    (root / "linked").symlink_to(secret)
    for path in ("a/folder/key", "a/file", "linked/key", "a/other/made"):
        with pytest.raises(InvalidInput):
            await storage.get(path)
        with pytest.raises(InvalidInput):
            await storage.put(path, b"changed")
    assert await paths(storage, "a") == ["a/mine"]
    with pytest.raises(InvalidInput):
        await paths(storage, "linked")
    with pytest.raises(InvalidInput):
        await storage.delete_below("a/folder")
    assert (secret / "key").read_bytes() == b"secret"


async def test_a_link_that_goes_goes_alone(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    await storage.put("a/b/x", b"")
    (root / "a" / "b" / "link").symlink_to(tmp_path)
    assert await storage.delete_below("a/b") == 1
    assert (tmp_path / "kept").read_bytes() == b"kept"


@pytest.mark.parametrize("name", ["a..b", "..a/b..", "Zürich 地図", 'NETCDF:"x":y', "x?a=b&c", "100%25", "vrt:/x", "~"])
async def test_odd_names_are_names(storage: LocalStorage, root: Path, name: str) -> None:
    await storage.put(f"box/{name}", b"x")
    assert await storage.get(f"box/{name}") == b"x"
    assert await paths(storage, "box") == [f"box/{name}"]
    assert storage.readable(f"box/{name}") == f"{root}/box/{name}"


async def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.put("folder/x", b"before")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("graticule.storage.local.os.fsync", full)
        for step in (storage.put("folder/x", b"half"), storage.put("folder/x", pieces(b"half"))):
            with pytest.raises(Unavailable, match="No space"):
                await step
    assert await storage.get("folder/x") == b"before"
    assert files(root) == ["folder/x"]


async def test_a_reader_sees_one_of_the_writes_as_a_whole(storage: LocalStorage) -> None:
    versions = [bytes([number]) * 200_000 for number in range(8)]
    await storage.put("a/x", versions[0])

    async def read() -> list[bytes]:
        return [await storage.get("a/x") for _ in range(20)]

    writes: list[Any] = [storage.put("a/x", data) for data in versions]
    found, *_ = await asyncio.gather(read(), *writes)
    assert set(found) <= set(versions)


async def test_a_folder_that_goes_while_it_is_looked_at_is_made_again(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a" / "b").mkdir(parents=True)
    looked_at = Path.is_dir

    def gone_just_before(self: Path) -> bool:
        if self == root / "a" / "b":
            monkeypatch.undo()
            self.rmdir()
        return looked_at(self)

    monkeypatch.setattr(Path, "is_dir", gone_just_before)
    await storage.put("a/b/x", b"x")
    assert files(root) == ["a/b/x"]


async def test_a_blob_where_a_folder_should_be_is_not_overwritten(storage: LocalStorage, root: Path) -> None:
    await storage.put("a/b", b"x")
    with pytest.raises(Unavailable, match="File exists"):
        await storage.put("a/b/c", b"y")
    assert files(root) == ["a/b"]


async def test_folders_that_come_and_go_disturb_no_writer(storage: LocalStorage, root: Path) -> None:
    async def to_and_fro(name: str) -> None:
        for _ in range(15):
            await storage.put(f"a/b/c/{name}", b"x")
            await storage.move(f"a/b/c/{name}", f"a/d/{name}")
            await storage.delete(f"a/d/{name}")

    await asyncio.gather(*map(to_and_fro, "xyz"))
    assert files(root) == []
