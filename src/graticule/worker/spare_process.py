"""When a worker runs a task in one process more than usual: long tasks hold all others, and another partner waits."""

from collections.abc import Collection
from typing import Final

from graticule.worker.run import Run

LONG_SECONDS: Final = 10.0


def seconds_until_due(heavy: Collection[Run], processes: int, now: float) -> float | None:
    """Return in how many seconds long tasks hold every child process if none of them ends.

    None while a process is free, or the spare one is used.
    """
    if len(heavy) != processes:
        return None
    latest = max(now if run.started is None else run.started for run in heavy)
    return max(0.0, latest + LONG_SECONDS - now)


def partners_of(runs: Collection[Run]) -> frozenset[str]:
    """Return whose tasks they are: the priorities of a partner are shares `pa`, `pa/1` and so on."""
    return frozenset(run.message.share.partition("/")[0] for run in runs)
