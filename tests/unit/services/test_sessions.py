"""Sealed sessions: what was sealed here is read here, for its time, and nothing else is."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr
from tests.examples import examples

from graticule.config import Settings
from graticule.core.errors import Unauthenticated
from graticule.core.ids import ClientId, PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.services.access import ADMIN, AccessService, key_hash, new_key
from graticule.services.seals import ALGORITHM, LONGEST, Seal
from graticule.services.sessions import Sessions

SERVICE_KEY = "the-service-key-of-the-tests-is-long-enough"
ADMIN_KEY = "the-admin-key-of-the-tests"
ISSUER = "https://issuer.example"
HOUR = timedelta(hours=1)
ADA = Caller("ada", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
PORTAL = Caller("portal", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"), ClientId("portal"))


class Note(BaseModel):
    text: str


def seal(key: str = SERVICE_KEY, purpose: str = "tests", life: timedelta = HOUR) -> Seal:
    return Seal(SecretStr(key), purpose, life)


# The seal


@settings(max_examples=examples(100))
@given(st.text(st.characters(codec="utf-8"), max_size=500))
def test_what_is_sealed_is_read(text: str) -> None:
    assert seal().open(seal().close(Note(text=text)), Note) == Note(text=text)


@settings(max_examples=examples(200))
@given(place=st.integers(min_value=0), letter=st.characters(max_codepoint=0x2FF), text=st.text("ab", max_size=20))
def test_a_letter_that_is_changed_breaks_the_seal(place: int, letter: str, text: str) -> None:
    sealed = seal().close(Note(text=text))
    at = place % (len(sealed) - 1)  # not all bits of the last letter stand for something
    changed = sealed[:at] + letter + sealed[at + 1 :]
    assert (seal().open(changed, Note) is not None) == (changed == sealed)


@settings(max_examples=examples(200))
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_what_was_never_sealed_is_not_read(text: str) -> None:
    assert seal().open(text, Note) is None


def signed(content: Any, key: bytes | str, algorithm: str | None = ALGORITHM, **claims: Any) -> str:
    given = {"exp": datetime.now(UTC) + HOUR, "content": content, **claims}
    return jwt.encode({name: value for name, value in given.items() if value is not None}, key, algorithm=algorithm)


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
def test_a_seal_is_for_one_purpose_and_of_one_key() -> None:
    sealed = seal().close(Note(text="a"))
    assert seal(purpose="others").open(sealed, Note) is None
    assert seal(key=SERVICE_KEY + "x").open(sealed, Note) is None
    own = seal()._key
    assert seal().open(signed({"text": "a"}, own), Note) == Note(text="a")  # else the others below tell nothing
    for forged in (
        signed({"text": "a"}, SERVICE_KEY.encode()),
        signed({"text": "a"}, "", algorithm=None),
        signed({"text": "a"}, own, algorithm="HS512"),
        signed({"text": "a"}, own, exp=None),
        signed({"text": 1}, own),
        signed(None, own),
        signed(["text"], own),
        "x" * (LONGEST + 1),
    ):
        assert seal().open(forged, Note) is None


def test_a_seal_lives_so_long_and_no_longer() -> None:
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False) as clock:
        sealed = seal().close(Note(text="a"))
        clock.shift(3599)
        assert seal().open(sealed, Note) is not None
        clock.shift(1)
        assert seal().open(sealed, Note) is None


def test_a_mark_knows_a_secret_again_and_differs_with_the_key() -> None:
    assert seal().mark("secret") == seal().mark("secret")
    assert len({seal().mark("secret"), seal().mark("other"), seal(purpose="others").mark("secret")}) == 3


# Sessions


class OneClient(AccessService):
    """Knows one key, for as long as the test lets it."""

    def __init__(self) -> None:
        super().__init__(Database("postgresql://nobody@127.0.0.1:1/nowhere", DatabaseRole.GATEWAY), Settings())
        self.clients: dict[str, Caller] = {}

    async def by_key_hash(self, hashed: str) -> Caller:
        if hashed not in self.clients:
            raise Unauthenticated("The API key is not the right one.")
        return self.clients[hashed]


def sessions(access: AccessService | None = None, **changes: Any) -> Sessions:
    given: dict[str, Any] = {"service_key": SERVICE_KEY, "admin_key": ADMIN_KEY, "oidc_issuer": ISSUER, **changes}
    found = Sessions.of(Settings(**given), access or OneClient())
    assert found is not None
    return found


def test_without_a_service_key_there_are_no_sessions() -> None:
    assert Sessions.of(Settings(), OneClient()) is None


async def test_the_session_of_a_key_is_that_of_its_client_as_it_is_now() -> None:
    access, key = OneClient(), new_key().get_secret_value()
    access.clients[key_hash(key)] = PORTAL
    sealed = sessions(access).begun_by_key(key)
    assert await sessions(access).caller(sealed) == PORTAL
    promoted = Caller("portal", frozenset({ClientRole.ADMIN}), None, ClientId("portal"))
    access.clients[key_hash(key)] = promoted
    assert await sessions(access).caller(sealed) == promoted
    access.clients.clear()
    with pytest.raises(Unauthenticated):
        await sessions(access).caller(sealed)


async def test_the_session_of_the_admin_key_holds_as_long_as_that_key_and_tells_nothing_of_it() -> None:
    sealed = sessions().begun_by_key(ADMIN_KEY)
    assert await sessions().caller(sealed) is ADMIN
    told = base64.urlsafe_b64decode(sealed.split(".")[1] + "==").decode()
    assert ADMIN_KEY not in told
    assert key_hash(ADMIN_KEY) not in told  # a key that a person chose could be guessed by that
    for changed in ({"admin_key": "another"}, {"admin_key": ""}, {"admin_key": None}, {"service_key": "y" * 40}):
        with pytest.raises(Unauthenticated, match="session has ended"):
            await sessions(**changed).caller(sealed)


async def test_the_session_of_a_token_has_its_roles_and_ends_with_the_trust_in_its_issuer() -> None:
    sealed = sessions().begun_by_issuer(ADA)
    assert await sessions().caller(sealed) == ADA
    for issuer in ("https://another.example", None):
        with pytest.raises(Unauthenticated, match="session has ended"):
            await sessions(oidc_issuer=issuer).caller(sealed)


async def test_a_session_lasts_as_long_as_is_set_whatever_is_done_in_it() -> None:
    short = sessions(session_minutes=1)
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False) as clock:
        sealed = short.begun_by_issuer(ADA)
        for _ in range(59):
            clock.shift(1)
            await short.caller(sealed)
        clock.shift(1)
        with pytest.raises(Unauthenticated, match="session has ended"):
            await short.caller(sealed)


@pytest.mark.parametrize("minutes", [0, -1, 10_081])
def test_a_session_lasts_a_minute_at_least_and_a_week_at_most(minutes: int) -> None:
    with pytest.raises(ValueError, match="session_minutes"):
        Settings(session_minutes=minutes)


def test_no_secret_is_shown() -> None:
    shown = f"{sessions()!r} {vars(sessions())} {seal()!r}"
    assert not [secret for secret in (SERVICE_KEY, ADMIN_KEY) if secret in shown]
