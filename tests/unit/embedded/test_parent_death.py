"""A child that ends with its parent, also if that has ended before the child could say so."""

import os
import subprocess
import sys

import pytest

CHILD = (
    "import sys; from graticule.embedded.parent_death import end_with; end_with(int(sys.argv[1]), 9); print('lives')"
)
NOBODY = 2**22 + 1  # Linux gives no process this number

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do this")


def child_of(parent: int) -> tuple[str, int]:
    ended = subprocess.run([sys.executable, "-c", CHILD, str(parent)], capture_output=True, text=True, check=False)
    return ended.stdout, ended.returncode


def test_a_child_lives_only_below_the_parent_that_has_started_it() -> None:
    assert child_of(os.getpid()) == ("lives\n", 0)
    assert child_of(NOBODY) == ("", 1)
