"""Tokens of an identity by their claims, and what a token is for."""

import base64
import json
from typing import Any

import pytest
from tests.servicebus_emulator.refusal import Refusal
from tests.servicebus_emulator.tokens import Tokens, check_claims, covers, path_of

PAST, FUTURE = 1_000_000_000, 4_000_000_000


def _jwt(**claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.signature"


def test_a_token_for_service_bus_is_accepted() -> None:
    tokens = Tokens({}, check_claims)
    assert tokens.check(_jwt(aud="https://servicebus.azure.net", exp=FUTURE), "sb://host/q") == FUTURE


@pytest.mark.parametrize(
    "token",
    [
        _jwt(aud="https://storage.azure.com", exp=FUTURE),
        _jwt(aud="https://servicebus.azure.net", exp=PAST),
        _jwt(aud="https://servicebus.azure.net"),
        "no token",
        "a.b.c",
        "SharedAccessSignature sr=x",
        "SharedAccessSignature nothing",
    ],
)
def test_any_other_token_is_refused(token: str) -> None:
    with pytest.raises(Refusal):
        Tokens({"name": "key"}, check_claims).check(token, "sb://host/q")


def test_an_identity_needs_somebody_who_checks_it() -> None:
    with pytest.raises(Refusal, match="not accepted here"):
        Tokens({}, None).check(_jwt(aud="https://servicebus.azure.net", exp=FUTURE), "sb://host/q")


def test_what_is_granted_holds_below_it() -> None:
    granted = path_of("sb://host:5/Queue/")
    assert granted == "queue"
    assert [covers(granted, path) for path in ("queue", "queue/$management", "queue2", "")] == [
        True,
        True,
        False,
        False,
    ]
    assert covers("", "anything")
