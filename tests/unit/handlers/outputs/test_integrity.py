"""Files that were changed since they were cataloged are told apart from those that were only moved or restored."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from graticule.handlers.outputs.integrity import FILES_ETAG, TILES_HASH, RevisionFiles, find_fault, hash_etags
from graticule.storage.local import LocalStorage

PREFIX: Final = "silver/ddh/roads/01234567/v0/r1/"
COG, MOSAIC, SCHEME = f"{PREFIX}cogs/scene.tif", f"{PREFIX}mosaics/scene.json", f"{PREFIX}schemes/scene.geojson"
TILES: Final = {f"{PREFIX}cogs/scene_{number}.tif": bytes([number]) * 100 for number in range(3)}
TEXT: Final = json.dumps({"tiles": {"0": [*TILES]}}).encode()
ALWAYS, NEVER = 2**20, 0


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def _recorded(storage: LocalStorage, properties: dict[str, Any], assets: dict[str, Any]) -> RevisionFiles:
    etag = hash_etags([blob async for blob in storage.list(PREFIX)])
    item = {"properties": {FILES_ETAG: etag, **properties}, "assets": assets}
    return RevisionFiles(PREFIX, next(iter(assets.values()))["href"], item)


def _asset(path: str, data: bytes, *, has_checksum: bool = True) -> dict[str, Any]:
    return {"href": path, "file:size": len(data)} | ({"file:checksum": f"1220{_hash(data)}"} if has_checksum else {})


async def _cog(storage: LocalStorage, *, has_checksum: bool = True) -> RevisionFiles:
    await storage.put(COG, b"pixels")
    service = {"href": "/tiles/0123/tilejson.json"}
    assets = {"data": _asset(COG, b"pixels", has_checksum=has_checksum), "tilejson": service}
    return await _recorded(storage, {}, assets)


async def _mosaic(storage: LocalStorage, *, has_scheme: bool = True) -> RevisionFiles:
    for path, data in {**TILES, MOSAIC: TEXT, SCHEME: b"{}"}.items():
        await storage.put(path, data)
    tiles_hash = _hash("".join(sorted(map(_hash, TILES.values()))).encode())
    assets = {"mosaic": _asset(MOSAIC, TEXT)} | ({"scheme": _asset(SCHEME, b"{}")} if has_scheme else {})
    return await _recorded(storage, {TILES_HASH: tiles_hash}, assets)


def _without_record(files: RevisionFiles) -> RevisionFiles:
    """Return what a release before this one wrote down."""
    return RevisionFiles(files.prefix, files.blob_path, {**(files.item or {}), "properties": {}})


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.mark.parametrize("max_bytes", [ALWAYS, NEVER])
@pytest.mark.parametrize(
    ("path", "data", "fault"),
    [
        (COG, b"pixels", None),  # written again, as by a restore
        (COG, b"pixelz", "was changed"),
        (COG, b"pix", "has 3 bytes and should have 6"),
        (COG, None, "is missing"),
        (f"{PREFIX}cogs/another.tif", b"x", "its SHA-256 is not known"),
    ],
)
async def test_a_changed_file_is_found(
    storage: LocalStorage, path: str, data: bytes | None, fault: str | None, max_bytes: int
) -> None:
    files = await _cog(storage)
    assert await find_fault(storage, files, max_bytes_hashed=max_bytes) is None
    await (storage.delete(path) if data is None else storage.put(path, data))
    found = await find_fault(storage, files, max_bytes_hashed=max_bytes)
    assert found is None if fault is None else fault in str(found)


async def test_a_file_without_a_checksum_must_not_be_written_again(storage: LocalStorage) -> None:
    files = await _cog(storage, has_checksum=False)
    assert await find_fault(storage, files, max_bytes_hashed=NEVER) is None
    await storage.put(COG, b"pixelz")
    assert "its SHA-256 is not known" in str(await find_fault(storage, files, max_bytes_hashed=NEVER))


async def test_a_small_file_is_read_although_nothing_seems_to_have_changed(storage: LocalStorage) -> None:
    await storage.put(COG, b"pixelz")
    files = await _recorded(storage, {}, {"data": _asset(COG, b"pixels")})
    assert await find_fault(storage, files, max_bytes_hashed=5) is None
    assert "was changed" in str(await find_fault(storage, files, max_bytes_hashed=6))


async def test_a_file_elsewhere_is_not_one_of_the_revision(storage: LocalStorage) -> None:
    other = RevisionFiles(PREFIX, "silver/ddh/roads/01234567/v0/r2/cogs/scene.tif", None)
    assert "does not lie below" in str(await find_fault(storage, other, max_bytes_hashed=NEVER))


async def test_without_an_item_the_file_has_to_be_there(storage: LocalStorage) -> None:
    files = RevisionFiles(PREFIX, COG, None)
    assert "is missing" in str(await find_fault(storage, files, max_bytes_hashed=NEVER))
    await storage.put(COG, b"pixels")
    assert await find_fault(storage, files, max_bytes_hashed=NEVER) is None


TILE: Final = next(iter(TILES))


@pytest.mark.parametrize(
    ("path", "data", "fault"),
    [
        (TILE, TILES[TILE], None),
        (MOSAIC, TEXT, None),
        (TILE, b"\1" * 100, "at least one of the 3 tiles"),
        (TILE, None, "at least one of the 2 tiles"),
        (f"{PREFIX}cogs/more.tif", b"x", "at least one of the 4 tiles"),
        (MOSAIC, TEXT.replace(b"_1", b"_2"), "was changed"),
        (SCHEME, b"{}", None),
        (SCHEME, b"[]", "was changed"),
        (f"{PREFIX}schemes/more.geojson", b"x", "its SHA-256 is not known"),
        (f"{PREFIX}other/more.tif", b"x", "its SHA-256 is not known"),
    ],
)
async def test_a_changed_tile_is_found(storage: LocalStorage, path: str, data: bytes | None, fault: str | None) -> None:
    files = await _mosaic(storage)
    assert await find_fault(storage, files, max_bytes_hashed=NEVER) is None
    await (storage.delete(path) if data is None else storage.put(path, data))
    found = await find_fault(storage, files, max_bytes_hashed=NEVER)
    assert found is None if fault is None else fault in str(found)


async def test_scheme_without_a_recorded_checksum_is_accepted(storage: LocalStorage) -> None:
    files = await _mosaic(storage, has_scheme=False)
    await storage.put(SCHEME, b"[]")
    assert await find_fault(storage, files, max_bytes_hashed=NEVER) is None


async def test_of_an_earlier_release_s_mosaic_the_tiles_have_to_be_there(storage: LocalStorage) -> None:
    files = _without_record(await _mosaic(storage))
    assert await find_fault(storage, files, max_bytes_hashed=NEVER) is None
    await storage.delete(TILE)
    assert f"the tile {TILE!r} of the mosaic is missing" == await find_fault(storage, files, max_bytes_hashed=NEVER)
    await storage.put(MOSAIC, b"[]" + b" " * (len(TEXT) - 2))
    assert "is no mosaic" in str(await find_fault(storage, files, max_bytes_hashed=NEVER))
