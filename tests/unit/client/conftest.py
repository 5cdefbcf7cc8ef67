"""Both clients, and pauses that are noted instead of waited for."""

from collections.abc import Iterator

import pytest
from tests.unit.client.senders import SENDERS, Sender, noted_pauses


@pytest.fixture(params=SENDERS, ids=lambda sender: sender.name)
def sender(request: pytest.FixtureRequest) -> Sender:
    found: Sender = request.param
    return found


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    with noted_pauses(monkeypatch) as noted:
        yield noted
