"""The gateway's word for its caller: who believes it, and for how long."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from tests.examples import examples

from graticule.core.errors import ConfigurationError, Unauthenticated
from graticule.core.ids import ClientId, PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services.service_tokens import (
    ALGORITHM,
    GATEWAY,
    ISSUER,
    TO_ORCHESTRATOR,
    TO_SERVICES,
    Receiver,
    ServiceTokens,
)

KEY = "the key that the gateway and the orchestrator share, and that nobody else has"
TOKENS = ServiceTokens(SecretStr(KEY))
ADA = Caller("ada", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"), ClientId("ddh-portal"))

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=128)
callers = st.builds(
    Caller,
    names,
    st.frozensets(st.sampled_from(ClientRole)),
    st.none() | st.from_regex(r"[a-z][a-z0-9_]{0,49}", fullmatch=True),
    st.none() | st.from_regex(r"[a-z][a-z0-9-]{1,62}", fullmatch=True),
)


@settings(max_examples=examples(50))
@given(callers)
def test_what_is_signed_is_read(caller: Caller) -> None:
    assert TOKENS.read(TOKENS.sign(caller)) == caller


def test_the_gateway_can_speak_for_itself_and_may_do_nothing() -> None:
    assert TOKENS.read(TOKENS.sign(GATEWAY)).roles == frozenset()


def signed(key: str = KEY, algorithm: str | None = ALGORITHM, without: str = "", **changes: Any) -> str:
    now = datetime.now(UTC)
    claims = {"iss": ISSUER, "aud": TO_ORCHESTRATOR.audience, "iat": now, "exp": now + timedelta(seconds=60)}
    claims |= {"name": "ada", "roles": ["admin"], "platform_id": None, "client_id": None, **changes}
    claims.pop(without, None)
    return jwt.encode(claims, key, algorithm=algorithm)


def test_a_token_that_is_made_by_hand_would_count() -> None:
    assert TOKENS.read(signed()).name == "ada"


@pytest.mark.parametrize("key", [KEY, KEY[::-1]], ids=["with one key for both", "with a key for each"])
def test_a_token_for_one_process_does_not_count_at_another(key: str) -> None:
    """Not even if someone has given both the same key."""
    services = ServiceTokens(SecretStr(key), TO_SERVICES)
    assert services.read(services.sign(ADA)) == ADA
    refuse(services.sign(ADA))
    with pytest.raises(Unauthenticated, match="not valid") as refused:
        services.read(TOKENS.sign(ADA))
    assert "GRATICULE_SERVE_KEY" in str(refused.value.hint)


def seconds(offset: int) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=offset)


@pytest.mark.parametrize(
    "make",
    [
        lambda: "",
        lambda: "Zq7.Kx9.Vw3",
        lambda: signed("another key, which is long enough as well"),
        lambda: signed("", algorithm=None),
        lambda: signed(algorithm="HS384"),
        lambda: signed(iss="someone"),
        lambda: signed(aud="graticule-gateway"),
        lambda: signed(exp=seconds(-11)),
        lambda: signed(iat=seconds(60)),
        lambda: signed(name=""),
        lambda: signed(name="x" * 129),
        lambda: signed(name=7),
        lambda: signed(roles=["emperor"]),
        lambda: signed(roles="admin"),
        lambda: signed(platform_id="Not A Platform"),
    ],
)
def test_what_the_gateway_has_not_signed_so_does_not_count(make: Callable[[], str]) -> None:
    refuse(make())


@pytest.mark.parametrize("name", ["iss", "aud", "iat", "exp", "name", "roles", "platform_id", "client_id"])
def test_a_token_says_everything(name: str) -> None:
    refuse(signed(without=name))


def refuse(token: str) -> None:
    """See a token refused by an error that does not repeat it."""
    with pytest.raises(Unauthenticated) as refused:
        TOKENS.read(token)
    told = f"{refused.value!r} {refused.value.hint} {refused.value.detail}"
    assert [part for part in token.split(".") if part and part in told] == []
    assert refused.value.__cause__ is None


def test_a_token_lives_for_a_minute() -> None:
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False) as clock:
        token = TOKENS.sign(ADA)
        clock.shift(69)
        assert TOKENS.read(token) == ADA, "the clocks of two machines may differ a little"
        clock.shift(1)
        with pytest.raises(Unauthenticated):
            TOKENS.read(token)


@pytest.mark.parametrize("short", ["", "secret", "x" * 31])
@pytest.mark.parametrize("receiver", [TO_ORCHESTRATOR, TO_SERVICES], ids=lambda each: each.audience)
def test_a_short_key_is_refused_and_not_shown(short: str, receiver: Receiver) -> None:
    with pytest.raises(ConfigurationError, match=f"{receiver.setting} is too short.*32 bytes") as refused:
        ServiceTokens(SecretStr(short), receiver)
    assert not short or short not in f"{refused.value!r} {refused.value.hint}"


def test_bytes_count_and_not_letters() -> None:
    assert ServiceTokens(SecretStr("ю" * 16)).read(ServiceTokens(SecretStr("ю" * 16)).sign(ADA)) == ADA


def test_without_a_key_there_are_no_tokens() -> None:
    assert ServiceTokens.of(None) is None


def test_the_key_is_not_shown() -> None:
    assert KEY not in f"{TOKENS!r} {TOKENS} {vars(TOKENS)}"
