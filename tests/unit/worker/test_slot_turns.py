"""When a worker passes over the tasks of a partner."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.messaging.protocol import TaskMessage
from graticule.worker.run import Run
from graticule.worker.slot_turns import LONG_SECONDS, PAUSE_SECONDS, SLOW_SECONDS, SlotTurns

QUICK, SLOW = SLOW_SECONDS / 2, SLOW_SECONDS * 2


@dataclass
class Slots:
    """The child processes of a worker, on a clock of the test's."""

    processes: int = 2
    now: float = 100.0
    running: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = SlotTurns(self.processes, lambda: self.now)

    def start(self, share: str, *, in_process: bool = True) -> Run:
        message = TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "echo", {}, "q", share=share)
        self.running.append(Run(message, None, in_process, started=self.now))
        return self.running[-1]

    def end(self, run: Run, after: float = 0) -> frozenset[str]:
        self.now += after
        self.running.remove(run)
        self.turns.on_end(run, self.running)
        return self.turns.passed_over


def test_a_step_that_ends_beside_a_slow_task_begins_a_pause() -> None:
    slots = Slots()
    slots.start("pa/5")
    slots.now += SLOW
    assert slots.end(slots.start("pb"), after=QUICK) == {"pa"}
    slots.now += PAUSE_SECONDS
    assert slots.turns.passed_over == frozenset()
    assert slots.turns.seconds_left <= 0


def test_a_step_outside_of_child_processes_prolongs_the_pause() -> None:
    slots = Slots()
    slots.start("pa")
    slots.now += SLOW
    slots.end(slots.start("pb"))
    slots.end(slots.start("pb", in_process=False), after=PAUSE_SECONDS * 0.9)
    assert slots.turns.seconds_left == pytest.approx(PAUSE_SECONDS)


def test_a_partner_whose_last_task_was_slow_is_passed_over_at_once() -> None:
    slots = Slots()
    slots.end(slots.start("pa"), after=SLOW)
    slots.start("pa")
    assert slots.end(slots.start("pb")) == {"pa"}


NO_PAUSE: dict[str, Any] = {
    "a quick one runs beside it": (2, ["pa"], QUICK),
    "nothing runs beside it": (2, [], SLOW),
    "there is one child process": (1, [], SLOW),
    "another process is free": (4, ["pa", "pa"], SLOW),
    "the partner's own runs beside it": (2, ["pb"], SLOW),
    "the partner has two of three": (3, ["pa", "pb/2"], SLOW),
}


@pytest.mark.parametrize(("processes", "beside", "seconds"), NO_PAUSE.values(), ids=list(NO_PAUSE))
def test_there_is_no_pause_when(processes: int, beside: list[str], seconds: float) -> None:
    slots = Slots(processes)
    for share in beside:
        slots.start(share)
    slots.now += seconds
    assert slots.end(slots.start("pb")) == frozenset()


def test_a_slow_task_that_ends_begins_no_pause() -> None:
    slots = Slots()
    slots.start("pa")
    assert slots.end(slots.start("pb"), after=SLOW) == frozenset()


def test_partners_hold_all_processes_when_each_runs_something_long() -> None:
    slots = Slots()
    slots.start("pa/5")
    assert slots.turns.holders(slots.running) == frozenset(), "a process is free"
    slots.now += LONG_SECONDS
    last = slots.start("pb")
    slots.start("pc", in_process=False)
    assert slots.turns.holders(slots.running) == frozenset(), "the second may end soon"
    slots.now += LONG_SECONDS
    assert slots.turns.holders(slots.running) == {"pa", "pb"}
    slots.start("pd")
    assert slots.turns.holders(slots.running) == frozenset(), "one more is used already"
    slots.end(last)
    assert slots.turns.holders(slots.running) == frozenset()
