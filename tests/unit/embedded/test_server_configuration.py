from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.configuration import DEFAULTS, rendered, write_configuration
from graticule.embedded.server_user import ServerUser


def test_defaults_are_durable() -> None:
    durable = {name: DEFAULTS[name] for name in ("fsync", "synchronous_commit", "full_page_writes")}
    assert set(durable.values()) == {"on"}
    assert "idle_in_transaction_session_timeout" not in DEFAULTS


def test_values_are_quoted() -> None:
    assert "a_b = 'it''s \\\\ here'" in rendered({"a_b": "it's \\ here"}).splitlines()


@pytest.mark.parametrize("settings", [{"a b": "1"}, {"": "1"}, {"a": "1\nport = 1"}, {"a'": ""}])
def test_what_would_break_out_of_a_line_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        rendered(settings)


def test_included_once_and_overridden_by_settings(tmp_path: Path) -> None:
    main = tmp_path / "postgresql.conf"
    main.write_text("work_mem = '1MB'\n")
    for _ in range(2):
        write_configuration(tmp_path, ServerUser.choose(), {"fsync": "off"})
    assert main.read_text() == "work_mem = '1MB'\n\ninclude 'graticule.conf'\n"
    assert "fsync = 'off'" in (tmp_path / "graticule.conf").read_text()
