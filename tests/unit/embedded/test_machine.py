from collections.abc import Callable
from pathlib import Path

import pytest

from graticule.config import DatabaseUrl, Settings
from graticule.embedded.binaries import Binaries, Places
from graticule.embedded.machine import (
    Finding,
    binaries_findings,
    disk_finding,
    examine,
    home_finding,
    missing_packages,
    port_finding,
    pypgstac_finding,
    python_finding,
    server_findings,
)
from graticule.embedded.server import ServerFacts

MakePrograms = Callable[..., Path]
ALL = frozenset({"postgis", "btree_gist", "unaccent"})


def named(findings: list[Finding], name: str) -> Finding:
    return next(finding for finding in findings if finding.name == name)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(root=tmp_path, path=str(tmp_path / "path"))


@pytest.mark.parametrize(("version", "ok"), [((3, 10, 9), False), ((3, 11, 0), True), ((3, 14, 1), True)])
def test_python(version: tuple[int, ...], ok: bool) -> None:
    finding = python_finding(version)
    assert finding.ok is ok
    assert (finding.mend is None) is ok


@pytest.mark.parametrize(("version", "ok"), [("0.10.0", True), ("0.9.9", False), ("0.11.0", False), (None, False)])
def test_pypgstac(version: str | None, ok: bool) -> None:
    assert pypgstac_finding(version).ok is ok


def test_a_taken_port_is_no_obstacle() -> None:
    finding = port_finding(8000, free=False)
    assert (finding.ok, finding.required) == (False, False)
    assert "--port" in str(finding.mend)
    assert port_finding(8000, free=True).ok


@pytest.mark.parametrize(("free", "ok"), [(1024**3, True), (1024**3 - 1, False)])
def test_disk_space(free: int, ok: bool) -> None:
    assert disk_finding(Path("/data"), free).ok is ok


def test_home_that_can_be_made(tmp_path: Path) -> None:
    assert home_finding(tmp_path / "not" / "there" / "yet").ok


def test_home_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = home_finding(tmp_path / "file" / "home")
    assert not finding.ok
    assert str(tmp_path / "file") in str(finding.mend)


def test_complete_binaries_need_nothing() -> None:
    findings = binaries_findings(Binaries(Path("/bin"), 16, ALL), required=True)
    assert all(finding.ok for finding in findings)
    assert missing_packages(findings) == ()


def test_missing_extensions_name_the_packages_of_that_server() -> None:
    findings = binaries_findings(Binaries(Path("/bin"), 16), required=True)
    assert [finding.name for finding in findings if not finding.ok] == ["postgis", "btree_gist", "unaccent"]
    assert missing_packages(findings) == ("postgresql-16-postgis-3", "postgresql-16")


def test_what_is_ok_needs_no_package() -> None:
    assert missing_packages([Finding("x", ok=True, detail="", packages=("p",))]) == ()


def test_external_server() -> None:
    assert all(finding.ok for finding in server_findings("db", ServerFacts(15, ALL)))
    old = server_findings("db", ServerFacts(14, frozenset({"btree_gist"})))
    assert [finding.name for finding in old if not finding.ok] == ["database version", "database extensions"]
    assert "postgis, unaccent" in named(old, "database extensions").detail


def test_examine_without_postgresql(tmp_path: Path, places: Places) -> None:
    findings = examine(Settings(home=tmp_path / "home"), places=places)
    finding = named(findings, "PostgreSQL")
    assert (finding.ok, finding.required) == (False, True)
    assert missing_packages(findings) == ("postgresql-postgis",)
    assert not (tmp_path / "home").exists()


def test_examine_with_postgresql(tmp_path: Path, places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.3", extensions=tuple(ALL))
    findings = examine(Settings(home=tmp_path / "home"), port=59990, places=places)
    assert {f.name for f in findings} >= {"Python", "PostgreSQL", "postgis", "btree_gist", "unaccent", "pypgstac"}
    assert {f.name for f in findings} >= {"server user", "data folder", "disk space", "port 59990", "port 59991"}
    assert all(finding.ok for finding in findings if finding.required)


def test_examine_asks_for_the_version_that_made_the_cluster(
    tmp_path: Path, places: Places, make_programs: MakePrograms
) -> None:
    make_programs("usr/lib/postgresql/17/bin", "17.3", extensions=tuple(ALL))
    data = tmp_path / "home" / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("15\n")
    findings = examine(Settings(home=tmp_path / "home"), places=places)
    assert str(data) in named(findings, "PostgreSQL").detail
    assert missing_packages(findings) == ("postgresql-15-postgis-3",)


def test_a_wrong_folder_setting_is_not_mended_by_packages(tmp_path: Path, places: Places) -> None:
    findings = examine(Settings(home=tmp_path, pg_bin=tmp_path), places=places)
    assert not named(findings, "PostgreSQL").ok
    assert missing_packages(findings) == ()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=me&password=s3cret",
        "host=127.0.0.1 port=1 user=me password=s3cret",
    ],
)
def test_an_external_database_that_does_not_answer(tmp_path: Path, places: Places, address: str) -> None:
    settings = Settings(home=tmp_path, database_url=DatabaseUrl(address))
    findings = examine(settings, places=places)
    assert not named(findings, "database").ok
    assert not named(findings, "PostgreSQL").required
    assert not named(findings, "server user").required
    assert "s3cret" not in repr(findings)


def test_settings_that_contradict_each_other_are_a_finding(tmp_path: Path, places: Places) -> None:
    settings = Settings(home=tmp_path, postgres_host="db", use_managed_identity=True)
    assert "USE_MANAGED_IDENTITY" in named(examine(settings, places=places), "database").detail
