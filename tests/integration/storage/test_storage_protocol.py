"""What holds for blobs wherever they are kept: in a folder, and in Azure."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from graticule.core.errors import ConfigurationError, Conflict, InvalidInput, NotFound
from graticule.storage.protocol import Storage

DIGITS = b"0123456789"
ODD_NAMES = ["a..b", "..a/b..c", "Zürich 地図", 'NETCDF:"x":y', "x?a=b&c", "100%25", "vrt:/x", "~", "a+b #1"]


async def paths(storage: Storage, prefix: str) -> list[str]:
    return [blob.path async for blob in storage.list(prefix)]


async def folders(storage: Storage, prefix: str) -> list[str]:
    return [name async for name in storage.folders(prefix)]


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


async def test_what_is_put_can_be_read_in_parts_replaced_and_deleted(either: Storage) -> None:
    await either.put("box/a/x.json", DIGITS)
    parts = [(0, None), (3, 4), (8, 9), (10, 5), (99, None), (99, 1), (4, 0)]
    found = [await either.read("box/a/x.json", start, length) for start, length in parts]
    assert found == [DIGITS, b"3456", b"89", b"", b"", b"", b""]
    assert [[piece async for piece in either.stream("box/a/x.json", start)] for start in (4, 10, 99)] == [
        [b"456789"],
        [],
        [],
    ]
    first = await either.stat("box/a/x.json")
    assert (first.path, first.size) == ("box/a/x.json", 10)
    assert abs(first.modified_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert await either.stat("box/a/x.json") == first
    await either.put("box/a/x.json", DIGITS[::-1])
    assert (await either.stat("box/a/x.json")).etag != first.etag
    assert await either.get("box/a/x.json") == DIGITS[::-1]
    await either.delete("box/a/x.json")
    await either.delete("box/a/x.json")
    assert not await either.exists("box/a/x.json")


async def test_what_is_large_goes_and_comes_in_pieces(either: Storage) -> None:
    data = os.urandom(9_000_000)
    await either.put("box/x", pieces(data[:2_000_000], b"", data[2_000_000:]))
    found = [piece async for piece in either.stream("box/x", 300_000)]
    assert b"".join(found) == data[300_000:]
    assert max(map(len, found)) < 2_000_000
    assert (await either.local("box/x")).read_bytes() == data


async def test_what_is_empty_is_a_blob(either: Storage) -> None:
    await either.put("box/x", b"")
    await either.put("box/y", iter(()))
    for path in ("box/x", "box/y"):
        assert await either.get(path) == await either.read(path, 0, 5) == b""
        assert [piece async for piece in either.stream(path)] == []
        assert (await either.local(path)).read_bytes() == b""


async def test_no_part_has_negative_bounds(either: Storage) -> None:
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(InvalidInput):
            await either.read("box/x", start, length)


async def test_what_breaks_off_leaves_what_was_there(either: Storage) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    await either.put("box/x", b"before")
    with pytest.raises(ConnectionError):
        await either.put("box/x", broken())
    with pytest.raises(FileNotFoundError):
        async with either.writing("box/x") as file:
            file.rename(file.parent / "nowhere" / "x")
    with pytest.raises(NotFound):
        async with either.writing("box/x") as file:
            file.unlink()
    assert await either.get("box/x") == b"before"
    assert await paths(either, "box") == ["box/x"]


async def test_a_file_is_seen_when_it_is_written(either: Storage) -> None:
    async with either.writing("box/a/x.tif") as file:
        assert file.suffix == ".tif"
        file.write_bytes(b"whole")
        assert not await either.exists("box/a/x.tif")
        assert await paths(either, "box") == []
    assert await either.get("box/a/x.tif") == b"whole"
    assert not file.exists()


async def test_blobs_are_listed_in_the_order_of_their_paths(either: Storage) -> None:
    names = ["a/b/c", "a/b.tif", "a/c-d/e", "a/c/d", "a/c/e/f", "a/c0", "a2/x", "a/ä"]
    await asyncio.gather(*(either.put(f"box/{name}", name.encode()) for name in names))
    expected = sorted(f"box/{name}" for name in names)
    assert await paths(either, "box") == await paths(either, "box/") == expected
    assert await paths(either, "box/a/") == [path for path in expected if path.startswith("box/a/")]
    assert await paths(either, "box/a/c") == ["box/a/c/d", "box/a/c/e/f"]
    assert await paths(either, "box/a/c0") == await paths(either, "box/nowhere") == await paths(either, "none") == []
    assert (await folders(either, "box"), await folders(either, "box/a")) == (["a", "a2"], ["b", "c", "c-d"])
    assert await folders(either, "box/a2") == await folders(either, "none") == []
    (listed,) = [blob async for blob in either.list("box/a2")]
    assert listed == await either.stat("box/a2/x")


async def test_a_copy_and_a_moved_blob_have_the_content(either: Storage) -> None:
    await either.put("box/deep/down/x", b"new")
    await either.put("silver/y", b"old")
    await either.copy("box/deep/down/x", "silver/y")
    await either.copy("silver/y", "external/y")
    assert await either.get("external/y") == await either.get("silver/y") == b"new"
    await either.move("box/deep/down/x", "silver/c/z")
    assert (await paths(either, "box"), await paths(either, "silver")) == ([], ["silver/c/z", "silver/y"])
    await either.move("silver/y", "silver/y")
    assert await either.get("silver/y") == b"new"
    for action in (either.copy, either.move):
        with pytest.raises(NotFound):
            await action("box/nowhere", "silver/c/z")
    assert await either.get("silver/c/z") == b"new"


async def test_all_below_a_prefix_can_be_deleted_and_nothing_else(either: Storage) -> None:
    for path in ("box/b/c", "box/b/d/e", "box/bc", "cask/b/c"):
        await either.put(path, b"")
    assert await either.delete_below("box/b/") == 2
    assert await either.delete_below("box/b") == await either.delete_below("box/bc") == 0
    for prefix in ("", "box", "box/", "box/..", "..", "/"):
        with pytest.raises(InvalidInput):
            await either.delete_below(prefix)
    assert await paths(either, "box") + await paths(either, "cask") == ["box/bc", "cask/b/c"]


@pytest.mark.parametrize("path", ["box/nowhere", "box/folder", "box/folder/file/below", "none/x"])
async def test_what_is_not_there_is_not_found(either: Storage, path: str) -> None:
    await either.put("box/folder/file", b"x")
    for action in (either.get, either.stat, either.local):
        with pytest.raises(NotFound, match="There is no file"):
            await action(path)
    with pytest.raises(NotFound):
        _ = [piece async for piece in either.stream(path)]
    assert not await either.exists(path)
    await either.delete(path)
    assert await paths(either, "box") == ["box/folder/file"]


@pytest.mark.parametrize("path", ["", "..", "box/../../x", "/etc/passwd", "box", "box//x", "box/x\0y", "box/x\\y"])
async def test_what_is_no_path_of_a_blob_is_refused(either: Storage, path: str) -> None:
    for action in (either.get, either.exists, either.delete, either.stat, either.presigned_read):
        with pytest.raises((InvalidInput, ConfigurationError)):
            await action(path)
    for step in (either.put(path, b""), either.copy("box/x", path), either.move(path, "box/x")):
        with pytest.raises((InvalidInput, NotFound)):
            await step
    with pytest.raises(InvalidInput):
        either.readable(path)


async def test_odd_names_are_names(either: Storage) -> None:
    for name in ODD_NAMES:
        await either.put(f"box/{name}", name.encode())
        assert await either.get(f"box/{name}") == name.encode()
        assert (await either.local(f"box/{name}")).read_bytes() == name.encode()
    assert await paths(either, "box") == sorted(f"box/{name}" for name in ODD_NAMES)


@pytest.mark.parametrize("size", [5, 9_000_000])
async def test_a_write_is_refused_when_the_blob_is_not_as_the_writer_knows_it(either: Storage, size: int) -> None:
    def data(first: int) -> AsyncIterator[bytes]:
        return pieces(bytes([first]), bytes(size))

    await either.put("box/x", data(1), only_new=True)
    first = await either.stat("box/x")
    with pytest.raises(Conflict, match="'box/x' is there already"):
        await either.put("box/x", data(2), only_new=True)
    await either.put("box/x", data(3), etag=first.etag)
    with pytest.raises(Conflict, match="'box/x' is not as it was read"):
        await either.put("box/x", data(4), etag=first.etag)
    assert await either.read("box/x", 0, 1) == bytes([3])
    await either.delete("box/x")
    with pytest.raises(Conflict, match="not as it was read"):
        await either.put("box/x", data(5), etag=first.etag)
    assert not await either.exists("box/x")


async def test_of_writers_that_read_the_same_one_is_not_refused(either: Storage) -> None:
    for is_new in (True, False):
        etag = None if is_new else (await either.stat("box/x")).etag
        writes = [either.put("box/x", str(number).encode(), only_new=is_new, etag=etag) for number in range(4)]
        ends = await asyncio.gather(*writes, return_exceptions=True)
        (winner,) = [number for number, end in enumerate(ends) if end is None]
        assert await either.get("box/x") == str(winner).encode()
        assert [type(end) for end in ends if end] == [Conflict] * 3


async def test_a_reader_sees_one_of_the_writes_as_a_whole(either: Storage) -> None:
    versions = [bytes([number]) * 100_000 for number in range(4)]
    await either.put("box/x", versions[0])
    writes = [either.put("box/x", version) for version in versions]
    reads = [either.get("box/x") for _ in versions]
    seen = await asyncio.gather(*writes, *reads)
    assert set(seen[len(writes) :]) <= set(versions)
