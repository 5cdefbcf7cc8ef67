"""`graticule config` shows every setting, and no secret."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cli.conftest import run

from graticule.config import Settings

HEAD, TAIL = "Zq7hunter", "Xk9rabbit"
anything = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
odd = st.one_of(anything, st.text("@/?#[]%:;&=+'\"\\ ,", max_size=6))
secrets = odd.map(lambda middle: f"{HEAD}{middle}{TAIL}")

PLACES: dict[str, tuple[str, Callable[[str], str]]] = {
    "the password of an address": (
        "GRATICULE_DATABASE_URL",
        lambda secret: f"postgresql://u:{quote(secret, safe='')}@h/db",
    ),
    "the password of an address, as it is": ("GRATICULE_DATABASE_URL", lambda secret: f"postgresql://u:{secret}@h/db"),
    "the password in the query of an address": (
        "GRATICULE_DATABASE_URL",
        lambda secret: f"postgresql://u@h/db?password={quote(secret)}",
    ),
    "the owner's password": (
        "GRATICULE_OWNER_DATABASE_URL",
        lambda secret: f"postgresql://u:{quote(secret, safe='')}@h/db?password={quote(secret)}",
    ),
    "the password of the parts": ("POSTGRES_PASSWORD", str),
    "the connection string": (
        "SERVICE_BUS_CONNECTION_STRING",
        lambda secret: f"Endpoint=sb://n.example/;SharedAccessKeyName=k;SharedAccessKey={secret}",
    ),
    "the admin key": ("GRATICULE_ADMIN_KEY", str),
}


def test_every_setting_is_shown_as_json() -> None:
    result = run("config")
    assert result.code == 0
    assert json.loads(result.out).keys() == Settings.model_fields.keys()
    assert result.err == ""


@pytest.mark.parametrize("place", PLACES)
@given(secret=secrets)
@settings(deadline=None, max_examples=40)
def test_a_secret_is_masked_whatever_characters_it_has(place: str, secret: str) -> None:
    name, written = PLACES[place]
    result = run("config", variables={name: written(secret), "POSTGRES_HOST": "h"})
    assert HEAD not in result.out + result.err
    assert TAIL not in result.out + result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("GRATICULE_ADMIN_KEY", "admin_key"),
        ("POSTGRES_PASSWORD", "postgres_password"),
        ("SERVICE_BUS_CONNECTION_STRING", "service_bus_connection_string"),
    ],
)
def test_a_secret_that_is_set_can_be_told_from_one_that_is_not(name: str, field: str) -> None:
    assert json.loads(run("config").out)[field] is None
    masked = json.loads(run("config", variables={name: HEAD}).out)[field]
    assert masked
    assert masked == json.loads(run("config", variables={name: TAIL * 3}).out)[field]  # nor does its length show


def test_what_is_no_secret_is_shown_as_it_is() -> None:
    shown = json.loads(
        run(
            "config", variables={"POSTGRES_HOST": "db.example", "GRATICULE_HOME": "/srv/[data]", "WORKER_QUEUE": "q"}
        ).out
    )
    assert (shown["postgres_host"], shown["home"], shown["worker_queue"]) == ("db.example", "/srv/[data]", "q")
