"""The same for an ordinary user: nothing is given away, and the server runs as the user itself."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

import graticule

PYTHON = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from graticule.embedded.cluster import Cluster

async def main():
    home = Path(sys.argv[1])
    for _ in range(2):
        async with Cluster.of(home, settings={"fsync": "off"}) as cluster:
            await cluster.ensure_database("graticule")
            print(Path(f"/proc/{cluster.pid}").stat().st_uid == os.getuid(), oct(home.stat().st_mode & 0o777))

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON.exists(), reason="needs root, and a Python for everyone")
def test_an_ordinary_user_runs_a_cluster(folder: Path) -> None:
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    packages = [entry for entry in sys.path if entry.endswith("site-packages")]
    source = str(Path(graticule.__file__).parents[1])
    done = subprocess.run(
        [PYTHON, "-B", "-c", PROGRAM, folder / "home"],
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join([source, *packages])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True 0o700\nTrue 0o700\n", done.stderr
