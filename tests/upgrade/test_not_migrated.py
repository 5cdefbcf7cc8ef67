"""New processes on the schema of the previous release say what to do, change nothing, and go on once it is done."""

import time
from collections.abc import Iterator
from typing import Any, Final, LiteralString

from tests.upgrade.installation import Installation

LOOK_SECONDS: Final = 1.5  # several rounds of everything that an orchestrator does by itself
MEND: Final = "graticule schema migrate"
ALL_ROWS: LiteralString = """
    SELECT (SELECT jsonb_agg(job ORDER BY job_id) FROM dagapp.dag_jobs AS job),
           (SELECT jsonb_agg(node ORDER BY job_id, node_id) FROM dagapp.dag_nodes AS node),
           (SELECT jsonb_agg(task ORDER BY task_id) FROM dagapp.dag_tasks AS task),
           (SELECT jsonb_agg(event ORDER BY event_id) FROM dagapp.dag_job_events AS event)
"""
MESSAGES: LiteralString = "SELECT status::text, dead_reason FROM dagapp.dag_job_messages"
AT_SECOND: LiteralString = "SELECT count(*) FROM dagapp.dag_nodes WHERE node_id = 'second' AND status = 'dispatched'"
COMPLETED: LiteralString = "SELECT count(*) FROM dagapp.dag_jobs WHERE status = 'completed'"


def test_new_processes_tell_to_migrate_and_leave_the_jobs_of_old_ones_alone(site: Installation) -> None:
    old, new = site.start_old("orchestrator"), site.start_new("orchestrator")
    worker = site.start_new("worker", "--queues", "early")
    new.until_not_ready(MEND)
    worker.until_not_ready(MEND)
    refused = new.ask("POST", "/api/v1/jobs", {"workflow_id": "upgrade_chain"})
    assert (refused.status_code, MEND in refused.text) == (503, True)

    site.submit(old.until_ready(), "upgrade_chain")
    assert_unchanged(site)  # the new worker takes nothing: it cannot know yet which sources a task may read
    site.start_old("worker", "--queues", "early")
    site.until(1, AT_SECOND)
    old.stop()
    assert_unchanged(site)

    site.migrate()
    new.until_ready()
    worker.until_ready()
    site.start_new("worker", "--queues", "middle,late")
    site.until(1, COMPLETED)


def test_messages_wait_for_the_migration(site: Installation) -> None:
    new = site.start_new("orchestrator")
    new.until_not_ready(MEND)
    site.send("upgrade_chain")
    for status, reason in watched(site, MESSAGES):
        assert status in {"queued", "leased"}, reason
    site.migrate()
    site.start_new("worker", "--queues", "early,middle,late")
    site.until(1, COMPLETED)


def assert_unchanged(site: Installation) -> None:
    """See that nobody touches the rows for a while."""
    before = site.query(ALL_ROWS)[0]
    for rows in watched(site, ALL_ROWS):
        assert rows == before


def watched(site: Installation, statement: LiteralString) -> Iterator[tuple[Any, ...]]:
    """Give the row that a statement gives, again and again for a while."""
    until = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < until:
        yield site.query(statement)[0]
        time.sleep(0.05)
