"""Where outputs are while a job runs, and when it is done."""

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graticule.core.errors import InvalidInput
from graticule.handlers.outputs.staging import (
    Confirm,
    Promotion,
    begin,
    final_path,
    finish,
    move_outputs,
    prefix_for,
    promotion_of,
    remove_scratch,
    stage_again,
    staged_path,
    staged_sizes,
    stem_of,
)
from graticule.storage.local import LocalStorage

JOB = "0123456789abcdef"
FILES = ["cogs/a.tif", "mosaics/a.json"]
AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


async def stage(storage: LocalStorage, names: list[str], text: bytes = b"new", job_id: str = JOB) -> None:
    for name in names:
        await storage.put(staged_path(storage, job_id, name), text)


async def blobs(storage: LocalStorage) -> dict[str, bytes]:
    return {blob.path: await storage.get(blob.path) async for blob in storage.list("silver")}


async def begun(storage: LocalStorage, names: list[str] = FILES, prefix: str = "acme/v1") -> Promotion:
    sizes = await staged_sizes(storage, JOB)
    given = {"collection_id": "c", "item_id": "i", "href": f"silver/{prefix}/{names[0]}", "checksum": "1", "at": AT}
    promotion = Promotion(blob_prefix=prefix, sizes={name: sizes[name] for name in names}, **given)
    await begin(storage, JOB, promotion)
    assert await promotion_of(storage, JOB) == promotion
    return promotion


async def test_a_job_whose_id_its_parameters_give_reaches_no_files_of_another(storage: LocalStorage) -> None:
    """Whoever chooses parameters can try some until their SHA-256 ends like the id of a job that processes an asset."""
    await stage(storage, FILES, b"reviewed")
    chosen = "0" * 56 + JOB[-8:]
    await stage(storage, FILES, b"forged", chosen)
    await remove_scratch(storage, chosen)
    assert set((await blobs(storage)).values()) == {b"reviewed"}


def until(count: int) -> Confirm:
    """Let so many files move."""
    left = iter(range(count))

    async def confirm() -> None:
        if next(left, None) is None:
            raise InterruptedError

    return confirm


async def test_outputs_take_the_place_of_those_before(storage: LocalStorage) -> None:
    await stage(storage, FILES)
    await storage.put("silver/89abcdef/tiles/piece.tif", b"scratch")
    await storage.put("silver/acme/v1/cogs/a.tif", b"old")
    await storage.put("silver/acme/v1/cogs/a_tile_0_0.tif", b"an orphan of another tile size")
    await storage.put("silver/acme/v10/cogs/a.tif", b"another's")
    await storage.put("silver/acme/v1/deeper/cogs/b.tif", b"another's")
    promotion = await begun(storage)
    await move_outputs(storage, JOB, promotion, until(2))
    assert "silver/acme/v1/cogs/a_tile_0_0.tif" in await blobs(storage), "until the new ones are catalogued"
    await finish(storage, JOB, promotion, until(1))
    assert await blobs(storage) == {
        "silver/acme/v1/cogs/a.tif": b"new",
        "silver/acme/v1/mosaics/a.json": b"new",
        "silver/acme/v10/cogs/a.tif": b"another's",
        "silver/acme/v1/deeper/cogs/b.tif": b"another's",
    }


@pytest.mark.parametrize("moved", [0, 1, 2])
@pytest.mark.parametrize("back", [0, 1])
async def test_it_can_be_taken_back_from_any_point_and_that_can_be_repeated(
    storage: LocalStorage, moved: int, back: int
) -> None:
    await stage(storage, FILES)
    await storage.put("silver/acme/v1/cogs/a.tif", b"old")
    before = await blobs(storage)
    promotion = await begun(storage)
    with suppress(InterruptedError):
        await move_outputs(storage, JOB, promotion, until(moved))
    with suppress(InterruptedError):
        await stage_again(storage, JOB, promotion, until(back))
    await stage_again(storage, JOB, promotion, until(2))
    assert await blobs(storage) == before
    assert await promotion_of(storage, JOB) is None


async def test_what_another_one_has_put_at_the_place_meanwhile_is_not_taken_back(storage: LocalStorage) -> None:
    await stage(storage, FILES)
    promotion = await begun(storage)
    await move_outputs(storage, JOB, promotion, until(2))
    await storage.put("silver/acme/v1/cogs/a.tif", b"another's")
    await stage_again(storage, JOB, promotion, until(2))
    assert (await blobs(storage))["silver/acme/v1/cogs/a.tif"] == b"another's"


async def test_an_output_lies_in_a_folder_of_outputs(storage: LocalStorage) -> None:
    await stage(storage, ["other/a.tif"])
    with pytest.raises(InvalidInput, match="folders"):
        await begun(storage, ["other/a.tif"])


def test_a_promotion_is_in_an_item_that_speaks_of_its_files_and_of_no_others() -> None:
    given = {"blob_prefix": "p", "collection_id": "c", "item_id": "i", "sizes": {}, "at": AT}
    assets = {
        "geoparquet": {"href": "silver/p/a.parquet", "file:checksum": "1"},
        "pmtiles": {"href": "silver/p/a.pmtiles", "file:checksum": "2"},
        "features": {"href": "/features/a"},
    }
    one = Promotion(href="silver/p/a.parquet", checksum="1", **given)
    both = one.model_copy(update={"beside": {"silver/p/a.pmtiles": "2"}})
    none = Promotion(href=None, checksum=None, **given)
    items = [{"assets": {key: assets[key] for key in keys}} for keys in (["features"], ["geoparquet"], [*assets])]
    assert [[each.is_in(item) for item in items] for each in (none, one, both)] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    assert not none.is_in(None)


@pytest.mark.parametrize(
    ("changed", "is_in", "is_over"),
    [
        ({}, True, True),
        ({"href": "silver/acme/v2/cogs/a.tif"}, False, True),
        ({"file:checksum": "2"}, False, True),
        ({"updated": "2026-01-01T23:59:59Z"}, True, False),
        (None, False, False),
    ],
)
async def test_an_item_tells_whose_files_are_there(
    storage: LocalStorage, changed: dict[str, str] | None, *, is_in: bool, is_over: bool
) -> None:
    await stage(storage, FILES)
    promotion = await begun(storage)
    asset = {"href": "silver/acme/v1/cogs/a.tif", "file:checksum": "1", **(changed or {})}
    properties = {"updated": (changed or {}).get("updated", "2026-01-02T00:00:00Z")}
    item = None if changed is None else {"assets": {"data": asset}, "properties": properties}
    assert (promotion.is_in(item), promotion.is_over(item)) == (is_in, is_over)


async def test_some_that_remove_the_same_folder_at_once_do_not_disturb_each_other(
    storage: LocalStorage, tmp_path: Path
) -> None:
    folder = tmp_path / "silver" / JOB[-8:] / "out" / "cogs"
    for _ in range(5):
        folder.mkdir(parents=True)
        for number in range(200):
            (folder / f"{number}.tif").touch()
        await asyncio.gather(*(remove_scratch(storage, JOB) for _ in range(3)))
        assert await blobs(storage) == {}


async def test_a_blob_that_is_written_or_moved_has_its_name_on_the_disk(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set()
    fsync = os.fsync

    def noted(opened: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{opened}").readlink()))
        fsync(opened)

    monkeypatch.setattr(os, "fsync", noted)
    await storage.put("silver/a/b.tif", b"b")
    assert str(tmp_path / "silver/a") in synced
    await storage.move("silver/a/b.tif", "silver/c/b.tif")
    assert str(tmp_path / "silver/c") in synced


@pytest.mark.parametrize("prefix", ["", "/", "a//b", "../a", "a/../b", ".", "a/", "/a", "a b", "-a", "a\n"])
def test_a_prefix_is_a_folder(storage: LocalStorage, prefix: str) -> None:
    with pytest.raises(InvalidInput, match="blob_prefix"):
        final_path(storage, prefix, "cogs/a.tif")


def test_a_job_without_a_prefix_is_named_after_its_source(storage: LocalStorage) -> None:
    prefixes = {
        prefix_for(source) for source in ("bronze/a.tif", "bronze/a.jp2", "bronze/a/b.tif", "gold/a.tif", "/x/a.tif")
    }
    assert len(prefixes) == 5
    assert prefix_for("bronze/a.tif") == "direct/bronze/a-" + prefix_for("bronze/a.tif")[-8:]
    for prefix in prefixes | {
        prefix_for("bronze/é ü.tif"),
        prefix_for("https://example.org/a.tif"),
        prefix_for("$web/a"),
    }:
        assert final_path(storage, prefix, "x") == f"silver/{prefix}/x"
        assert not any(other.startswith(f"{prefix}/") for other in prefixes)


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("a/b/Scene 1.tif", "Scene_1"),
        ("scene.tar.gz", "scene_tar"),
        (".hidden", "hidden"),
        ("é.tif", "data"),
        ("plain", "plain"),
        ("-x-.tif", "x"),
    ],
)
def test_a_stem_is_safe_in_any_path(path: str, stem: str) -> None:
    assert stem_of(path) == stem
