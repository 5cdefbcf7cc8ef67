"""When a worker uses a process more than usual, and for whom."""

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.messaging.protocol import TaskMessage
from graticule.worker.run import Run
from graticule.worker.spare_process import LONG_SECONDS, partners_of, seconds_until_due

NOW = 1000.0


def run(share: str, *, since: float | None) -> Run:
    message = TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "test.slow", {}, "q", share=share)
    return Run(message, None, in_process=True, started=None if since is None else NOW - since)


def test_the_spare_process_waits_until_every_other_runs_something_long() -> None:
    heavy = [run("pa", since=LONG_SECONDS * 5), run("pa", since=LONG_SECONDS - 3)]
    assert seconds_until_due(heavy, 2, NOW) == 3
    assert seconds_until_due(heavy, 2, NOW + 3) == 0
    assert seconds_until_due(heavy, 2, NOW + 300) == 0


def test_a_task_that_has_not_begun_may_be_short() -> None:
    assert seconds_until_due([run("pa", since=LONG_SECONDS * 5), run("pa", since=None)], 2, NOW) == LONG_SECONDS


def test_the_spare_process_is_not_used_while_another_is_free() -> None:
    assert seconds_until_due([run("pa", since=LONG_SECONDS)], 2, NOW) is None


def test_there_is_one_spare_process() -> None:
    assert seconds_until_due([run("pa", since=LONG_SECONDS)] * 3, 2, NOW) is None


def test_the_priorities_of_a_partner_are_its_own() -> None:
    assert partners_of([run("pa", since=1), run("pa/5", since=1), run("", since=1)]) == {"pa", ""}
