"""An upgrade while everyone is at work: migrate, run both releases side by side, and replace process by process.

Each node of a chain has a queue of its own: jobs go one node further when somebody serves the next queue. So the test
decides how far they are when their owners and workers are replaced.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, LiteralString

from tests.chaos.history import History, read_history
from tests.chaos.ledger import Ledger
from tests.chaos.rules import Rule, violations
from tests.upgrade.installation import Installation, Instance

from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus

CHAINS: Final = 8  # enough that a new instance gives some away when another joins
MESSAGES: Final = 4
ACTIVE: LiteralString = "SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')"
OF_OTHERS: LiteralString = f"{ACTIVE} AND owner_id IS DISTINCT FROM %s"
OWN: LiteralString = f"{ACTIVE} AND owner_id = %s"
WAITING: LiteralString = "SELECT count(*) FROM dagapp.dag_job_messages WHERE status = 'queued'"
AT_NODE: LiteralString = "SELECT count(*) FROM dagapp.dag_nodes WHERE node_id = %s AND status = 'dispatched'"
CHECKPOINTS: LiteralString = "SELECT count(*) FROM dagapp.dag_checkpoints WHERE job_id = %s"
AT_THE_MIGRATION: LiteralString = f"""
    SELECT ({ACTIVE}) AS active, ({WAITING}) AS messages,
           (SELECT count(*) FROM dagapp.dag_jobs WHERE status = 'failed') AS failed,
           (SELECT count(*) FROM dagapp.dag_jobs WHERE status = 'completed') AS completed,
           (SELECT count(*) FROM dagapp.dag_nodes WHERE status = 'ready' AND ready_at > now()) AS retries
"""


def test_jobs_go_on_through_an_upgrade_in_the_hands_of_both_releases(site: Installation) -> None:
    old = site.start_old("orchestrator", GRATICULE_MAX_ACTIVE_JOBS="3")
    old_worker = site.start_old("worker", "--queues", "early")
    failed = bring_about_all_states(site, old.until_ready())

    site.migrate()
    assert_still_at_work(site, old)

    new = site.start_new("orchestrator").until_ready()
    site.until(0, WAITING)  # the old one has too many jobs already
    chain = site.submit(new, "upgrade_chain")
    site.until(CHAINS + MESSAGES + 1, AT_NODE, "second")  # the old worker's results reach the new orchestrator
    hand_over(site, old, new)
    assert new.ask("POST", f"/api/v1/jobs/{failed}/retry").status_code == 200

    old_again = site.start_old("orchestrator").until_ready()
    site.until_so(lambda jobs: jobs > 0, OWN, site.owner_id(old_again))  # the new one shares with it
    hand_over(site, new, old_again)
    site.start_new("worker", "--queues", "middle")
    site.until(CHAINS + MESSAGES + 1, AT_NODE, "third")  # the new worker's results reach the old orchestrator

    new_again = site.start_new("orchestrator").until_ready()
    hand_over(site, old_again, new_again)
    interrupted = replace_worker(site, new_again, old_worker)

    site.until(0, ACTIVE)
    assert new_again.ask("GET", f"/api/v1/jobs/{interrupted}").json()["result"]["resumed_from"] is not None
    history = asyncio.run(read_history(site.database.url(), Ledger(site.folder / "none"), site.submitted))
    assert_all_ended_well(history)
    assert owners_after_the_first(history, chain) == [site.owner_id(old_again), site.owner_id(new_again)]
    assert_both_releases_took_jobs_over(history, [site.owner_id(each) for each in (new, new_again)])


# What is done


def bring_about_all_states(site: Installation, old: Instance) -> str:
    """Leave jobs that have ended, that run and that wait, and messages; give one that failed."""
    for _ in range(CHAINS):
        site.submit(old, "upgrade_chain")
    slow, completed = (site.submit(old, "upgrade_phases", phases=phases) for phases in (30, 1))
    failed, doomed = site.submit(old, "upgrade_failing"), site.submit(old, "upgrade_failing", may_fail=True)
    for _ in range(MESSAGES):
        site.send("upgrade_chain")
    site.until_status("failed", [failed, doomed])
    site.until_status("completed", [completed])
    site.until(1, CHECKPOINTS, slow)
    site.submit(old, "upgrade_retry")
    site.submit(old, "upgrade_fan_out", children=20)
    site.until((CHAINS + 3, MESSAGES, 2, 1, 1), AT_THE_MIGRATION)
    return failed


def assert_still_at_work(site: Installation, old: Instance) -> None:
    """See that an old orchestrator takes and ends jobs."""
    old.until_ready()
    site.until_status("completed", [site.submit(old, "upgrade_phases", phases=1)])


def hand_over(site: Installation, giver: Instance, taker: Instance) -> None:
    """Stop an orchestrator, and wait until all of its jobs are another's."""
    giver.stop()
    site.until(0, OF_OTHERS, site.owner_id(taker))


def replace_worker(site: Installation, orchestrator: Instance, old_worker: Instance) -> str:
    """Stop the old worker in the middle of a task, and let a new one go on with it; give its job."""
    job_id = site.submit(orchestrator, "upgrade_phases", phases=6)
    site.until(1, CHECKPOINTS, job_id)
    site.start_new("worker", "--queues", "early,late")
    old_worker.stop()
    return job_id


# What is left


def assert_all_ended_well(history: History) -> None:
    """All jobs have ended as they should, and what is told of them is sound. The handlers here write no ledger."""
    assert [str(each) for each in violations(history) if each.rule is not Rule.COUNTED_NOTHING] == []
    doomed = {asked.key for asked in history.submitted if asked.may_fail}
    assert {job.idempotency_key for job in history.jobs if job.status is not JobStatus.COMPLETED} == doomed


def owners_after_the_first(history: History, job_id: str) -> list[str | None]:
    """Give who took a job over, in order."""
    reclaims = (event for event in history.events if event.event_type is EventType.JOB_RECLAIMED)
    return [event.actor for event in reclaims if event.job_id == job_id]


def assert_both_releases_took_jobs_over(history: History, new: Sequence[str]) -> None:
    """Jobs came to instances of the new release and of the previous one, whose code `unpack` has seen at work."""
    takers = {event.actor for event in history.events if event.event_type is EventType.JOB_RECLAIMED}
    assert set(new) <= takers
    assert takers - set(new)
