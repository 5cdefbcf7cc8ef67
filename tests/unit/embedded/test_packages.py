from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.packages import (
    ANY_POSTGIS,
    Tools,
    apt_names,
    brew_names,
    choose_installer,
    install_packages,
)

ROOT = Tools(apt=True, brew=False, sudo=False, root=True)
KNOWN = ["postgresql-9.6-postgis-3", "postgresql-15", "postgresql-15-postgis-3", "postgresql-17-postgis-3",
         "postgresql-17-postgis-3-scripts", "postgresql-common"]  # fmt: skip


def test_the_newest_server_with_postgis_is_chosen() -> None:
    assert apt_names([ANY_POSTGIS], KNOWN) == ("postgresql-17-postgis-3",)


def test_a_named_version_is_kept_and_asked_for_once() -> None:
    names = ["postgresql-15-postgis-3", "postgresql-15", "postgresql-15"]
    assert apt_names(names, KNOWN) == ("postgresql-15-postgis-3", "postgresql-15")


@pytest.mark.parametrize(
    ("names", "known"),
    [
        ([ANY_POSTGIS], []),
        ([ANY_POSTGIS], ["postgresql-14-postgis-3"]),
        (["postgresql-16-postgis-3"], KNOWN),
    ],
)
def test_what_apt_does_not_know_is_refused(names: list[str], known: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="do not have") as caught:
        apt_names(names, known)
    assert "wiki.postgresql.org/wiki/Apt" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([ANY_POSTGIS], ("postgresql@17", "postgis")),
        (["postgresql-16-postgis-3", "postgresql-16"], ("postgresql@16", "postgis")),
        (["postgresql-16"], ("postgresql@16",)),
    ],
)
def test_homebrew_names(names: list[str], expected: tuple[str, ...]) -> None:
    assert brew_names(names) == expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (ROOT, "apt"),
        (Tools(apt=True, brew=True, sudo=True, root=False), "apt"),
        (Tools(apt=True, brew=True, sudo=False, root=False), "brew"),
        (Tools(apt=False, brew=True, sudo=False, root=False), "brew"),
    ],
)
def test_choice_of_the_installer(tools: Tools, expected: str) -> None:
    assert choose_installer(tools, ["p"]) == expected


def test_without_rights_the_command_for_root_is_told() -> None:
    with pytest.raises(ConfigurationError, match="only be installed by root") as caught:
        choose_installer(Tools(apt=True, brew=False, sudo=False, root=False), ["p", "q"])
    assert "apt-get install p q" in str(caught.value.hint)


def test_without_a_package_manager_the_list_is_told() -> None:
    with pytest.raises(ConfigurationError, match="Neither apt-get nor brew") as caught:
        choose_installer(Tools(apt=False, brew=False, sudo=True, root=True), ["postgresql-16"])
    assert "PostGIS" in str(caught.value.hint)
    assert "postgresql-16" in str(caught.value.hint)


@pytest.fixture
def settings_folder(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "postgresql-common"


@pytest.fixture
def fake_apt(tmp_path: Path, settings_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that note how they are called, and what Debian would have read at that moment."""
    called = tmp_path / "called"
    programs = {
        "apt-get": f'echo "$DEBIAN_FRONTEND $@" >> {called}; cat {settings_folder}/createcluster.d/* >> {called}'
        ' 2>/dev/null; case "$*" in *broken*) echo "E: it is broken"; exit 100;; esac',
        "apt-cache": f'echo "$@" >> {called}; echo "{" ".join(KNOWN)} broken" | tr " " "\\n"',
        "sudo": f'echo "sudo" >> {called}; exec "$@"',
        "brew": f'echo "brew $@" >> {called}',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\nexit 0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return called


def test_apt_installs_without_a_cluster_of_its_own(tmp_path: Path, fake_apt: Path, settings_folder: Path) -> None:
    said: list[str] = []
    log = tmp_path / "log"
    install_packages([ANY_POSTGIS], said.append, log=log, tools=ROOT, settings_folder=settings_folder)
    options = "noninteractive -o DPkg::Lock::Timeout=120"
    assert fake_apt.read_text().splitlines() == [
        f"{options} update",
        "pkgnames postgresql-",
        f"{options} install -y --no-install-recommends postgresql-17-postgis-3",
        "create_main_cluster = false",
    ]
    assert not settings_folder.exists()
    assert any("install -y --no-install-recommends postgresql-17-postgis-3" in line for line in said)
    assert "$ env DEBIAN_FRONTEND=noninteractive apt-get" in log.read_text()


def test_folders_that_were_there_stay(tmp_path: Path, fake_apt: Path, settings_folder: Path) -> None:
    other = settings_folder / "createcluster.d" / "other.conf"
    other.parent.mkdir(parents=True)
    other.touch()
    install_packages(["postgresql-15"], print, log=tmp_path / "log", tools=ROOT, settings_folder=settings_folder)
    assert list(other.parent.iterdir()) == [other]


def test_sudo_is_used_when_not_root(tmp_path: Path, fake_apt: Path, settings_folder: Path) -> None:
    tools = Tools(apt=True, brew=False, sudo=True, root=False)
    install_packages(["postgresql-15"], print, log=tmp_path / "log", tools=tools, settings_folder=settings_folder)
    assert fake_apt.read_text().splitlines()[0] == "sudo"


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path, fake_apt: Path, settings_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="failed") as caught:
        install_packages(["broken"], print, log=tmp_path / "log", tools=ROOT, settings_folder=settings_folder)
    assert "E: it is broken" in str(caught.value.hint)
    assert str(tmp_path / "log") in str(caught.value.hint)
    assert not settings_folder.exists()


def test_brew(tmp_path: Path, fake_apt: Path) -> None:
    tools = Tools(apt=False, brew=True, sudo=False, root=False)
    install_packages([ANY_POSTGIS], print, log=tmp_path / "log", tools=tools)
    assert fake_apt.read_text() == "brew install postgresql@17 postgis\n"


def test_nothing_to_install_does_nothing(fake_apt: Path) -> None:
    install_packages([], print, tools=ROOT)
    assert not fake_apt.exists()
