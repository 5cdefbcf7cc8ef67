"""Which secrets `graticule up` gives to which process: each knows what it needs, and those that read files least."""

from pathlib import Path

import pytest

from graticule.cli.installation import AdminKey, Installation, _environments
from graticule.cli.local_database import DatabaseUrls
from graticule.config import Settings

KEYS = {
    "GRATICULE_ADMIN_KEY",
    "GRATICULE_OIDC_CLIENT_SECRET",
    "GRATICULE_SERVICE_KEY",
    "GRATICULE_SERVE_KEY",
    "GRATICULE_WEBHOOK_SECRET",
}
URLS = DatabaseUrls(place="here", owner="owner", orchestrator="o", gateway="g", worker="w", serve="s")


def running(home: Path, serve: str | None) -> Installation:
    at, key = "http://127.0.0.1:", AdminKey("here", "admin", is_new=True)
    return Installation(f"{at}8000", f"{at}8001", (f"{at}8002",), serve, "here", home, home, key)


def known(settings: Settings, home: Path, serve: str | None) -> dict[str, set[str]]:
    """Give the names of the keys that each process is given."""
    environments = _environments(settings, running(home, serve), URLS)
    return {process: KEYS & set(environment) for process, environment in environments.items()}


def test_the_services_are_given_the_key_for_them_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "inherited" * 4)
    assert known(Settings(), tmp_path, "http://127.0.0.1:8003") == {
        "gateway": KEYS - {"GRATICULE_WEBHOOK_SECRET"},
        "orchestrator": KEYS - {"GRATICULE_OIDC_CLIENT_SECRET", "GRATICULE_SERVE_KEY"},
        "worker": set(),
        "serve": {"GRATICULE_SERVE_KEY"},
    }


def test_gateway_and_services_share_a_key_that_is_kept(tmp_path: Path) -> None:
    made = _environments(Settings(), running(tmp_path, "http://127.0.0.1:8003"), URLS)
    key = made["serve"]["GRATICULE_SERVE_KEY"]
    assert len(key) >= 32
    assert made["gateway"]["GRATICULE_SERVE_KEY"] == key
    assert made["gateway"]["GRATICULE_SERVICE_KEY"] != key
    assert (tmp_path / "serve.key").stat().st_mode & 0o077 == 0
    again = _environments(Settings(), running(tmp_path, "http://127.0.0.1:8003"), URLS)
    assert again["serve"]["GRATICULE_SERVE_KEY"] == key


def test_a_gateway_whose_services_run_elsewhere_has_their_key_only_if_it_is_set(tmp_path: Path) -> None:
    assert "GRATICULE_SERVE_KEY" not in known(Settings(), tmp_path, None)["gateway"]
    assert not (tmp_path / "serve.key").exists()
    given = Settings.model_validate({"serve_key": "k" * 32})
    assert "GRATICULE_SERVE_KEY" in known(given, tmp_path, None)["gateway"]
