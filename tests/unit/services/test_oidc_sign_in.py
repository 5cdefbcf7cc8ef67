"""Signing in at an issuer: which pages it leads back to, and which settings it needs."""

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.config import Settings
from graticule.core.errors import ConfigurationError
from graticule.services.oidc import OpenIdTokens
from graticule.services.oidc_sign_in import HOME, OpenIdSignIn, page_of_ours

BASE = "https://gateway.example/api/session/oidc/callback"


@pytest.mark.parametrize(
    "to",
    [
        "/",
        "/reviews",
        "/jobs/0f?tab=nodes&q=a%20b#events",
        "/assets/x:y@z",
        "/a//b",
        "/apis",
        "/a.b/..c",
        "/a?x=/../api",
    ],
)
def test_a_page_of_ours_is_led_to(to: str) -> None:
    assert page_of_ours(to) == to


HOSTILE = [
    *("", " ", "reviews", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "/a\\b"),
    *("https://evil.example/", "javascript:alert(1)", "data:text/html,x", " /reviews", "/\t/evil.example"),
    *("/\n/evil.example", "/\r\nSet-Cookie: a=b", "/a b", "/\x00", "/é", "/" + "a" * 600, "?to=/x", "#x", "@evil"),
    *("/api/session/oidc?to=/api/session/oidc", "/api/proxy/x", "/api", "/api?x", "/api#x", "/%61pi/x", "/api%2fx"),
    *(
        "/./api/x",
        "/x/../api/session/oidc",
        "/%2e/api/x",
        "/x/%2E%2e/api/x",
        "/a/../b",
        "/.",
        "/..",
        "/.//evil.example",
    ),
]


@pytest.mark.parametrize("to", HOSTILE)
def test_everything_else_leads_to_the_first_page(to: str) -> None:
    assert page_of_ours(to) == HOME


@settings(max_examples=examples(300))
@given(st.text(st.sampled_from("/\\:?#@%.\t\n aevil"), max_size=12) | st.text(max_size=30))
def test_no_text_leads_to_another_host(to: str) -> None:
    stripped = re.sub(r"[\t\n\r]", "", page_of_ours(to)).replace("\\", "/")  # as browsers read it
    assert urlsplit(urljoin(BASE, stripped)).netloc == "gateway.example"


def test_who_signs_in_at_an_issuer_needs_one_and_a_key_to_seal_with() -> None:
    given: dict[str, Any] = {"oidc_issuer": "https://issuer.example", "oidc_audience": "a"}
    client: dict[str, Any] = {"oidc_client_id": "c", "oidc_client_secret": "very-secret"}
    key: dict[str, Any] = {"service_key": "x" * 40}

    def made(**settings: Any) -> OpenIdSignIn | None:
        found = Settings(**settings)
        return OpenIdSignIn.of(found, OpenIdTokens.of(found))

    assert made(**given, **key) is None
    assert made(**given, **client) is None
    with pytest.raises(ConfigurationError, match="GRATICULE_OIDC_ISSUER is not"):
        made(**client, **key)
    found = made(**given, **client, **key)
    assert found is not None
    assert "very-secret" not in f"{found!r} {vars(found)}"
