"""Where sources lead: into the storage, to an allowed host or folder, or nowhere."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
from hypothesis import strategies as st
from tests.examples import examples

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, InvalidInput
from graticule.storage.local import LocalStorage
from graticule.storage.options import StorageOptions
from graticule.storage.paths import Source, resolve_source

HOSTS = frozenset({"data.example.org", "tiles.internal:8443"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a storage, an allowed folder, and one that is not."""
    folder = tmp_path_factory.mktemp("sources").resolve()
    for name in ("root/bronze", "root/silver", "allowed/below", "secret"):
        (folder / name).mkdir(parents=True)
    for name in ("root/bronze/a.tif", "root/silver/a.tif", "allowed/a.tif", "secret/a.tif"):
        (folder / name).write_bytes(b"")
    (folder / "allowed" / "link").symlink_to(folder / "secret")
    (folder / "allowed" / "made").symlink_to(folder / "root")
    (folder / "root" / "bronze" / "link").symlink_to(folder / "secret")
    (folder / "second").symlink_to(folder / "allowed")
    return folder


@pytest.fixture(scope="module")
def storage(folder: Path) -> LocalStorage:
    roots = (folder / "second", folder / "root")
    return LocalStorage(folder / "root", StorageOptions(hosts=HOSTS, roots=roots, azure_account="ours"))


def test_a_blob_is_opened_by_the_name_of_its_file(storage: LocalStorage, folder: Path) -> None:
    found = storage.source("bronze/a.tif")
    assert found == Source("bronze/a.tif", str(folder / "root/bronze/a.tif"), "bronze/a.tif")


@pytest.mark.parametrize(
    "name", ["GTIFF_DIR:1:a.tif", 'NETCDF:"a.nc":x', "vrt://a.tif?bands=1", "DERIVED_SUBDATASET:AMPLITUDE:a", "<VRT/>"]
)
def test_what_gdal_would_take_for_something_else_is_a_name_or_refused(
    storage: LocalStorage, folder: Path, name: str
) -> None:
    with pytest.raises(InvalidInput):
        storage.source(name)
    if "//" not in name:
        assert storage.source(f"bronze/{name}").opened == str(folder / "root/bronze" / name)


ADDRESSES = {
    "https://data.example.org/a/b.tif": "https://data.example.org/a/b.tif",
    "https://data.example.org:443/a.tif?sig=s3cret&x=1": "https://data.example.org/a.tif",
    "https://DATA.Example.ORG/A.tif": "https://data.example.org/A.tif",
    "/vsicurl/https://tiles.internal:8443/%C3%A4.tif?s3cret": "https://tiles.internal:8443/%C3%A4.tif",
}


@pytest.mark.parametrize(("name", "shown"), ADDRESSES.items())
def test_an_allowed_host_is_read_and_its_query_never_shown(storage: LocalStorage, name: str, shown: str) -> None:
    found = storage.source(name)
    assert (found.shown, found.blob) == (shown, None)
    assert found.opened == "/vsicurl/" + name.removeprefix("/vsicurl/")
    assert "s3cret" not in f"{found} {found!r}"


REFUSED = [
    *(
        "http://data.example.org/a.tif",
        "https://data.example.org",
        "https://evil.example/a",
        "https://data.example.org.",
    ),
    *("https://data.example.org:8443/a", "https://tiles.internal/a", "https://data.example.org.evil.example/a"),
    *("https://user:s3cret@data.example.org/a", "https://evil.example\\@data.example.org/a?s3cret"),
    *("https://evil.example#@data.example.org/", "https://data.example.org/a#s3cret", "https://data.example.org/a b"),
    *("https://data.example.org/../a", "https://data.example.org/%2e%2E/a", "https://data.example.org/a\r\nX: y"),
    *("https:///data.example.org/a", "https://[::1]/a", "https://127.0.0.1/a", "HTTPS://data.example.org/a"),
    *("/vsicurl/http://data.example.org/a", "/vsicurl/file:///etc/passwd", "/vsicurl?url=https://data.example.org/a"),
    *("/vsicurl/data.example.org/a", "/vsicurl_streaming/https://data.example.org/a", "/vsicurl//vsicurl/https://a/b"),
    *("/vsizip/bronze/a.zip", "/vsimem/a", "/VSIZIP/a", "/vsistdin/", "/vsis3/bucket/a?s3cret", "/vsisubfile/0_9,/a"),
    *("/vsiaz/bronze/a.tif", "/vsiaz/", "//etc/passwd", "/etc/passwd", "/", "", ".", "..", "file:///etc/passwd"),
    *("bronze", "bronze/../silver/a.tif", "bronze/link/a.tif", "bronze/a\0.tif", "bronze/a\n", "./bronze/a.tif"),
    *("https://data.example.org/" + "a" * 5000, "bronze/" + "a/" * 3000 + "a", "s3://bucket/a", "zip://a!b"),
]


@pytest.mark.parametrize("name", REFUSED)
def test_all_else_is_refused_with_a_way_out_and_without_the_secret(storage: LocalStorage, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        storage.source(name)
    assert "s3cret" not in f"{refused.value} {refused.value.detail}"
    assert "passwd" not in str(refused.value) or "?" not in name


def test_a_file_in_an_allowed_folder_is_read(storage: LocalStorage, folder: Path) -> None:
    found = storage.source(f"{folder}/second/a.tif")
    assert found == Source(f"{folder}/second/a.tif", f"{folder}/allowed/a.tif")
    for name in ("secret/a.tif", "second/link/a.tif", "second/../secret/a.tif", "second", "second/./a.tif", "secondly"):
        with pytest.raises(InvalidInput):
            storage.source(f"{folder}/{name}")


def test_a_blob_of_azure_is_read_when_the_host_of_the_account_is_allowed(folder: Path) -> None:
    def source(name: str, account: str | None, *hosts: str) -> Source:
        return LocalStorage(folder, StorageOptions(hosts=frozenset(hosts), azure_account=account)).source(name)

    host = "ours.blob.core.windows.net"
    assert source("/vsiaz/bronze/a.tif", "ours", host) == Source("bronze/a.tif", "/vsiaz/bronze/a.tif")
    for refused in (("theirs", host), (None, host), ("ours", "blob.core.windows.net")):
        with pytest.raises(InvalidInput):
            source("/vsiaz/bronze/a.tif", *refused)
    for name in ("bronze/a?b", "bronze", "../a", "bronze/../../a"):
        with pytest.raises(InvalidInput):
            source(f"/vsiaz/{name}", "ours", host)


def test_a_source_is_never_what_we_made(storage: LocalStorage, folder: Path) -> None:
    assert resolve_source(storage, "bronze", "a.tif").blob == "bronze/a.tif"
    assert resolve_source(storage, None, "bronze/a.tif").blob == "bronze/a.tif"
    assert resolve_source(storage, "", f"{folder}/root/bronze/a.tif").blob == "bronze/a.tif"
    for container in ("silver", "external", "outputs", "Silver"):
        for container_name, name in ((container, "a.tif"), (None, f"{container}/a.tif")):
            with pytest.raises(InvalidInput, match="holds what this platform makes"):
                resolve_source(storage, container_name, name)
    for way_round in ("root", "second/made"):
        with pytest.raises(InvalidInput, match="holds what this platform makes"):
            resolve_source(storage, None, f"{folder}/{way_round}/silver/a.tif")


@pytest.mark.parametrize("container", ["https:", "/etc", ".", "..", "a/b", "/vsicurl"])
def test_a_container_is_a_container(storage: LocalStorage, container: str) -> None:
    with pytest.raises(InvalidInput):
        resolve_source(storage, container, "../a" if container == "a/b" else "/data.example.org/a.tif")


WORDS = [
    *("bronze", "silver", "a.tif", "..", ".", "link", "below", "second", "allowed", "secret", "root", "made", ""),
    *("https:", "http:", "/vsicurl", "/vsiaz", "vsizip", "data.example.org", "evil.example", "u:p@data.example.org"),
    *("%2e%2e", "?", "#", "\\", "\0", "@", ":443", ":8443", "tiles.internal", "file:", "\n", "FOLDER", "ä", "\ud800"),
]
NAMES = st.one_of(
    st.text(max_size=40),
    st.tuples(
        st.sampled_from(["", "/", "https://", "/vsicurl/https://", "FOLDER/", "bronze/"]), st.text(max_size=30)
    ).map("".join),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map("/".join),
    st.lists(st.sampled_from([*WORDS, "/"]), min_size=1, max_size=9).map("".join),
)


@hypothesis.settings(max_examples=examples(400))
@hypothesis.given(name=NAMES)
@hypothesis.example("FOLDER/second/link/a.tif")
@hypothesis.example("https://data.example.org/../x")
def test_whatever_is_named_leads_to_what_is_allowed_or_nowhere(storage: LocalStorage, folder: Path, name: str) -> None:
    try:
        found = storage.source(name.replace("FOLDER", str(folder)))
    except InvalidInput:
        return
    if found.opened.startswith("/vsicurl/"):
        address = urlsplit(found.opened.removeprefix("/vsicurl/"))
        assert address.scheme == "https"
        assert address.netloc.lower().removesuffix(":443") in HOSTS
        assert ".." not in address.path.split("/")
        return
    assert os.path.realpath(found.opened) == found.opened
    assert Path(found.opened).is_relative_to(folder / "root") or Path(found.opened).is_relative_to(folder / "allowed")
    if found.shown == found.blob:
        container = found.blob.split("/")[0]
        assert Path(found.opened).is_relative_to(folder / "root" / container)


def test_the_settings_say_what_is_allowed() -> None:
    settings = Settings(
        storage_allow_hosts=" Data.Example.org:443, tiles.internal:8443,",
        storage_allow_roots=f"/data{os.pathsep}/mnt/x",
        silver_container="made",
        external_container="shown",
        azure_storage_account_name="ours",
    )
    assert StorageOptions.of(settings) == StorageOptions(
        silver="made", external="shown", hosts=HOSTS, roots=(Path("/data"), Path("/mnt/x")), azure_account="ours"
    )
    assert StorageOptions.of(Settings()) == StorageOptions()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"storage_allow_hosts": text} for text in ("https://a.b", "*.a.b", "a b", "a:b", "a/b", "[::1]", "-a")),
        *({"storage_allow_roots": text} for text in ("data", "/", "./data", "~/data")),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        StorageOptions.of(Settings(**wrong))  # type: ignore[arg-type]
    assert refused.value.hint


@pytest.mark.parametrize(
    "wrong", [{"silver_container": "a/b"}, {"external_container": "Silver"}, {"silver_container": "outputs"}]
)
def test_our_containers_are_three(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="container"):
        Settings(**wrong)  # type: ignore[arg-type]
