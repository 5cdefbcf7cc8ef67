"""What a callback is made of, signed as in Standard Webhooks (standardwebhooks.com)."""

import base64
import hmac
import json
from datetime import datetime
from typing import Final

from graticule import __version__
from graticule.core.models import Callback
from graticule.services.callback_targets import check_callback_url

__all__ = [
    "OPERATORS",
    "body_of",
    "check_callback_url",
    "message_id",
    "recipient_of",
    "signed_headers",
    "signing_secret",
]

OPERATORS: Final = "@operators"  # the recipient of callbacks of operators' jobs: no platform can have this name
SUBMITTERS_OWN: Final = ("correlation_id", "idempotency_key")
_PREFIX: Final = "whsec_"


def signing_secret(master: str, recipient: str) -> str:
    """Give the secret that is shared with one recipient; no other recipient's can be told from it."""
    key = hmac.digest(master.encode(), f"webhook:{recipient}".encode(), "sha256")
    return _PREFIX + base64.b64encode(key).decode()


def recipient_of(callback: Callback) -> str:
    """Tell to whom a callback goes: a platform's id, or the operators."""
    return str(callback.payload.get("platform_id") or OPERATORS)


def message_id(callback: Callback) -> str:
    """Give the id that all tries of a callback carry, so that a receiver can tell that it had it already."""
    return f"msg_{callback.callback_id}_{int(callback.created_at.timestamp())}"


def body_of(callback: Callback, public_url: str) -> bytes:
    """Give what is sent: of a partner's request never the job, and nothing more than how it ended."""
    named = "request_id" if "request_id" in callback.payload else "job_id"
    key = callback.payload[named]
    path = f"/api/platform/status/{key}" if named == "request_id" else f"/api/status/job/{key}"
    body = {named: key, "status": callback.payload["status"], "result_url": public_url.rstrip("/") + path}
    if named == "job_id":  # whoever submitted by message knows the job by these alone
        body |= {name: callback.payload[name] for name in SUBMITTERS_OWN if callback.payload.get(name) is not None}
    return json.dumps(body, separators=(",", ":")).encode()


def signed_headers(secret: str, identity: str, at: datetime, body: bytes) -> dict[str, str]:
    """Give the headers of one try."""
    timestamp = str(int(at.timestamp()))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signature = hmac.digest(key, b".".join((identity.encode(), timestamp.encode(), body)), "sha256")
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Graticule/{__version__}",
        "webhook-id": identity,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
