"""The three workloads, the same for everyone, and how a time becomes the figure that is shown."""

from dataclasses import dataclass
from enum import StrEnum


class Workload(StrEnum):
    """What is run, named as on the command line."""

    CHAIN = "chain"
    FAN_OUT = "fan-out"
    JOBS = "jobs"


@dataclass(frozen=True)
class Size:
    """How much of everything is run, and in what batches the raw limit does it."""

    chain: int = 50
    fan_out: int = 10_000
    jobs: int = 200
    tasks_per_job: int = 5
    fan_out_batch: int = 100
    jobs_batch: int = 50
    ended: int = 100_000
    idle: int = 10_000
    idle_seconds: int = 20
    memory_fan_out: int = 50_000

    def batch(self, workload: Workload) -> int:
        """Give the batch in which the raw limit claims, reports and records."""
        return {Workload.CHAIN: 1, Workload.FAN_OUT: self.fan_out_batch, Workload.JOBS: self.jobs_batch}[workload]

    def title(self, workload: Workload) -> str:
        """Say in words what is run."""
        return {
            Workload.CHAIN: f"chain of {self.chain} no-op tasks, per hop",
            Workload.FAN_OUT: f"fan-out of {self.fan_out:,} no-op tasks to the fan-in",
            Workload.JOBS: f"{self.jobs} jobs of {self.tasks_per_job} tasks submitted at once",
        }[workload]

    def figure(self, workload: Workload, seconds: float) -> "Figure":
        """Turn the time that a run took into its figure."""
        if workload is Workload.CHAIN:
            return Figure(seconds / self.chain * 1000, "ms")
        if workload is Workload.FAN_OUT:
            return Figure(self.fan_out / seconds, "tasks/s")
        return Figure(self.jobs / seconds, "jobs/s")


@dataclass(frozen=True)
class Figure:
    """A measured number with its unit."""

    value: float
    unit: str

    def __str__(self) -> str:
        digits = 0 if self.value >= 100 else 1 if self.value >= 10 else 2
        return f"{self.value:,.{digits}f} {self.unit}"


FULL = Size()
QUICK = Size(chain=20, fan_out=2_000, jobs=50, ended=10_000, idle=1_000, idle_seconds=5, memory_fan_out=10_000)
