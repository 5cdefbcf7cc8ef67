"""Files of an installation are for its user alone, also where an older release has left them open."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from graticule.embedded.location import prepare_home
from graticule.embedded.server_user import ServerUser
from graticule.storage.local import LocalStorage
from graticule.storage.privacy import close_to_others, write_privately


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can enter, as the folders above an installation are."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def can_stranger(command: str, path: Path) -> bool:
    """Whether another user of this machine can do that; only root can try it out."""
    stranger = {"user": 12345, "group": 12345, "extra_groups": []}
    done = subprocess.run([command, str(path)], check=False, capture_output=True, **stranger)  # type: ignore[call-overload]
    return bool(done.returncode == 0)


async def old_installation(place: Path) -> Path:
    """Leave a home as earlier releases did, with a file."""
    home = place / "home"
    for folder, mode in ((home, 0o711), (home / "storage", 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    await LocalStorage(home / "storage").put("silver/secret.txt", b"secret")
    return home


async def test_an_older_installation_is_closed_when_it_starts(place: Path) -> None:
    home = await old_installation(place)
    close_to_others(home / "storage")
    prepare_home(home, ServerUser.choose())
    assert mode_of(home / "storage") == 0o700
    assert mode_of(home) == (0o710 if os.geteuid() == 0 else 0o700)


@pytest.mark.parametrize("closed", ["home", "storage"])
async def test_another_user_can_neither_list_nor_read_it(place: Path, closed: str) -> None:
    home = await old_installation(place)
    file = home / "storage" / "silver" / "secret.txt"
    if os.geteuid() == 0:
        assert can_stranger("ls", file.parent)
        assert can_stranger("cat", file)
    if closed == "home":
        prepare_home(home, ServerUser.choose())
    else:
        close_to_others(home / "storage")
    assert not mode_of(home if closed == "home" else home / "storage") & 0o007
    if os.geteuid() == 0:
        assert not can_stranger("ls", file.parent)
        assert not can_stranger("cat", file)


async def test_what_is_written_is_private_even_below_an_open_folder(place: Path) -> None:
    write_privately(place / "storage")
    await LocalStorage(place / "storage").put("silver/a/b.txt", b"secret")
    assert mode_of(place / "storage") == 0o700
    assert mode_of(place / "storage" / "silver" / "a") == 0o700
    assert mode_of(place / "storage" / "silver" / "a" / "b.txt") == 0o600


async def test_a_folder_that_is_shared_with_its_group_stays_so(place: Path) -> None:
    shared = place / "storage"
    shared.mkdir()
    shared.chmod(0o2775)
    close_to_others(shared)
    write_privately(shared)
    await LocalStorage(shared).put("silver/b.txt", b"shared")
    assert mode_of(shared) == 0o2770
    assert mode_of(shared / "silver" / "b.txt") == 0o660


def test_a_folder_that_is_not_there_is_left_so(place: Path) -> None:
    close_to_others(place / "none")
    assert not (place / "none").exists()
