"""The identity of a process: tokens from the endpoint that Azure gives it, kept until they are about to run out."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.azure_login import identified
from tests.managed_identity import ManagedIdentity, managed_identity

from graticule.core.errors import ConfigurationError, Unavailable
from graticule.identity import AsyncCredential, azure_credential, token

SCOPE = "https://storage.azure.com/.default"
RESOURCE = "https://storage.azure.com"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ManagedIdentity]:
    with managed_identity() as answering:
        yield answering


@pytest.fixture
def identity(endpoint: ManagedIdentity) -> Iterator[ManagedIdentity]:
    endpoint.seconds, endpoint.is_refusing = 3600, False
    endpoint.asked.clear()
    endpoint.tokens.clear()
    with identified(endpoint.environment):
        yield endpoint


async def test_a_token_is_asked_for_once_and_kept(identity: ManagedIdentity) -> None:
    assert [token(SCOPE), token(SCOPE)] == [identity.tokens[0]] * 2
    async with AsyncCredential() as credential:  # the same for those who await
        assert (await credential.get_token(SCOPE)).token == identity.tokens[0]
        assert (await credential.get_token_info(SCOPE)).token == identity.tokens[0]
    assert identity.asked == [RESOURCE]


def test_many_that_ask_at_once_are_given_one_token(identity: ManagedIdentity) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(token, [SCOPE] * 8)) == set(identity.tokens)
    assert identity.asked == [RESOURCE]


def test_each_resource_has_tokens_of_its_own(identity: ManagedIdentity) -> None:
    assert token(SCOPE) != token("https://servicebus.azure.net/.default")
    assert identity.asked == [RESOURCE, "https://servicebus.azure.net"]


def test_a_token_that_is_about_to_run_out_is_renewed(identity: ManagedIdentity) -> None:
    identity.seconds = 60
    first = token(SCOPE)
    identity.seconds = 3600
    assert token(SCOPE) == token(SCOPE) == identity.tokens[1] != first


def test_an_endpoint_that_refuses_or_is_asked_with_a_wrong_header_gives_nothing_away(
    identity: ManagedIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    identity.is_refusing = True
    with pytest.raises(Unavailable, match="no identity of this process was found or accepted") as refused:
        token(SCOPE)
    identity.is_refusing = False
    with identified({"IDENTITY_HEADER": "a-header-that-is-wrong"}), pytest.raises(Unavailable) as unknown:
        token(SCOPE)
    said = f"{refused.value} {unknown.value} {caplog.text}"
    assert RESOURCE in said
    assert "a-header-that-is-wrong" not in said
    assert identity.environment["IDENTITY_HEADER"] not in said
    assert identity.tokens == []


def test_no_token_is_written_into_a_log(identity: ManagedIdentity, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token(SCOPE)
    assert caplog.text
    assert identity.tokens[0] not in caplog.text
    assert identity.environment["IDENTITY_HEADER"] not in caplog.text


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with identified({}), pytest.raises(ConfigurationError, match=r"graticule\[azure\]"):
        azure_credential()
