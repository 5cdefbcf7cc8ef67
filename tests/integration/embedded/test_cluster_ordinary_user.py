"""The same for an ordinary user: nothing is given away, and the server runs as the user itself."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

# The checkout may lie in a folder that the ordinary user cannot enter: a first run as root imports everything.
PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from graticule.embedded.cluster import Cluster

async def run(home):
    async with Cluster.of(home, settings={"fsync": "off"}) as cluster:
        await cluster.ensure_database("graticule")
        return Path(f"/proc/{cluster.pid}").stat().st_uid == os.getuid(), oct(home.stat().st_mode & 0o777)

folder, uid, gid = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
asyncio.run(run(folder / "of root"))
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
for _ in range(2):
    print(*asyncio.run(run(folder / "home")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all the other tests as one")
def test_an_ordinary_user_runs_a_cluster(folder: Path) -> None:
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    command = [sys.executable, "-P", "-c", PROGRAM, str(folder), str(user.pw_uid), str(user.pw_gid)]
    done = subprocess.run(command, cwd="/", env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.stdout == "True 0o700\nTrue 0o700\n", done.stderr
