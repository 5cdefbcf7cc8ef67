import json
from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.credentials import ADMIN, ROLES, Credentials


def test_made_once_for_every_role(tmp_path: Path) -> None:
    first = Credentials.load_or_create(tmp_path)
    second = Credentials.load_or_create(tmp_path)
    passwords = [first.password(role) for role in ROLES]
    assert passwords == [second.password(role) for role in ROLES]
    assert len(set(passwords)) == len(ROLES)
    assert all(len(password) >= 40 for password in passwords)


def test_the_file_is_private_and_nothing_else_is_left(tmp_path: Path) -> None:
    Credentials.load_or_create(tmp_path)
    assert Credentials.path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["credentials.json"]


def test_a_file_open_to_others_is_closed(tmp_path: Path) -> None:
    Credentials.load_or_create(tmp_path)
    Credentials.path(tmp_path).chmod(0o644)
    Credentials.load(tmp_path)
    assert Credentials.path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_a_role_that_is_new_gets_a_password_and_the_others_keep_theirs(tmp_path: Path) -> None:
    Credentials.path(tmp_path).write_text(json.dumps({ADMIN: "kept"}))
    completed = Credentials.load_or_create(tmp_path)
    assert completed.password(ADMIN) == "kept"
    assert Credentials.load(tmp_path).password("graticule_worker") == completed.password("graticule_worker")


def test_shown_it_gives_nothing_away(tmp_path: Path) -> None:
    credentials = Credentials.load_or_create(tmp_path)
    shown = f"{credentials!r} {credentials}"
    assert "graticule_admin=***" in shown
    assert not any(credentials.password(role) in shown for role in ROLES)


def test_an_unknown_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no password for the database role stranger"):
        Credentials.load_or_create(tmp_path).password("stranger")


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"passwords are missing: .*credentials\.json") as caught:
        Credentials.load(tmp_path)
    assert "backup" in str(caught.value.hint)


@pytest.mark.parametrize("content", ["", "{", '["secret"]', '{"graticule_admin": 5}', '{"other": "secret"}'])
def test_a_damaged_file_is_refused_without_quoting_it(tmp_path: Path, content: str) -> None:
    Credentials.path(tmp_path).write_text(content)
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        Credentials.load(tmp_path)
    assert "secret" not in str(caught.value)
