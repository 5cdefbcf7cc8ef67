"""The identity of a process: tokens from the endpoint that Azure gives it, kept until they are about to run out."""

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
from tests.azure_login import identified
from tests.managed_identity import ManagedIdentity, managed_identity

from graticule.core.errors import ConfigurationError, Unavailable
from graticule.identity import DATABASE_SCOPE, PATIENCE, AsyncCredential, awaited_token, azure_credential, token

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


def test_the_identity_that_the_settings_name_is_asked_for(identity: ManagedIdentity) -> None:
    names = {"MANAGED_IDENTITY_CLIENT_ID": "a533cb80", "DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID": "b644dc91"}
    with identified({**identity.environment, **names}):
        token(SCOPE)
        token(DATABASE_SCOPE)
    assert identity.client_ids[-2:] == ["a533cb80", "b644dc91"]


def test_many_that_ask_at_once_are_given_one_token(identity: ManagedIdentity) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(token, [SCOPE] * 8)) == set(identity.tokens)
    assert identity.asked == [RESOURCE]


def test_each_resource_has_tokens_of_its_own(identity: ManagedIdentity) -> None:
    assert token(SCOPE) != token("https://servicebus.azure.net/.default")
    assert identity.asked == [RESOURCE, "https://servicebus.azure.net"]


async def test_a_resource_whose_token_is_late_and_busy_threads_hold_up_nobody_else(identity: ManagedIdentity) -> None:
    late, given = threading.Event(), identity.answer

    def answer(resource: str) -> dict[str, str]:
        assert resource != RESOURCE or late.wait(30)
        return given(resource)

    with ThreadPoolExecutor(1) as busy, patch.object(identity, "answer", answer):
        asyncio.get_running_loop().set_default_executor(busy)
        waiting = [asyncio.create_task(awaited_token(SCOPE)), asyncio.create_task(asyncio.to_thread(late.wait, 30))]
        async with asyncio.timeout(10), AsyncCredential() as credential:
            try:
                assert await awaited_token("https://ossrdbms-aad.database.windows.net/.default")
                assert await credential.get_token("https://servicebus.azure.net/.default")
                assert not waiting[0].done()
            finally:
                late.set()
            await asyncio.gather(*waiting)


def test_an_endpoint_that_takes_the_question_and_says_nothing_is_given_up() -> None:
    assert (PATIENCE["connection_timeout"] + PATIENCE["read_timeout"]) * (1 + PATIENCE["retry_total"]) < 60
    hasty = patch.dict(PATIENCE, read_timeout=0.2, retry_total=0)
    with socket.create_server(("127.0.0.1", 0)) as silent, hasty:
        there = ManagedIdentity(f"http://127.0.0.1:{silent.getsockname()[1]}/msi/token")
        with identified(there.environment), pytest.raises(Unavailable, match="No token for"):
            token(SCOPE)


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
