"""QGIS, where the system has it: setup does not install it, for it takes 1 GB."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

needs_qgis = pytest.mark.skipif(
    not Path("/usr/lib/python3/dist-packages/qgis/core").exists(),
    reason="QGIS is not installed: apt install python3-qgis",
)


def write_by_qgis(folder: Path, **work: Any) -> None:
    """Write files in one process, which sees nothing of our environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"}
    command = ["/usr/bin/python3", "-I", str(Path(__file__).with_name("qgis_files.py"))]
    done = subprocess.run(
        command, input=json.dumps(work), env=environment, check=False, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
