"""A child process of the same user reads nothing of the worker's environment and memory."""

import os
import subprocess
import sys

import pytest

NOBODY = 65534
DUMPABLE = 4
# Root may read everything, so the process becomes an ordinary user, which is as open as one that has just begun.
PROGRAM = f"""
import ctypes, os, subprocess, sys
from graticule.worker.hidden_memory import hide_memory

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
    ctypes.CDLL(None).prctl({DUMPABLE}, 1, 0, 0, 0)

def seen_by_a_child():
    read = 'for name in environ maps; do head -c 99 /proc/$PPID/$name; done'
    child = subprocess.run(['/bin/sh', '-c', read], capture_output=True, env={{}})
    return len(child.stdout) > 0

print(seen_by_a_child(), hide_memory(), seen_by_a_child())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has prctl")
def test_what_a_worker_hides_its_children_cannot_read() -> None:
    command = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(command, cwd="/", env={"PATH": os.defpath}, capture_output=True, text=True, check=False)
    assert done.stdout == "True None False\n", done.stderr
