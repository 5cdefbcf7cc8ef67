"""The command that starts a worker for a queue, as every interface names it."""

import shlex


def worker_command(queue: str) -> str:
    """Return the command that serves a queue."""
    return f"graticule worker --queues {shlex.quote(queue)}"


def missing_worker(queue: str) -> str:
    """Return the sentence for a queue that no live worker serves."""
    return f"No live worker serves the queue '{queue}'. Start one with: {worker_command(queue)}"
