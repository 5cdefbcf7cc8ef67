"""A child process has the worker's identity for the storage alone, and only as tokens."""

import time
from typing import Any

import orjson
import pytest

from graticule.config import secret_variables
from graticule.core.errors import Unavailable
from graticule.identity import IDENTITY_VARIABLES
from graticule.worker.child_identity import EARLY_SECONDS, LentCredential
from graticule.worker.pool import child_environment


class Worker:
    """Answers what a child asks."""

    def __init__(self, seconds: float) -> None:
        self.asked: list[dict[str, Any]] = []
        self.seconds = seconds

    def ask(self, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        self.asked.append(header)
        told = {"token": f"token {len(self.asked)}", "expires_on": int(time.time() + self.seconds)}
        return {"kind": "answer"}, orjson.dumps(told)


def test_the_environment_of_a_child_leads_to_no_identity_and_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = secret_variables()
    assert {"GRATICULE_DATABASE_URL", "GRATICULE_POSTGRES_PASSWORD", "GRATICULE_AZURE_STORAGE_KEY"} <= secrets
    for name in IDENTITY_VARIABLES | secrets:
        monkeypatch.setenv(name, "a secret of the worker")
    assert "a secret of the worker" not in child_environment().values()


def test_a_token_is_asked_for_once_and_kept_until_it_is_about_to_end() -> None:
    worker = Worker(seconds=3600)
    lent = LentCredential(worker.ask)
    assert [lent.get_token("one").token, lent.get_token("another").token] == ["token 1"] * 2
    worker.seconds = EARLY_SECONDS - 1
    hasty = LentCredential(worker.ask)
    assert [hasty.get_token("one").token, hasty.get_token("one").token] == ["token 2", "token 3"]
    assert worker.asked == [{"kind": "token"}] * 3, "what for is not the child's to say"


def test_a_worker_without_a_token_says_so() -> None:
    lent = LentCredential(lambda _: ({"kind": "answer", "error": "No token could be had."}, b""))
    with pytest.raises(Unavailable, match="No token could be had"):
        lent.get_token("one")
