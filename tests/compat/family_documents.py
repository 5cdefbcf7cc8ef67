"""The YAML, JSON and environment blocks of the platform family's documents, as these tests keep them."""

import json
from pathlib import Path

from tests.integration.api.running import TOKEN

DOCUMENTS = Path(__file__).with_name("documents")
MESSAGES = json.loads((DOCUMENTS / "messages.json").read_text())
# What a worker needs besides its table; `docs/how-to/coming-from-rmhdagmaster.md` names the same.
ADDED_FOR_WORKERS = {"SERVICE_BUS_FQDN": "family.servicebus.windows.net", "GRATICULE_WORKER_TOKEN": TOKEN}


def environment(name: str) -> dict[str, str]:
    """Return the variables of a process, as its table has them."""
    lines = (DOCUMENTS / f"{name}.env").read_text().split()
    return {line.partition("=")[0]: line.partition("=")[2] for line in lines}
