"""Outputs that are too large to travel: they are stored, and a reference goes in their place."""

from dataclasses import replace

from graticule.core.errors import GraticuleError
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES
from graticule.storage.protocol import Storage
from graticule.worker.outcome import Outcome, failed

_log = get_logger(__name__)


async def stored_output(storage: Storage, message: TaskMessage, outcome: Outcome) -> tuple[Outcome, str | None]:
    """Give the outcome as it is reported, and where its output is when that does not go along."""
    limit = INLINE_CHILD_BYTES if "__" in message.node_id else INLINE_BYTES
    if outcome.output is None or len(outcome.output) <= limit:
        return outcome, None
    # A name for each delivery: a worker that lost the task must not overwrite what the next one has stored.
    path = f"outputs/{message.job_id}/{message.task_id}_{message.delivery_count}.json"
    try:
        await storage.put(path, outcome.output)
    except (GraticuleError, OSError) as error:
        _log.warning("an output could not be stored", task_id=message.task_id, path=path, error=str(error))
        return failed("The output is too large for a row and could not be stored."), None
    return replace(outcome, output=None), path
