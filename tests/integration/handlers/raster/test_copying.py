"""A blob becomes a file of the job's scratch, even when the copy is interrupted."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.handlers.raster.desk import Desk

CONTENT = os.urandom(5_000_000)
COPY = "silver/89abcdef/source/big.tif"
ASKED: dict[str, Any] = {"container_name": "bronze", "blob_name": "in/big.tif"}


@pytest.fixture
def source(desk: Desk) -> Path:
    desk.storage.put("bronze/in/big.tif", CONTENT)
    return desk.file("bronze/in/big.tif")


class Crash(Exception):
    pass


def crash_after(size: int) -> Any:
    def on_progress(told: dict[str, Any]) -> None:
        if told["done"] >= size:
            raise Crash

    return on_progress


@pytest.mark.usefixtures("source")
def test_a_copy_is_told_of_with_its_digest(desk: Desk) -> None:
    saved = desk.saved()
    copied = desk.run("raster.blob_to_mount", saved=saved, **ASKED)
    assert copied == {
        "path": COPY,
        "size_bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "etag": desk.etag("bronze/in/big.tif"),
    }
    assert desk.file(COPY).read_bytes() == CONTENT
    desk.told.clear()
    assert desk.run("raster.blob_to_mount", saved=saved, **ASKED) == copied
    assert desk.told == []  # a task that is delivered twice copies once


@pytest.mark.usefixtures("source")
def test_a_copy_goes_on_at_its_last_byte(desk: Desk) -> None:
    saved = desk.saved()
    with pytest.raises(Crash):
        desk.run("raster.blob_to_mount", saved=saved, on_progress=crash_after(2_000_000), **ASKED)
    assert not desk.storage.exists(COPY)
    partial = desk.file(f"{COPY}.part")
    os.truncate(partial, partial.stat().st_size - 7)  # anywhere, not where a piece ends
    there = partial.stat().st_size
    copied = desk.run("raster.blob_to_mount", saved=saved, **ASKED)
    assert desk.told[0]["done"] == there + 2**20
    assert copied["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert desk.file(COPY).read_bytes() == CONTENT
    assert desk.blobs() == [COPY]


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.integration.handlers.raster.desk import opened_desk

def kill(told):
    if told["done"] >= 2_000_000:
        os.kill(os.getpid(), signal.SIGKILL)

with opened_desk(Path(sys.argv[1])) as desk:
    desk.run("raster.blob_to_mount", on_progress=kill, container_name="bronze", blob_name="in/big.tif")
"""


@pytest.mark.usefixtures("source")
def test_what_a_killed_process_has_copied_is_kept(desk: Desk) -> None:
    ended = subprocess.run(  # noqa: PLW1510 - it is killed
        [sys.executable, "-c", KILLED, str(desk.root)], cwd=Path(__file__).parents[4]
    )
    assert ended.returncode == -signal.SIGKILL
    there = desk.file(f"{COPY}.part").stat().st_size
    assert 2_000_000 <= there < len(CONTENT)
    saved = desk.saved()
    saved.save("copying", {"etag": desk.etag("bronze/in/big.tif")})  # as the killed one did, in the database
    desk.run("raster.blob_to_mount", saved=saved, **ASKED)
    assert desk.told[0]["done"] > there
    assert desk.file(COPY).read_bytes() == CONTENT


def test_another_source_is_copied_from_its_beginning(desk: Desk, source: Path) -> None:
    saved = desk.saved()
    with pytest.raises(Crash):
        desk.run("raster.blob_to_mount", saved=saved, on_progress=crash_after(1), **ASKED)
    source.write_bytes(CONTENT[::-1])
    assert desk.run("raster.blob_to_mount", saved=saved, **ASKED)["sha256"] == hashlib.sha256(CONTENT[::-1]).hexdigest()
    assert desk.file(COPY).read_bytes() == CONTENT[::-1]


def test_a_source_that_changes_while_it_is_copied_is_rejected(desk: Desk, source: Path) -> None:
    def change(_: dict[str, Any]) -> None:
        with source.open("r+b") as opened:
            opened.write(b"other")

    result = desk.result("raster.blob_to_mount", on_progress=change, **ASKED)
    assert not result.retryable
    assert "source_changed" in str(result.report)
    assert not desk.storage.exists(COPY)


def test_what_we_made_is_no_source(desk: Desk) -> None:
    desk.storage.put("silver/x.tif", b"x")
    result = desk.result("raster.blob_to_mount", container_name="silver", blob_name="x.tif")
    assert not result.retryable
