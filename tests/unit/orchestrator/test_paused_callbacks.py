"""A copy of a system sends nothing to partners while its callbacks are paused."""

from pathlib import Path

import pytest

from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.orchestrator.engine import Engine, create_engine
from graticule.repositories.database import Database

AWAY = "postgresql://nobody@127.0.0.1:1/nowhere"


def engine(folder: Path, *, is_paused: bool) -> Engine:
    settings = Settings(home=folder, callbacks_paused=is_paused)
    return create_engine(settings, Database(AWAY, DatabaseRole.ORCHESTRATOR, pool_size=1), AWAY)


def test_an_orchestrator_with_paused_callbacks_has_nobody_who_sends_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert engine(tmp_path, is_paused=True).deliveries is None
    assert "callbacks are paused" in capsys.readouterr().out
    assert engine(tmp_path, is_paused=False).deliveries is not None
