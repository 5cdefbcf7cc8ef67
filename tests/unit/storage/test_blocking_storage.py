"""The storage for code that does not await: the same methods, from any thread."""

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graticule.core.errors import NotFound
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.storage.options import StorageOptions
from graticule.storage.protocol import Storage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[BlockingStorage]:
    with BlockingStorage(LocalStorage(tmp_path, StorageOptions(silver="made"))) as opened:
        yield opened


def test_it_has_all_that_the_awaited_one_has() -> None:
    names = {name for name in vars(Storage) if not name.startswith("_")}
    assert names <= set(dir(BlockingStorage))
    for name in names:
        method, blocking = getattr(Storage, name), getattr(BlockingStorage, name)
        assert inspect.getdoc(method) == inspect.getdoc(blocking), name
        if callable(method):
            assert [*inspect.signature(method).parameters] == [*inspect.signature(blocking).parameters], name
            assert not inspect.iscoroutinefunction(blocking), name


def test_all_of_it_works_without_awaiting(storage: BlockingStorage, tmp_path: Path) -> None:
    assert storage.silver == "made"
    storage.put("made/a/x", iter([b"01", b"2345"]))
    assert storage.get("made/a/x") == b"012345"
    assert storage.read("made/a/x", 1, length=2) == b"12"
    assert b"".join(storage.stream("made/a/x", start=3)) == b"345"
    storage.copy("made/a/x", "made/b/y")
    storage.move("made/b/y", "made/c")
    assert [blob.path for blob in storage.list("made")] == ["made/a/x", "made/c"]
    assert list(storage.folders("made")) == ["a"]
    assert storage.stat("made/c").size == 6
    assert storage.readable("made/c") == storage.source("made/c").opened == str(tmp_path.resolve() / "made" / "c")
    storage.delete("made/c")
    assert not storage.exists("made/c")
    assert storage.delete_below("made/a") == 1
    assert storage.delete_unfinished(datetime.now(UTC) + timedelta(days=1)) == 0
    with pytest.raises(NotFound):
        storage.get("made/c")


def test_a_block_that_writes_ends_well_or_leaves_nothing(storage: BlockingStorage, tmp_path: Path) -> None:
    with storage.writing("made/x") as partial:
        partial.write_bytes(b"whole")
    assert storage.get("made/x") == b"whole"
    with pytest.raises(FileNotFoundError), storage.writing("made/y") as partial:
        partial.rename(tmp_path / "nowhere" / "y")
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["x"]


def test_a_reader_that_stops_early_leaves_no_file_open(storage: BlockingStorage) -> None:
    storage.put("made/x", b"x" * 3_000_000)
    stream = storage.stream("made/x")
    assert len(next(stream)) == 1024 * 1024
    stream.close()
    assert list(storage.list("nowhere")) == []


def test_threads_share_it(storage: BlockingStorage) -> None:
    def work(number: int) -> bytes:
        storage.put(f"made/{number}", str(number).encode())
        return storage.get(f"made/{number}")

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(40))) == [str(number).encode() for number in range(40)]


async def test_it_can_be_called_where_a_loop_runs(storage: BlockingStorage) -> None:
    storage.put("made/x", b"1")
    assert storage.exists("made/x")
