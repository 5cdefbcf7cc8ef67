from collections.abc import Callable
from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.binaries import Places, candidates, find_binaries

MakePrograms = Callable[..., Path]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    path = tmp_path / "path"
    path.mkdir()
    return Places(root=tmp_path, path=str(path))


def test_nothing_installed_names_the_doctor(places: Places) -> None:
    with pytest.raises(ConfigurationError, match="not installed") as caught:
        find_binaries(None, places=places)
    assert "graticule doctor --fix" in str(caught.value.hint)


def test_finds_a_debian_installation(places: Places, make_programs: MakePrograms) -> None:
    bindir = make_programs("usr/lib/postgresql/15/bin", "15.13 (Debian 15.13-0+deb12u1)")
    found = find_binaries(None, places=places)
    assert (found.bindir, found.version, found.has_postgis) == (bindir, 15, False)
    assert found.program("initdb") == bindir / "initdb"


def test_higher_version_wins(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13")
    make_programs("usr/pgsql-17/bin", "17.2")
    make_programs("usr/lib/postgresql/9/bin", "9.6")
    assert find_binaries(None, places=places).version == 17


def test_postgis_wins_over_a_higher_version(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/16/bin", "16.4", extensions=("postgis",))
    make_programs("usr/lib/postgresql/17/bin", "17.2", extensions=("btree_gist",))
    assert find_binaries(None, places=places).version == 16


@pytest.mark.parametrize(
    ("folder", "share"),
    [
        ("usr/lib/postgresql/15/bin", "usr/share/postgresql/15"),
        ("usr/pgsql-15/bin", "usr/pgsql-15/share"),
        ("opt/homebrew/opt/postgresql@15/bin", "opt/homebrew/opt/postgresql@15/share/postgresql@15"),
        ("usr/local/opt/postgresql@15/bin", "usr/local/opt/postgresql@15/share/postgresql"),
    ],
)
def test_extensions_are_found_without_pg_config(
    places: Places, make_programs: MakePrograms, folder: str, share: str
) -> None:
    make_programs(folder, "15.13", extensions=("postgis", "unaccent"), share=share, pg_config=False)
    assert find_binaries(None, places=places).extensions == {"postgis", "unaccent"}


def test_pg_config_tells_an_unusual_share_folder(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13", extensions=("postgis",), share="elsewhere")
    assert find_binaries(None, places=places).has_postgis


@pytest.mark.parametrize(
    ("configure", "has_lz4"),
    [("'--with-lz4' '--with-zstd'", True), ("'--with-lz4=no'", False), ("'--without-icu'", False)],
)
def test_pg_config_tells_whether_there_is_lz4(
    places: Places, make_programs: MakePrograms, configure: str, has_lz4: bool
) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13", configure=configure)
    assert find_binaries(None, places=places).has_lz4 is has_lz4


def test_without_pg_config_there_is_no_lz4(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13", pg_config=False)
    assert not find_binaries(None, places=places).has_lz4


@pytest.mark.parametrize("name", ["postgres", "initdb", "pg_ctl"])
def test_a_folder_without_all_programs_does_not_count(places: Places, make_programs: MakePrograms, name: str) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13", without=name)
    assert candidates(places) == []


def test_the_path_is_searched_through_its_links(places: Places, make_programs: MakePrograms, tmp_path: Path) -> None:
    bindir = make_programs("opt/own/bin", "18beta1")
    (tmp_path / "path" / "postgres").symlink_to(bindir / "postgres")
    found = find_binaries(None, places=places)
    assert (found.bindir, found.version) == (bindir, 18)


def test_pg_config_on_the_path_is_asked(places: Places, make_programs: MakePrograms, tmp_path: Path) -> None:
    bindir = make_programs("opt/own/bin", "16.1")
    (tmp_path / "path" / "pg_config").symlink_to(bindir / "pg_config")
    assert find_binaries(None, places=places).bindir == bindir


def test_an_installation_found_twice_counts_once(places: Places, make_programs: MakePrograms, tmp_path: Path) -> None:
    bindir = make_programs("usr/lib/postgresql/15/bin", "15.13")
    (tmp_path / "path" / "postgres").symlink_to(bindir / "postgres")
    assert len(candidates(places)) == 1


def test_too_old_is_told_with_what_was_found(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/14/bin", "14.9")
    with pytest.raises(ConfigurationError, match=r"15 or newer is needed; found: PostgreSQL 14 in .*/14/bin"):
        find_binaries(None, places=places)


def test_an_existing_cluster_decides_the_version(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/15/bin", "15.13")
    make_programs("usr/lib/postgresql/17/bin", "17.2", extensions=("postgis",))
    assert find_binaries(None, 15, places=places).version == 15


def test_missing_version_of_an_existing_cluster(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/17/bin", "17.2")
    with pytest.raises(
        ConfigurationError, match=r"The cluster in /data was made by PostgreSQL 15, and .* not installed"
    ) as caught:
        find_binaries(None, 15, cluster=Path("/data"), places=places)
    assert "Install PostgreSQL 15" in str(caught.value.hint)


def test_the_preferred_folder_is_the_only_one(places: Places, make_programs: MakePrograms) -> None:
    make_programs("usr/lib/postgresql/17/bin", "17.2")
    own = make_programs("own/bin", "15.1")
    assert find_binaries(own, places=places).bindir == own


def test_a_wrong_preferred_folder_is_refused(places: Places, make_programs: MakePrograms, tmp_path: Path) -> None:
    make_programs("usr/lib/postgresql/17/bin", "17.2")
    with pytest.raises(ConfigurationError, match="GRATICULE_PG_BIN"):
        find_binaries(tmp_path, places=places)


def test_a_preferred_folder_of_another_version_than_the_cluster_is_refused(
    make_programs: MakePrograms,
) -> None:
    with pytest.raises(ConfigurationError, match="was made by PostgreSQL 15"):
        find_binaries(make_programs("own/bin", "17.1"), 15)


def test_a_preferred_folder_that_is_too_old_is_refused(make_programs: MakePrograms) -> None:
    with pytest.raises(ConfigurationError, match="15 or newer"):
        find_binaries(make_programs("own/bin", "13.1"))
