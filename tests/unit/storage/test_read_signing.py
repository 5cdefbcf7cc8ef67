"""Addresses of blobs: signed for one blob, for a while."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from pydantic import AnyHttpUrl, SecretStr

from graticule.config import HttpAddress, Settings
from graticule.core.errors import ConfigurationError, InvalidInput
from graticule.storage.place import storage_of
from graticule.storage.signing import LONGEST_SECONDS, ReadSigner

KEY = SecretStr("the-service-key-of-the-tests-is-long-enough")
URL = "https://gateway.example"


class Clock:
    now = 1000.5

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signer(clock: Clock) -> ReadSigner:
    return ReadSigner(KEY, URL, clock=clock)


def parts_of(address: str) -> tuple[str, str, str]:
    parts = urlsplit(address)
    query = parse_qs(parts.query)
    return unquote(parts.path).removeprefix("/storage/"), query["expires"][0], query["signature"][0]


@pytest.mark.parametrize("path", ["silver/a b/ü.tif", "silver/a?b=c&d#e", "silver/100%25"])
def test_an_address_holds_for_its_time(signer: ReadSigner, clock: Clock, path: str) -> None:
    address = signer.address(path, 60)
    assert address.startswith(f"{URL}/storage/silver/")
    given, expires, signature = parts_of(address)
    assert (given, expires) == (path, "1060")
    assert signer.admits(path, expires, signature)
    clock.now = 1059.9
    assert signer.admits(path, expires, signature)
    clock.now = 1060
    assert not signer.admits(path, expires, signature)


def test_an_address_is_good_for_nothing_else(signer: ReadSigner) -> None:
    path, expires, signature = parts_of(signer.address("silver/1", 60))
    changed = signature[:-1] + ("0" if signature[-1] != "0" else "1")
    others = [
        *(("silver/2", expires, signature), (path, "9999", signature), (path, expires, changed), (path, expires, "")),
        *(
            (path, "", ""),
            ("silver/11", "060", signature),
            (path, f"{expires} ", signature),
            (path, expires, "ä\ud800"),
        ),
    ]
    assert [other for other in others if signer.admits(*other)] == []
    assert not ReadSigner(SecretStr("another key"), URL, clock=Clock()).admits(path, expires, signature)


def test_the_service_key_itself_signs_nothing(signer: ReadSigner) -> None:
    import hmac

    path, expires, signature = parts_of(signer.address("silver/1", 60))
    assert hmac.digest(KEY.get_secret_value().encode(), f"{expires}\n{path}".encode(), "sha256").hex() != signature


def test_outputs_of_jobs_have_no_addresses(signer: ReadSigner) -> None:
    for path in ("outputs/job/task_1.json", "Outputs/job/task_1.json"):
        with pytest.raises(InvalidInput):
            signer.address(path, 60)
        assert not signer.admits(path, "9999", signer._signature(path, "9999"))


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_SECONDS + 1])
def test_an_address_holds_for_a_time_that_can_be_meant(signer: ReadSigner, seconds: int) -> None:
    with pytest.raises(InvalidInput):
        signer.address("silver/1", seconds)


async def test_what_is_missing_is_told(tmp_path: Path) -> None:
    given = {"home": tmp_path, "public_url": HttpAddress(AnyHttpUrl(URL)), "service_key": KEY}
    whole = storage_of(Settings(**given))  # type: ignore[arg-type]
    assert (await whole.presigned_read("silver/1", 5)).startswith(f"{URL}/storage/silver/1?expires=")
    for missing in ("public_url", "service_key"):
        storage = storage_of(Settings(**{**given, missing: None}))  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError) as told:
            await storage.presigned_read("silver/1")
        assert f"GRATICULE_{missing}".upper() in str(told.value)
