"""A worker without a database: which handlers it cannot run, and what it says of their tasks."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.states import ResultStatus
from graticule.handlers.registry import handlers
from graticule.messaging.protocol import TaskMessage
from graticule.worker.executor import Executor, runnable
from graticule.worker.run import Run

NEEDING = {
    *("publish.export", "publish.reverse", "publish.unpublish"),
    *("vector.stage", "vector.load", "vector.finalize", "vector.stac_register_item"),
}


def test_it_names_the_handlers_that_it_can_run_and_logs_the_others() -> None:
    with capture_logs() as logged:
        able = runnable(handlers(), has_database=False)
    assert set(handlers()) - set(able) == NEEDING
    assert [line["handlers"] for line in logged] == [sorted(NEEDING)]
    assert runnable(handlers(), has_database=True) == list(handlers())


@pytest.mark.parametrize("name", ["vector.load", "vector.finalize"])
async def test_a_task_that_needs_the_database_fails_for_good_and_says_where_it_belongs(name: str) -> None:
    nothing = cast("Any", None)
    message = TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), name, {}, "far-tasks", delivery_count=1)
    run = Run(message, handlers()[name], False, on_stubborn=lambda _: None)
    outcome = await Executor(nothing, nothing, nothing).execute(run)
    assert (outcome.status, outcome.retryable) == (ResultStatus.FAILED, False)
    for part in (name, "GRATICULE_DATABASE_URL", "`queue`", "far-tasks"):
        assert part in str(outcome.error_message)
