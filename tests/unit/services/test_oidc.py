"""Tokens of an OpenID issuer: which of them count, whose they are, and what happens when the issuer is away."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from structlog.testing import capture_logs
from tests.unit.services.issuer import AUDIENCE, DISCOVERY, Issuer, ec_key, issuer_running, jwk, rsa_key

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, GraticuleError, PermissionDenied, Unauthenticated, Unavailable
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services import issuer_documents
from graticule.services.oidc import ALGORITHMS, OpenIdTokens

NOW = 1_000_000.0
HMAC_NAMES = ["none", "None", "HS256", "HS512", "RS256,HS256", "rs256", "", " , ", "ES256K"]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served() -> Iterator[tuple[Issuer, ThreadingHTTPServer]]:
    with issuer_running() as both:
        yield both


@pytest.fixture
def issuer(served: tuple[Issuer, ThreadingHTTPServer]) -> Issuer:
    return served[0]


@pytest.fixture
def clock() -> Clock:
    return Clock()


Reader = Callable[..., OpenIdTokens]


@pytest.fixture
def reader(issuer: Issuer, clock: Clock) -> Reader:
    """Give what makes a reader of the issuer's tokens."""

    def make(**changes: Any) -> OpenIdTokens:
        given = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, **changes}
        tokens = OpenIdTokens.of(Settings(**given), clock)
        assert tokens is not None
        return tokens

    return make


def test_without_an_issuer_there_are_no_tokens() -> None:
    assert OpenIdTokens.of(Settings()) is None


# Who it is


async def test_a_sound_token_tells_who_calls(reader: Reader, issuer: Issuer) -> None:
    caller = await reader().read(issuer.token(roles=["operator", "reviewer", "something-else", 7, None]))
    assert caller == Caller("ada@example.org", frozenset({ClientRole.OPERATOR, ClientRole.REVIEWER}))


@pytest.mark.parametrize(
    ("claim", "given"),
    [
        ("roles", {"roles": "reviewer  operator"}),
        ("scp", {"scp": "openid reviewer operator", "roles": ["admin"]}),
        ("realm_access.roles", {"realm_access": {"roles": ["reviewer", "operator", "offline_access"]}}),
        ("https://example.org/roles", {"https://example.org/roles": ["reviewer", "operator"]}),
    ],
)
async def test_roles_are_found_where_the_issuer_puts_them(
    reader: Reader, issuer: Issuer, claim: str, given: dict[str, Any]
) -> None:
    caller = await reader(oidc_role_claim=claim).read(issuer.token(**given))
    assert caller.roles == {ClientRole.OPERATOR, ClientRole.REVIEWER}


@pytest.mark.parametrize(
    "roles", [[], "", "superuser", ["Admin"], None, {"admin": True}, 1, ["admin "], [["admin"]], "adminoperator"]
)
async def test_without_a_role_of_ours_nobody_gets_in(reader: Reader, issuer: Issuer, roles: object) -> None:
    with pytest.raises(PermissionDenied, match="none of our roles"):
        await reader().read(issuer.token(roles=roles))


@pytest.mark.parametrize("claim", ["roles", "realm_access.roles", "a.b.c", ".", ""])
async def test_a_claim_that_is_missing_gives_no_role(reader: Reader, issuer: Issuer, claim: str) -> None:
    with pytest.raises(PermissionDenied):
        await reader(oidc_role_claim=claim).read(issuer.token(without=("roles",), realm_access="a string"))


async def test_a_submitter_speaks_for_its_platform(reader: Reader, issuer: Issuer) -> None:
    caller = await reader(oidc_platform_claim="extra.partner").read(
        issuer.token(roles=["submitter"], extra={"partner": "ddh"})
    )
    assert (caller.platform_id, caller.client_id) == ("ddh", None)


@pytest.mark.parametrize("platform", [None, "", "DDH", "ddh ", "d" * 51, ["ddh"], "ddh\n", {"id": "ddh"}])
async def test_a_submitter_without_a_platform_is_refused(reader: Reader, issuer: Issuer, platform: object) -> None:
    with pytest.raises(PermissionDenied, match="which platform"):
        await reader().read(issuer.token(roles=["submitter"], platform_id=platform))


async def test_staff_is_bound_to_no_platform(reader: Reader, issuer: Issuer) -> None:
    caller = await reader().read(issuer.token(roles=["reviewer"], platform_id="ddh"))
    assert caller.platform_id is None


@pytest.mark.parametrize(
    "name", [None, "", "a" * 129, "a\nb", "a\x00", "a\x85b", "a\ud800", "\udfff", ["ada@example.org"], 7]
)
async def test_a_name_that_cannot_be_recorded_is_refused(reader: Reader, issuer: Issuer, name: object) -> None:
    with pytest.raises(Unauthenticated):
        await reader(oidc_name_claim="upn").read(issuer.token(upn=name))


@pytest.mark.parametrize("name", ["admin", "gateway", "worker", "Admin", " WORKER "])
async def test_nobody_acts_under_the_name_of_one_of_our_parts(reader: Reader, issuer: Issuer, name: str) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(sub=name))
    assert (await reader().read(issuer.token(sub=f"{name}x".strip()))).name


async def test_the_name_is_taken_from_the_claim_of_the_settings(reader: Reader, issuer: Issuer) -> None:
    name = "Zoë O'Neill <zoe@example.org> " + "x" * 98
    assert (await reader(oidc_name_claim="upn").read(issuer.token(upn=name))).name == name


# What does not count


def times(**seconds: int) -> dict[str, Any]:
    return {name: int(time.time()) + offset for name, offset in seconds.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://elsewhere.example"},
        {"aud": "api://another"},
        {"aud": []},
        {"aud": [AUDIENCE + "/x"]},
        {"without": ("exp",)},
        {"without": ("aud",)},
        {"without": ("iss",)},
        {"exp": "soon"},
    ],
)
async def test_a_token_for_others_or_without_an_end_does_not_count(
    reader: Reader, issuer: Issuer, changes: dict[str, Any]
) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(**changes))


async def test_an_audience_may_be_one_of_several(reader: Reader, issuer: Issuer) -> None:
    assert (await reader().read(issuer.token(aud=["api://another", AUDIENCE]))).name == "ada@example.org"


@pytest.mark.parametrize("offsets", [{"exp": -61}, {"nbf": 65}, {"iat": 65}])
async def test_a_token_out_of_its_time_does_not_count(reader: Reader, issuer: Issuer, offsets: dict[str, int]) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(**times(**offsets)))


@pytest.mark.parametrize("offsets", [{"exp": -50}, {"nbf": 55}])
async def test_clocks_may_differ_by_a_minute(reader: Reader, issuer: Issuer, offsets: dict[str, int]) -> None:
    assert (await reader().read(issuer.token(**times(**offsets)))).name == "ada@example.org"


def unsigned(token: str, **header: Any) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps({"typ": "JWT", **header}).encode()).decode().rstrip("=")
    return f"{encoded}.{token.split('.')[1]}."


@pytest.mark.parametrize("name", ["none", "None", "NONE", "", None, ["RS256"]])
async def test_a_token_that_nobody_signed_does_not_count(reader: Reader, issuer: Issuer, name: object) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(unsigned(issuer.token(), alg=name, kid="first"))


@pytest.mark.parametrize("shape", [Encoding.PEM, Encoding.DER])
async def test_the_public_key_is_no_shared_secret(reader: Reader, issuer: Issuer, shape: Encoding) -> None:
    """A library that lets the token choose would check HMAC with the public key, which anyone has."""
    public = rsa_key().public_key().public_bytes(shape, PublicFormat.SubjectPublicKeyInfo)
    payload = issuer.token().split(".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first"}').decode().rstrip("=")
    signature = hmac.new(public, f"{header}.{payload}".encode(), hashlib.sha256).digest()
    forged = f"{header}.{payload}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    with pytest.raises(Unauthenticated):
        await reader().read(forged)


async def test_only_the_algorithms_of_the_settings_count(reader: Reader, issuer: Issuer) -> None:
    issuer.keys = [jwk(rsa_key()), jwk(ec_key(), "curve")]
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(algorithm="RS512"))
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(ec_key(), algorithm="ES256", kid="curve"))
    several = reader(oidc_algorithms="ES256, RS512 ,PS256")
    assert (await several.read(issuer.token(ec_key(), algorithm="ES256", kid="curve"))).name == "ada@example.org"
    assert (await several.read(issuer.token(algorithm="RS512"))).name == "ada@example.org"
    assert (await several.read(issuer.token(algorithm="PS256"))).name == "ada@example.org"
    with pytest.raises(Unauthenticated):
        await several.read(issuer.token())


async def test_a_key_that_is_for_one_algorithm_serves_no_other(reader: Reader, issuer: Issuer) -> None:
    issuer.keys = [jwk(rsa_key(), alg="RS256")]
    both = reader(oidc_algorithms="RS256,RS512")
    assert (await both.read(issuer.token())).name == "ada@example.org"
    with pytest.raises(Unauthenticated):
        await both.read(issuer.token(algorithm="RS512"))


async def test_a_key_of_another_type_or_use_is_not_taken(reader: Reader, issuer: Issuer) -> None:
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).decode(), "kid": "first"}
    issuer.keys = [secret, {"kty": "RSA"}, jwk(rsa_key(), "for-encryption", use="enc"), jwk(ec_key(), "curve")]
    both = reader(oidc_algorithms="RS256,ES256")
    for kid in ("first", "for-encryption", "curve"):
        with pytest.raises(Unauthenticated):
            await both.read(issuer.token(kid=kid))


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "ключ", "x" * 20_000, "e30.e30.e30"])
async def test_what_is_no_token_does_not_count(reader: Reader, token: str) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(token)


async def test_a_signature_of_another_key_does_not_count(reader: Reader, issuer: Issuer) -> None:
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(rsa_key(1)))


async def test_a_changed_payload_does_not_count(reader: Reader, issuer: Issuer) -> None:
    head, _, signature = issuer.token().split(".")
    other = issuer.token(roles=["admin"]).split(".")[1]
    with pytest.raises(Unauthenticated):
        await reader().read(f"{head}.{other}.{signature}")


async def test_no_refusal_repeats_the_token(reader: Reader, issuer: Issuer) -> None:
    tokens = [issuer.token(aud="x"), issuer.token(kid="other"), issuer.token(roles=[]), issuer.token(rsa_key(1))]
    tokens += [issuer.token(sub="a\nb"), issuer.token(algorithm="RS512"), issuer.token(exp=1), "Zq7.Kx9.Vw3"]
    for token in tokens:
        with capture_logs() as lines, pytest.raises(GraticuleError) as refused:
            await reader().read(token)
        told = f"{refused.value!r} {refused.value} {refused.value.detail} {lines}"
        assert [part for part in token.split(".") if part in told] == []
        assert refused.value.__cause__ is None


# The keys


async def test_keys_are_fetched_once(reader: Reader, issuer: Issuer) -> None:
    tokens = reader()
    await asyncio.gather(*(tokens.read(issuer.token()) for _ in range(10)))
    assert issuer.asked == [f"/tenant{DISCOVERY}", issuer.keys_path]


async def test_the_address_of_the_keys_may_be_set(reader: Reader, issuer: Issuer) -> None:
    tokens = reader(oidc_jwks_url=f"{issuer.url}/keys")
    assert (await tokens.read(issuer.token())).name == "ada@example.org"
    assert issuer.asked == [issuer.keys_path]


async def test_keys_are_fetched_again_after_an_hour(reader: Reader, issuer: Issuer, clock: Clock) -> None:
    tokens = reader(oidc_jwks_url=f"{issuer.url}/keys")
    await tokens.read(issuer.token())
    clock.now += 3599
    await tokens.read(issuer.token())
    assert len(issuer.asked) == 1
    issuer.keys = [jwk(rsa_key(1), "second")]
    clock.now += 1
    with pytest.raises(Unauthenticated):
        await tokens.read(issuer.token())  # the issuer has taken this key back
    assert len(issuer.asked) == 2


async def test_a_new_key_is_found_as_soon_as_it_is_used(reader: Reader, issuer: Issuer, clock: Clock) -> None:
    tokens = reader(oidc_jwks_url=f"{issuer.url}/keys")
    await tokens.read(issuer.token())
    issuer.keys = [jwk(rsa_key()), jwk(rsa_key(1), "second")]
    clock.now += 31
    new = issuer.token(rsa_key(1), kid="second")
    found = await asyncio.gather(*(tokens.read(new) for _ in range(10)))
    assert {caller.name for caller in found} == {"ada@example.org"}
    assert len(issuer.asked) == 2


async def test_invented_key_ids_do_not_make_us_ask_again_and_again(
    reader: Reader, issuer: Issuer, clock: Clock
) -> None:
    tokens = reader(oidc_jwks_url=f"{issuer.url}/keys")
    for number in range(20):
        with pytest.raises(Unauthenticated):
            await tokens.read(issuer.token(kid=f"invented-{number}"))
        clock.now += 3
    assert len(issuer.asked) == 2  # at the beginning, and once in the minute after


async def test_a_token_without_a_key_id_counts_only_when_there_is_one_key(
    reader: Reader, issuer: Issuer, clock: Clock
) -> None:
    assert (await reader().read(issuer.token(kid=None))).name == "ada@example.org"
    issuer.keys = [jwk(rsa_key()), jwk(rsa_key(1), "second")]
    with pytest.raises(Unauthenticated):
        await reader().read(issuer.token(kid=None))


async def test_while_the_issuer_is_away_the_keys_that_we_have_count(
    reader: Reader, served: tuple[Issuer, ThreadingHTTPServer], clock: Clock
) -> None:
    issuer, server = served
    tokens = reader()
    await tokens.read(issuer.token())
    server.shutdown()
    server.server_close()
    clock.now += 10_000
    assert (await tokens.read(issuer.token())).name == "ada@example.org"
    with pytest.raises(Unavailable):  # it may be a new key: nobody can tell now
        await tokens.read(issuer.token(kid="second"))


async def test_when_the_issuer_cannot_be_reached_and_no_key_is_known_the_answer_is_later(
    reader: Reader, issuer: Issuer, clock: Clock
) -> None:
    tokens = reader()
    issuer.answers[f"/tenant{DISCOVERY}"] = (500, {}, b"")
    for _ in range(3):
        with pytest.raises(Unavailable):
            await tokens.read(issuer.token())
    assert len(issuer.asked) == 1, "the others were told so without asking again"
    del issuer.answers[f"/tenant{DISCOVERY}"]
    clock.now += 5
    assert (await tokens.read(issuer.token())).name == "ada@example.org"


REDIRECTED = (302, {"Location": "/tenant/keys"}, b"")
BAD_KEYS = [b"", b"{", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1]}', b'{"keys": [{"kty":"RSA"}]}']
BAD_KEYS += [b"[" * 100_000, b"\xff\xfe"]


@pytest.mark.parametrize(
    "answer", [REDIRECTED, (404, {}, b""), (204, {}, b""), *((200, {}, body) for body in BAD_KEYS)]
)
async def test_an_answer_that_is_no_list_of_keys_is_as_good_as_none(
    reader: Reader, issuer: Issuer, answer: tuple[int, dict[str, str], bytes]
) -> None:
    issuer.answers["/tenant/moved"] = answer
    with pytest.raises(Unavailable):
        await reader(oidc_jwks_url=f"{issuer.url}/moved").read(issuer.token())
    assert issuer.asked == ["/tenant/moved"]


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://another.example"},
        {"jwks_uri": "http://keys.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": None},
    ],
)
async def test_a_discovery_that_leads_elsewhere_is_not_followed(
    reader: Reader, issuer: Issuer, changes: dict[str, Any]
) -> None:
    issuer.answers[f"/tenant{DISCOVERY}"] = (200, {}, json.dumps({**issuer.discovery, **changes}).encode())
    with pytest.raises(Unavailable):
        await reader().read(issuer.token())
    assert issuer.keys_path not in issuer.asked


async def test_an_issuer_that_does_not_answer_is_not_waited_for(
    reader: Reader, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_documents, "TIMEOUT_SECONDS", 0.1)
    issuer.may_answer.clear()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(reader().read(issuer.token()), 5)


async def test_an_answer_without_end_is_not_read(reader: Reader, issuer: Issuer) -> None:
    issuer.keys.append({"kty": "unknown", "padding": "x" * issuer_documents.MOST_BYTES})
    with pytest.raises(Unavailable):
        await reader().read(issuer.token())


async def test_a_secret_in_the_address_of_the_keys_is_not_told(reader: Reader, issuer: Issuer) -> None:
    tokens = reader(oidc_jwks_url=f"{issuer.url}/nowhere?code=very-secret")
    with capture_logs() as lines, pytest.raises(Unavailable) as refused:
        await tokens.read(issuer.token())
    assert "very-secret" not in f"{lines} {refused.value!r} {refused.value.detail} {tokens!r} {vars(tokens)}"


# The settings


@pytest.mark.parametrize("named", HMAC_NAMES)
def test_algorithms_by_which_a_checker_could_sign_are_refused(named: str) -> None:
    settings = Settings(oidc_issuer="https://issuer.example", oidc_audience=AUDIENCE, oidc_algorithms=named)
    with pytest.raises(ConfigurationError, match="GRATICULE_OIDC_ALGORITHMS"):
        OpenIdTokens.of(settings)


def test_all_accepted_algorithms_are_asymmetric() -> None:
    assert all(re.fullmatch(r"(RS|PS|ES)(256|384|512)|EdDSA", name) for name in ALGORITHMS)
    assert set(jwt.algorithms.get_default_algorithms()) >= ALGORITHMS


def test_an_issuer_needs_an_audience() -> None:
    with pytest.raises(ConfigurationError, match="AUDIENCE"):
        OpenIdTokens.of(Settings(oidc_issuer="https://issuer.example"))


@pytest.mark.parametrize(
    ("changes", "is_accepted"),
    [
        ({"oidc_issuer": "https://issuer.example/tenant"}, True),
        ({"oidc_issuer": "http://issuer.example"}, False),
        ({"oidc_issuer": "http://issuer.example", "development": True}, True),
        ({"oidc_issuer": "http://localhost:8080"}, True),
        ({"oidc_issuer": "issuer.example"}, False),
        ({"oidc_issuer": "https://"}, False),
        ({"oidc_issuer": "https://issuer.example", "oidc_jwks_url": "http://issuer.example/keys"}, False),
        ({"oidc_issuer": "https://issuer.example", "oidc_jwks_url": "https://keys.example/keys"}, True),
    ],
)
def test_keys_come_by_https(changes: dict[str, Any], *, is_accepted: bool) -> None:
    settings = Settings(**{"oidc_audience": AUDIENCE, **changes})
    if is_accepted:
        assert OpenIdTokens.of(settings) is not None
        return
    with pytest.raises(ConfigurationError, match="https"):
        OpenIdTokens.of(settings)
