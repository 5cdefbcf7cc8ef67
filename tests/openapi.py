"""The OpenAPI documents of all applications: to make them takes seconds, so one test of a run does it for all."""

import fcntl
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from scripts.documentation import http_apis
from tests.conftest import HOME_VARIABLE


@cache
def documents() -> dict[str, Any]:
    """Give the documents by the names of the applications."""
    kept = Path(os.environ[HOME_VARIABLE]) / "openapi.json"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(json.dumps(http_apis.documents()), encoding="utf-8")
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found
