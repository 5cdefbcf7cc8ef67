"""The same for an ordinary user: nothing is given away, and the server runs as the user itself."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

# Everything is imported as root, for the checkout may lie in a folder that the ordinary user cannot enter;
# the failing connection brings in what the driver imports only when it is used.
PROGRAM = """
import asyncio, contextlib, os, sys
from pathlib import Path
import psycopg
from graticule.embedded.cluster import Cluster

async def warm_up():
    with contextlib.suppress(psycopg.OperationalError):
        await psycopg.AsyncConnection.connect("host=127.0.0.1 port=1 connect_timeout=2")

async def main():
    home = Path(sys.argv[1])
    for _ in range(2):
        async with Cluster.of(home, settings={"fsync": "off"}) as cluster:
            await cluster.ensure_database("graticule")
            print(Path(f"/proc/{cluster.pid}").stat().st_uid == os.getuid(), oct(home.stat().st_mode & 0o777))

asyncio.run(warm_up())
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[2]))
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all the other tests as one")
def test_an_ordinary_user_runs_a_cluster(folder: Path) -> None:
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    command = [sys.executable, "-P", "-c", PROGRAM, str(folder / "home"), str(user.pw_uid), str(user.pw_gid)]
    done = subprocess.run(command, cwd="/", env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.stdout == "True 0o700\nTrue 0o700\n", done.stderr
