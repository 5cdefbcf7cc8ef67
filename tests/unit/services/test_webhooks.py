"""Callbacks are signed so that the official library verifies them, and carry nothing beyond what they should."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.integration.repositories import rows

from graticule.core.models import Callback
from graticule.services.webhooks import (
    OPERATORS,
    body_of,
    message_id,
    recipient_of,
    signed_headers,
    signing_secret,
)

MASTER = "a-master-secret-of-some-length"
PARTNERS = {"request_id": "8e5d0b3c-0000-4000-8000-000000000001", "status": "completed", "platform_id": "ddh"}
OPERATORS_OWN = {"job_id": "job", "status": "failed"}


def callback(**changes: Any) -> Callback:
    return rows.callback(**{"payload": PARTNERS, **changes}).model_copy(update={"callback_id": 7})


def test_the_official_library_verifies_the_signature() -> None:
    secret, body = signing_secret(MASTER, "ddh"), body_of(callback(), "https://partners.example")
    headers = signed_headers(secret, message_id(callback()), datetime.now(UTC), body)
    assert Webhook(secret).verify(body, headers) == json.loads(body)
    for spoilt in (body.replace(b"completed", b"failed"), body + b" "):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(spoilt, headers)
    for name, value in (("webhook-id", "msg_8"), ("webhook-timestamp", str(int(headers["webhook-timestamp"]) - 1))):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, {**headers, name: value})


def test_a_try_of_long_ago_cannot_be_sent_again_by_another() -> None:
    secret = signing_secret(MASTER, "ddh")
    headers = signed_headers(secret, "msg_1", datetime.now(UTC) - timedelta(minutes=6), b"{}")
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(secret).verify(b"{}", headers)


def test_each_recipient_has_a_secret_of_its_own() -> None:
    secrets = {signing_secret(master, who) for master in (MASTER, "another") for who in ("ddh", "arcgis", OPERATORS)}
    assert len(secrets) == 6
    for secret in secrets:
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
        assert MASTER not in secret
    body = b"{}"
    headers = signed_headers(signing_secret(MASTER, "ddh"), "msg_1", datetime.now(UTC), body)
    with pytest.raises(WebhookVerificationError):
        Webhook(signing_secret(MASTER, "arcgis")).verify(body, headers)


def test_a_secret_is_the_same_in_all_versions_of_the_program() -> None:
    # printf webhook:ddh | openssl dgst -sha256 -hmac a-master-secret-of-some-length -binary | base64
    assert signing_secret(MASTER, "ddh") == "whsec_RG46hVKHSqQjla86icDYS9O0LmM5AmPy0dl6N3IE9Wg="


def test_the_id_is_that_of_the_callback_and_not_of_the_try() -> None:
    first, second = callback(attempt_count=1), callback(attempt_count=2, next_attempt_at=rows.LATER)
    assert message_id(first) == message_id(second) == f"msg_7_{int(rows.NOW.timestamp())}"
    assert message_id(first) != message_id(callback(created_at=rows.LATER))


@pytest.mark.parametrize(
    ("public_url", "begins"),
    [("", "/api"), ("https://p.example/", "https://p.example/api"), ("https://p.example/x", "https://p.example/x/api")],
)
def test_a_partner_is_told_of_its_request_and_of_nothing_else(public_url: str, begins: str) -> None:
    request_id = PARTNERS["request_id"]
    assert json.loads(body_of(callback(), public_url)) == {
        "request_id": request_id,
        "status": "completed",
        "result_url": f"{begins}/platform/status/{request_id}",
    }
    assert recipient_of(callback()) == "ddh"


def test_an_operator_is_told_of_the_job() -> None:
    made = callback(payload=OPERATORS_OWN)
    told = {"job_id": "job", "status": "failed", "result_url": "https://p.example/api/status/job/job"}
    assert json.loads(body_of(made, "https://p.example")) == told
    assert recipient_of(made) == OPERATORS
    own = {"correlation_id": "order-7", "idempotency_key": "key-7"}
    asked = callback(payload={**OPERATORS_OWN, **own})
    assert json.loads(body_of(asked, "https://p.example")) == {**told, **own}
