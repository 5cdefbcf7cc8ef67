"""docs/how-to/callbacks.md: its examples verify what is sent, and its numbers are those of the code."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.integration.repositories import rows
from tests.unit.docs.pages import blocks, codes, file_of, page

from graticule.api.app import ROUTERS
from graticule.config import Settings
from graticule.core.models.engine import EventType
from graticule.orchestrator.deliveries import AT_ONCE, AT_ONCE_PER_HOST
from graticule.repositories.callbacks import DeliveryState
from graticule.services.callback_targets import LONGEST_URL, check_callback_url
from graticule.services.deliveries import LONGEST_ASKED, PAUSES, SHORTEST_SECRET_BYTES, SPREAD
from graticule.services.safe_http import ALL_SECONDS, MOST_ANSWER_BYTES
from graticule.services.webhooks import body_of, signed_headers, signing_secret

PAGE = page("callbacks.md")
EXAMPLES = {str(file_of(block)): block for block in blocks(PAGE, "python")}
SECRET = signing_secret("a-master-secret-of-some-length", "ddh")


@pytest.fixture(params=EXAMPLES)
def verified(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Give the function of an example."""
    namespace: dict[str, Any] = {}
    exec(compile(EXAMPLES[request.param], request.param, "exec"), namespace)
    found: Callable[..., Any] = namespace["verified"]
    return found


def test_an_example_verifies_what_is_sent_and_nothing_else(verified: Callable[..., Any]) -> None:
    body = body_of(rows.callback(payload={"request_id": "r", "status": "completed"}), "")
    headers = signed_headers(SECRET, "msg_1_2", datetime.now(UTC), body)
    assert verified(SECRET, headers, body) == json.loads(body)
    for spoilt in (
        (SECRET, headers, body + b" "),
        (signing_secret("another", "ddh"), headers, body),
        (SECRET, {**headers, "webhook-timestamp": "1767225605"}, body),
        (SECRET, signed_headers(SECRET, "msg_1_2", datetime(2026, 1, 1, tzinfo=UTC), body), body),
    ):
        with pytest.raises(Exception, match=r"(?i)signature|signed|old"):
            verified(*spoilt)


def test_the_request_that_is_shown_is_one_that_is_sent() -> None:
    (shown,) = blocks(PAGE, "http")
    head, _, body = shown.strip().partition("\n\n")
    told = json.loads(body)
    payload = {"request_id": told["request_id"], "status": told["status"]}
    assert body_of(rows.callback(payload=payload), "https://partners.example") == body.encode()
    sent = signed_headers(SECRET, "msg_12_1767225600", datetime.now(UTC), b"")
    assert {line.split(": ")[0] for line in head.splitlines()[1:]} == {*sent} - {"User-Agent"}


def test_the_numbers_are_those_of_the_code() -> None:
    for said in (
        "The pauses are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h",
        f"each with {SPREAD * 100:g} % more or less",
        f"After {len(PAUSES) + 1} tries",
        f"none within {ALL_SECONDS:g} s",
        f"within {LONGEST_ASKED.total_seconds() / 3600:g} h",
        f"at most {MOST_ANSWER_BYTES // 1024} KiB",
        f"At most {AT_ONCE}\ncallbacks",
        f"at most {AT_ONCE_PER_HOST} of them to one host",
        f"at least {SHORTEST_SECRET_BYTES} bytes",
        f"at most {LONGEST_URL} characters",
    ):
        assert said in PAGE, said


def test_what_is_named_exists() -> None:
    paths = {getattr(route, "path", "") for router in ROUTERS for route in router.routes}
    assert set(re.findall(r"/api/v1/[\w/{}-]+", PAGE)) <= paths
    assert set(re.findall(r"GRATICULE_[A-Z_]+", PAGE)) <= {
        f"GRATICULE_{name.upper()}" for name in Settings.model_fields
    }
    assert {EventType.CALLBACK_SENT.value, EventType.CALLBACK_FAILED.value} <= {*codes(PAGE)}
    assert all(state.value in PAGE for state in DeliveryState)


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "[::ffff:127.0.0.1]", "localhost"])
def test_the_spellings_that_are_named_are_refused(host: str) -> None:
    assert f"`{host}`" in PAGE
    with pytest.raises(Exception, match="private"):
        check_callback_url(f"http://{host}/", "")
