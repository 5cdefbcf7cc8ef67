"""What processes leave in files goes, also when they were killed."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from graticule.storage.temporary_folders import PREFIX, new_folder, remove_folder, remove_lost_folders

LOCKER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def test_what_killed_processes_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = new_folder()
    lost, used, other = (tmp_path / name for name in (f"{PREFIX}lost", f"{PREFIX}used", "graticule-other"))
    for folder in (lost, used, other):
        folder.mkdir()
        (folder / "half").write_bytes(b"of an upload")
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    command = [sys.executable, "-S", "-c", LOCKER, str(used)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        remove_lost_folders()
        assert set(tmp_path.iterdir()) == {ours, used, other, tmp_path / f"{PREFIX}link"}
        assert (other / "half").exists()
        process.kill()
    remove_lost_folders()
    assert not used.exists()
    remove_folder(ours)
    assert not ours.exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    made = iter([tmp_path / "removed", kept])
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(next(made)))
    assert new_folder() == kept
    remove_folder(kept)
