"""The console's functions do what they say: the tests in console/tests pass."""

import runpy
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "console" / "tests" / "run.mjs"
WITHIN_SECONDS = 60


def test_the_tests_of_the_console_pass() -> None:
    node = runpy.run_path(str(ROOT / "scripts" / "console.py"))["node"]
    command = [*node(), "--test-reporter=spec", str(TESTS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=WITHIN_SECONDS)
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
