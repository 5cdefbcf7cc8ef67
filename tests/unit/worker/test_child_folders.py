"""What child processes leave in files goes, also when their worker was killed."""

import os
import tempfile
from pathlib import Path

import pytest

from graticule.worker.child_folders import new_child_folder, remove_child_folder, remove_lost_folders

NOBODY = 2**22 + 1  # more than there can be


def test_what_killed_workers_left_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = new_child_folder()
    lost = [f"graticule-{worker}-child-abc" for worker in (NOBODY, os.getpid())]
    others = ["graticule-1-child-abc", f"graticule-{NOBODY}-other", "child"]
    for name in (*lost, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").write_bytes(b"of an upload")
    remove_lost_folders()
    assert {each.name for each in tmp_path.iterdir()} == {ours.name, *others}
    remove_child_folder(ours)
    assert not ours.exists()
