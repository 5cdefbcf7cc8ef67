"""The machine: the cores that everyone may use, how busy they were, and the cache that everyone finds warm."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
COUNTED = 8  # of the numbers of a core in /proc/stat; those after them are part of others
IDLE = slice(3, 5)  # idle, and waiting for the disk
PIECE_BYTES = 16 * 1024 * 1024


def use_cores(count: int) -> None:
    """Let this process, and all that it starts, run on so many cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


@dataclass(frozen=True)
class CoreTimes:
    """What the cores that we may use have done so far, in seconds of one core."""

    busy: float
    total: float

    @classmethod
    def now(cls) -> "CoreTimes":
        """Read the counters."""
        ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        lines = (line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines())
        spent = [[int(each) for each in line[1 : COUNTED + 1]] for line in lines if line[0] in ours]
        total, idle = sum(map(sum, spent)), sum(sum(core[IDLE]) for core in spent)
        return cls((total - idle) / TICKS_PER_SECOND, total / TICKS_PER_SECOND)

    def since(self, earlier: "CoreTimes") -> "CoreTimes":
        """Give what was done between two looks."""
        return CoreTimes(self.busy - earlier.busy, self.total - earlier.total)


def make_ready(source: Path) -> None:
    """Leave nothing of an earlier run to be written, and have the source in the page cache."""
    os.sync()
    with source.open("rb", buffering=0) as file:
        while file.read(PIECE_BYTES):
            pass
