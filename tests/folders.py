"""Folders for clusters of PostgreSQL: pytest's own are closed to the server's user when root runs the tests."""

import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOMY = 4 * 1024**3


def new_cluster_folder() -> Path:
    """Make a short folder that every user can enter; in memory when there is room: a cluster is a thousand files."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOMY
    made = Path(tempfile.mkdtemp(prefix="gtc-", dir=MEMORY if roomy else None)).resolve()
    made.chmod(0o711)
    return made
