"""An orchestrator accepts the admin key of its data folder, with which the commands come."""

from pathlib import Path

from pydantic import SecretStr

from graticule.cli.installation import with_kept_admin_key
from graticule.cli.server import Server
from graticule.config import Settings


def test_the_key_of_the_data_folder_is_that_of_the_commands(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert with_kept_admin_key(settings).admin_key is None
    (tmp_path / "admin.key").write_text("kept\n")
    kept = with_kept_admin_key(settings).admin_key
    assert kept is not None
    assert kept.get_secret_value() == Server.locate(settings, "http://127.0.0.1:1").key == "kept"


def test_a_key_that_is_set_counts(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("kept\n")
    settings = Settings(home=tmp_path, admin_key=SecretStr("set"))
    assert with_kept_admin_key(settings).admin_key == SecretStr("set")
