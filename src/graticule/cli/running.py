"""The note that `graticule up` leaves in the data folder while it runs: where its processes answer. No secrets."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graticule.embedded.files import write_atomically

FILE = "installation.json"


@dataclass(frozen=True, slots=True)
class RunningInstallation:
    """What runs in a data folder, and who started it."""

    process_id: int
    gateway: str
    orchestrator: str
    workers: Sequence[str]
    serve: str | None = None


@contextlib.contextmanager
def noted(home: Path, running: RunningInstallation) -> Iterator[None]:
    """Leave the note for as long as the context lasts."""
    path = home / FILE
    write_atomically(path, json.dumps(asdict(running), indent=2) + "\n", mode=0o644)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_installation(home: Path) -> RunningInstallation | None:
    """Give what runs in a data folder; a note whose writer was killed does not count."""
    try:
        told: dict[str, Any] = json.loads((home / FILE).read_text(encoding="utf-8"))
        found = RunningInstallation(**told)
        os.kill(found.process_id, 0)
    except PermissionError:  # it is another user's process, and runs
        return found
    except (OSError, ValueError, TypeError):
        return None
    return found
