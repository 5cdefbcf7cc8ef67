import os
from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.lock import HomeLock


def test_only_one_holds_it(tmp_path: Path) -> None:
    first, second = HomeLock(tmp_path), HomeLock(tmp_path)
    first.acquire()
    first.acquire()
    with pytest.raises(ConfigurationError, match=rf"in use by another graticule \(pid {os.getpid()}\)"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_the_file_tells_the_holder_and_is_private(tmp_path: Path) -> None:
    lock = HomeLock(tmp_path)
    lock.acquire()
    assert (tmp_path / "postgres.lock").read_text() == f"{os.getpid()}\n"
    assert (tmp_path / "postgres.lock").stat().st_mode & 0o777 == 0o600
    lock.release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "postgres.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        HomeLock(tmp_path).acquire()
    assert not (tmp_path / "elsewhere").exists()
