"""What is Azure's own: accounts, signatures, blocks, and what is told when something is wrong with them."""

import asyncio
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest
import rasterio
from azure.storage.blob import BlobBlock, BlobClient
from pydantic import SecretStr
from rasterio.errors import RasterioIOError
from structlog.testing import capture_logs
from tests.azure_login import identified
from tests.azurite_server import KEY, Azurite
from tests.rasters import make_raster

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, InvalidInput, Unavailable
from graticule.logs import redact
from graticule.storage import azure as azure_module
from graticule.storage import azure_blocks
from graticule.storage.azure import AzureStorage
from graticule.storage.azure_accounts import AzureAccounts
from graticule.storage.options import AzureOptions
from graticule.storage.paths import CURL
from graticule.storage.place import StoragePlace, storage_of
from graticule.storage.signing import LONGEST_SECONDS
from graticule.worker.outcome import outcome_of_error, trace_of

HOUR = timedelta(hours=1)
PIECE = 100_000
WRONG = "d3Jvbmc="


@pytest.fixture
def with_key(azurite: Azurite) -> AzureOptions:
    """Give accounts that are reached with their key; there is no identity."""
    fresh = azurite.fresh()
    return AzureOptions(account=fresh.account, endpoint=fresh.endpoint, key=SecretStr(KEY))


@pytest.fixture
def keyed(azurite: Azurite, with_key: AzureOptions, monkeypatch: pytest.MonkeyPatch) -> AzureStorage:
    for name, value in azurite.trust.items():
        monkeypatch.setenv(name, value)
    return AzureStorage(with_key)


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def client_of(storage: AzureStorage, path: str) -> BlobClient:
    return storage._accounts.client(storage._accounts.blob(path))


@dataclass
class CountedClient:
    """A blob's client that counts what it sends, and breaks off when it is told to."""

    client: BlobClient
    breaks_after: int | None = None
    sent: list[str] = field(default_factory=list)

    def stage_block(self, name: str, data: bytes, **options: Any) -> None:
        if len(self.sent) == self.breaks_after:
            raise ConnectionResetError
        self.sent.append(name)
        self.client.stage_block(name, data, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


# Signatures


async def test_an_address_reads_one_blob_for_an_hour_and_does_nothing_else(azure: AzureStorage) -> None:
    await azure.put("silver/ü x.tif", b"0123456789")
    await azure.put("silver/other", b"secret")
    address = await azure.presigned_read("silver/ü x.tif")
    query = query_of(address)
    assert (query["sp"], query["sr"], query["spr"], query["sks"]) == ("r", "b", "https", "b")
    assert abs(datetime.fromisoformat(query["se"]) - datetime.now(UTC) - HOUR) < timedelta(seconds=10)
    async with httpx.AsyncClient() as client:
        part = await client.get(address, headers={"Range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, b"234")
        refused = [
            await client.put(address, content=b"x", headers={"x-ms-blob-type": "BlockBlob"}),
            await client.delete(address),
            await client.get(address.replace("%C3%BC%20x.tif", "other")),
            await client.get(address.partition("?")[0]),
            await client.get(address.replace("sp=r", "sp=rw")),
        ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert await azure.get("silver/ü x.tif") == b"0123456789"


async def test_an_address_ends_when_it_was_said_to(azure: AzureStorage, keyed: AzureStorage) -> None:
    for storage in (azure, keyed):
        await storage.put("silver/x", b"0")
        past = storage._accounts.signed(storage._accounts.blob("silver/x"), -1)
        async with httpx.AsyncClient() as client:
            assert (await client.get(past)).status_code == 403
        with pytest.raises(InvalidInput):
            await storage.presigned_read("silver/x", 8 * 24 * 3600)
        with pytest.raises(InvalidInput, match="no addresses"):
            await storage.presigned_read("outputs/job/x.json")


def test_a_delegated_key_signs_for_hours_and_is_renewed_in_time(azurite: Azurite) -> None:
    clock = [datetime.now(UTC)]
    with identified(azurite.environment):
        options = StoragePlace.of(Settings(**azurite.settings)).azure
        assert options is not None
        accounts = AzureAccounts(options, clock=lambda: clock[0])
        blob = accounts.blob("silver/x")
        ends = []
        for hours in (0, 2.9, 3.1, 3.2):
            clock[0] = datetime.now(UTC) + hours * HOUR
            query = query_of(accounts.signed(blob, 3600))
            assert datetime.fromisoformat(query["se"]) <= datetime.fromisoformat(query["ske"])
            ends.append(query["ske"])
    assert ends[0] == ends[1] != ends[2] == ends[3]


def test_a_delegated_key_lasts_as_long_as_the_longest_address_and_signs_the_next(azurite: Azurite) -> None:
    clock = [datetime.now(UTC)]
    with identified(azurite.environment):
        options = StoragePlace.of(Settings(**azurite.settings)).azure
        assert options is not None
        accounts = AzureAccounts(options, clock=lambda: clock[0])
        query = query_of(accounts.signed(accounts.blob("silver/x"), LONGEST_SECONDS))
    assert datetime.fromisoformat(query["se"]) <= datetime.fromisoformat(query["ske"])
    assert datetime.fromisoformat(query["ske"]) - datetime.fromisoformat(query["skt"]) <= timedelta(days=7)


async def test_a_name_for_gdal_holds_as_long_as_its_reader_may_take(azure: AzureStorage) -> None:
    for seconds, least in ((60, 3600), (86_400, 86_400), (10**9, 86_400 * 7)):
        azure.read_for(seconds)
        name = await asyncio.to_thread(azure.readable, "silver/x")
        ends = datetime.fromisoformat(query_of(name)["se"])
        assert timedelta(seconds=-60) < ends - datetime.now(UTC) - timedelta(seconds=least) < HOUR


async def test_with_a_key_it_signs_by_itself(keyed: AzureStorage) -> None:
    await keyed.put("silver/x", b"0123456789")
    address = await keyed.presigned_read("silver/x")
    assert "skoid" not in query_of(address)
    async with httpx.AsyncClient() as client:
        assert (await client.get(address)).content == b"0123456789"


async def test_gdal_reads_by_a_signed_name(azure: AzureStorage, tmp_path: Path) -> None:
    path = "silver/Zürich 100%25 #1?a=b&c+d.tif"
    await azure.put(path, make_raster(tmp_path / "a.tif", "rgb").read_bytes())
    source = azure.source(path)
    assert (source.shown, source.blob) == (path, path)
    assert source.opened.startswith(f"{CURL}https://127.0.0.1:")
    assert "sig=" not in repr(source)
    with rasterio.open(source.opened) as signed, rasterio.open(tmp_path / "a.tif") as plain:
        np.testing.assert_array_equal(signed.read(), plain.read())


async def test_what_gdal_says_of_a_signed_name_is_told_without_the_signature(azure: AzureStorage) -> None:
    await azure.put("silver/x", b"no raster")
    name = azure.readable("silver/x")
    with capture_logs() as logged, pytest.raises(RasterioIOError) as raised:
        rasterio.open(name)
    signature = name.rpartition("sig=")[2]
    assert signature in str(raised.value), "else there is nothing to keep back"
    outcome = outcome_of_error(raised.value)
    told = [str(outcome), str(redact({"exception": trace_of(raised.value)})), str(redact(logged))]
    for text in told:
        assert signature not in text
        assert "sig=" not in text
    assert "silver/x" in str(outcome.error_message)


# Blocks


async def test_a_broken_upload_goes_on_where_it_was(
    azure: AzureStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure_blocks, "AT_ONCE", 1)  # else some are on their way when it breaks off
    data = os.urandom(10 * PIECE + 1)
    (tmp_path / "x").write_bytes(data)
    await azure.put("silver/x", b"before")
    first = CountedClient(client_of(azure, "silver/x"), breaks_after=6)
    with pytest.raises(ConnectionResetError):
        await azure_blocks.upload(first, tmp_path / "x", len(data), PIECE)  # type: ignore[arg-type]
    assert await azure.get("silver/x") == b"before"
    second = CountedClient(client_of(azure, "silver/x"))
    await azure_blocks.upload(second, tmp_path / "x", len(data), PIECE)  # type: ignore[arg-type]
    assert (len(first.sent), len(second.sent)) == (6, 5)
    assert await azure.get("silver/x") == data


async def test_a_block_that_was_sent_for_another_content_is_not_taken(azure: AzureStorage, tmp_path: Path) -> None:
    for content in (b"a", b"b"):
        (tmp_path / content.decode()).write_bytes(content * 3 * PIECE)
    await azure.put("box/y", b"")
    broken = _Uncommitted(client_of(azure, "box/x"))
    with pytest.raises(ZeroDivisionError):
        await azure_blocks.upload(broken, tmp_path / "a", 3 * PIECE, PIECE)  # type: ignore[arg-type]
    assert not await azure.exists("box/x")
    await azure_blocks.upload(client_of(azure, "box/x"), tmp_path / "b", 3 * PIECE, PIECE)
    assert await azure.get("box/x") == b"b" * 3 * PIECE


class _Uncommitted(CountedClient):
    def commit_block_list(self, blocks: list[Any], **options: Any) -> Any:
        if len(blocks) > 1:
            raise ZeroDivisionError
        return self.client.commit_block_list(blocks, **options)


async def test_writers_of_one_blob_do_not_mix(azure: AzureStorage, tmp_path: Path) -> None:
    versions = [bytes([number]) * 5 * PIECE for number in range(4)]
    await azure.put("silver/x", b"before")
    uploads = []
    for number, version in enumerate(versions):
        (tmp_path / str(number)).write_bytes(version)
        client = client_of(azure, "silver/x")
        uploads.append(azure_blocks.upload(client, tmp_path / str(number), 5 * PIECE, PIECE))
    await asyncio.gather(*uploads)
    assert await azure.get("silver/x") in versions


async def test_what_was_never_committed_is_dropped_after_a_while(azure: AzureStorage, tmp_path: Path) -> None:
    assert await azure.delete_unfinished(datetime.now(UTC)) == 0, "no container is there"
    await azure.put("silver/empty", b"")
    await azure.put("silver/begun", b"before")
    (tmp_path / "x").write_bytes(b"x" * 3 * PIECE)
    for path in ("silver/a/x", "silver/begun"):
        client = _Uncommitted(client_of(azure, path))
        with pytest.raises(ZeroDivisionError):
            await azure_blocks.upload(client, tmp_path / "x", 3 * PIECE, PIECE)  # type: ignore[arg-type]
    assert await azure.delete_unfinished(datetime.now(UTC) - HOUR) == 0
    assert await azure.delete_unfinished(datetime.now(UTC) + HOUR) == 1
    assert await azure.delete_unfinished(datetime.now(UTC) + HOUR) == 0
    assert [blob.path async for blob in azure.list("silver")] == ["silver/begun", "silver/empty"]
    assert await azure.get("silver/begun") == b"before"


@pytest.mark.parametrize("before", [None, "whole", "blocks"])
async def test_blocks_that_others_left_keep_nobody_from_writing(
    azure: AzureStorage, tmp_path: Path, before: str | None
) -> None:
    client, data = client_of(azure, "silver/x"), os.urandom(3 * PIECE)
    (tmp_path / "x").write_bytes(data)
    await azure.put("silver/y", b"")
    if before == "whole":
        await azure.put("silver/x", b"before")
    elif before == "blocks":
        client.stage_block("0001", b"before")
        client.commit_block_list([BlobBlock("0001")])
    client.stage_block("0002", b"another program's")
    with pytest.raises(ZeroDivisionError):
        await azure_blocks.upload(_Uncommitted(client), tmp_path / "x", len(data), PIECE)  # type: ignore[arg-type]
    assert await azure.exists("silver/x") == bool(before)
    assert not before or await azure.get("silver/x") == b"before"
    await azure_blocks.upload(client, tmp_path / "x", len(data), PIECE)
    assert await azure.get("silver/x") == data
    assert await azure.delete_unfinished(datetime.now(UTC) + HOUR) == 0


def test_no_blob_has_more_blocks_than_azure_takes() -> None:
    pieces = azure_blocks.pieces_of(10**12)
    assert len(pieces) <= azure_blocks.MOST_BLOCKS
    assert sum(piece.length for piece in pieces) == 10**12
    assert all(before.start + before.length == after.start for before, after in pairwise(pieces))


# Copies


@pytest.mark.parametrize("target", ["silver/copy", "external/copy"])  # in the same account, and in another
async def test_azure_copies_a_large_blob_by_blocks(
    azure: AzureStorage, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(azure_module, "COPIED_AT_ONCE", PIECE)
    monkeypatch.setattr(azure_blocks.copy, "__defaults__", (2 * PIECE,))
    data = os.urandom(5 * PIECE)
    await azure.put("silver/x", data)
    await azure.copy("silver/x", target)
    assert await azure.get(target) == data
    await azure.move("silver/x", target)
    assert not await azure.exists("silver/x")


async def test_a_source_that_changes_meanwhile_is_not_copied(
    azure: AzureStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.put("silver/x", b"before")
    known = await azure.stat("silver/x")
    await azure.put("silver/x", b"after!")

    made = azure._accounts.blob("silver/copy")
    for at_once in (1000, 1):
        monkeypatch.setattr(azure_module, "COPIED_AT_ONCE", at_once)
        with pytest.raises(Unavailable):
            await azure._written("silver/copy", lambda: azure._copy_there("silver/x", known, made))
    assert not await azure.exists("silver/copy")


async def test_accounts_that_do_not_reach_each_other_are_copied_between(
    azure: AzureStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(*_: object) -> None:
        raise Unavailable("The other account is in another network.")

    monkeypatch.setattr(azure, "_copy_there", unreachable)
    await azure.put("silver/x", b"0123456789")
    await azure.copy("silver/x", "external/x")
    assert await azure.get("external/x") == b"0123456789"
    with pytest.raises(Unavailable):
        await azure.copy("silver/x", "silver/y")


# What is wrong


@pytest.mark.parametrize("path", ["Box/x", "my_box/x", "a/x", "bo--x/y", "box./x", "box/x.", "box/a./b"])
async def test_names_that_azure_cannot_have_are_refused(azure: AzureStorage, path: str) -> None:
    with pytest.raises(InvalidInput, match="Azure"):
        await azure.put(path, b"")


@pytest.mark.parametrize(
    ("key", "told"), [(WRONG, "InvalidAuthenticationInfo"), (None, "No token|does not let this process")]
)
async def test_who_is_not_let_in_is_told_without_secrets(azurite: Azurite, key: str | None, told: str) -> None:
    with identified({**azurite.environment, "IDENTITY_HEADER": "wrong"}):
        settings = Settings(**azurite.settings, azure_storage_key=None if key is None else SecretStr(key))
        storage = storage_of(settings)
        for step in (storage.presigned_read, storage.get) if key is None else (storage.delete,):
            with pytest.raises(Unavailable, match=told) as refused:
                await step("silver/x")
            assert WRONG not in f"{refused.value} {refused.value.detail}"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"azure_storage_account_name": None, "azure_storage_accounts": {}}, "no storage account"),
        ({"azure_storage_account_name": "Wrong-Name"}, "'Wrong-Name'"),
        ({"azure_storage_accounts": {"bronze": "x/y"}}, "'x/y'"),
        ({"azure_storage_key": SecretStr("not a key!")}, "AZURE_STORAGE_KEY"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(changed: dict[str, Any], named: str) -> None:
    good: dict[str, Any] = {"storage": "azure", "azure_storage_account_name": "account1"}
    assert storage_of(Settings(**good)).options.silver == "silver"
    with pytest.raises(ConfigurationError, match=named) as refused:
        storage_of(Settings(**{**good, **changed}))
    assert "not a key!" not in str(refused.value)


def test_a_container_without_an_account_is_named() -> None:
    storage = storage_of(Settings(storage="azure", azure_storage_accounts={"silver": "account1"}))
    with pytest.raises(ConfigurationError, match="'bronze'"):
        storage.readable("bronze/x")


def test_the_key_is_told_to_a_child_and_shown_to_nobody(tmp_path: Path) -> None:
    settings = Settings(
        storage="azure", azure_storage_account_name="account1", azure_storage_key=SecretStr(KEY), storage_root=tmp_path
    )
    place = StoragePlace.of(settings)
    assert KEY not in f"{place!r} {place} {place.model_dump_json()} {settings.shown()}"
    assert StoragePlace.model_validate(place.told()) == place
