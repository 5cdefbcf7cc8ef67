"""A commit is executed, and its answer is lost: the process lives on, and no result counts twice.

Orchestrators and workers lose the answer of each of their commits, once; all that they do has something to do.
"""

import signal
from collections.abc import Callable, Collection, Iterator
from uuid import uuid4

import httpx
import pytest
from tests.chaos.member import Action, Fault, Member
from tests.e2e.eventually import eventually
from tests.faults.conftest import on_postgres, over_broker
from tests.faults.installation import Installation, Service, go_on, pause
from tests.faults.test_fault_points import BY_QUEUE
from tests.faults.ways import (
    AGED_TASK,
    APPROVALS,
    ASSET_ROWS,
    ASSET_WITH_VERSION,
    CALLBACK,
    HELD_MESSAGE,
    ORPHANED,
    SET_ASIDE,
    TOKEN,
    TRIES,
    Scene,
    new_data,
    prune,
)

from graticule.config import Transport
from graticule.core.fault_points import Commit, Moment

OF_REGISTRY = (
    *(Commit.CLIENTS, Commit.PLATFORMS, Commit.METADATA, Commit.COMMAND, Commit.SUBMIT_VERSION, Commit.CHANGE_ASSET),
    *(Commit.CLAIM_CALLBACKS, Commit.RECORD_CALLBACK, Commit.REDELIVER),
)
OF_ORCHESTRATOR = (
    *(Commit.SUBMIT, Commit.CANCEL, Commit.RESUME, Commit.REPORT, Commit.DEAD_LETTERS),
    *(Commit.STEP, Commit.LARGE_STEP, Commit.TAKE_MESSAGES, Commit.MAKE_JOBS, Commit.SET_ASIDE),
    *(Commit.GIVE_MESSAGES_BACK, Commit.JOIN, Commit.BEAT, Commit.TAKE_OVER, Commit.HAND_OVER),
    *(Commit.SHARE_WORKFLOWS, Commit.REAP_TASKS, Commit.REAP_MESSAGES),
)
OF_WORKER = (
    *(Commit.CLAIM, Commit.RENEW, Commit.ABANDON, Commit.FINISH, Commit.RUNNING, Commit.CHECKPOINT),
    *(Commit.WORKER_BEAT, Commit.WORKER_STOP),
)
OVER = {Transport.POSTGRES: OF_ORCHESTRATOR, Transport.SERVICEBUS: (*OF_ORCHESTRATOR, Commit.SEND)}
LATER = {Commit.STEP: 4, Commit.FINISH: 2}  # the first steps are those of submissions


def lost(commits: Collection[Commit]) -> list[Fault]:
    return [Fault(commit, Moment.AFTER, Action.LOSE_ANSWER, LATER.get(commit, 1)) for commit in commits]


def until_lost(member: Member, commits: Collection[Commit]) -> None:
    """Wait until the answers of these commits were lost."""

    def missing() -> list[Commit]:
        return [commit for commit in commits if f"fault after {commit}\n" not in member.output]

    eventually(lambda: not missing(), lambda: f"{missing()}; {member.output}")


def asked_again(ask: Callable[[], httpx.Response | None]) -> httpx.Response:
    """Ask; while the answer is that it is not known what came of it, ask again."""
    first = ask()
    assert first is not None
    assert first.status_code == 503, first.text
    return eventually(lambda: known if (known := ask()) is not None and known.status_code != 503 else None, "an answer")


@pytest.fixture(scope="module")
def started(installation: Installation) -> Service:
    return installation.orchestrator().until_ready()


@pytest.fixture
def orchestrator(started: Service) -> Iterator[Service]:
    """Give one that is told of everything."""
    yield started
    go_on(started)


def test_every_commit_is_among_them() -> None:
    assert {*OF_REGISTRY, *OF_ORCHESTRATOR, *OF_WORKER, *BY_QUEUE, Commit.PRUNE} == {*Commit}


def change_the_registry(installation: Installation, other: Service) -> None:
    """Add a client and a partner, describe a layer, give a command: each is done once, though its answer is lost."""
    client = {"client_id": "lost", "display_name": "Lost", "roles": ["operator"]}
    assert asked_again(lambda: other.ask("POST", "/api/v1/clients", json=client)).status_code == 409, "it is there"
    partner = {"platform_id": "lost", "display_name": "Lost", "required_refs": ["a"], "version_ref": "v"}
    assert asked_again(lambda: other.ask("POST", "/api/v1/platforms", json=partner)).status_code == 200
    installation.query(ASSET_WITH_VERSION, asset_id := "e" * 32)
    path, wanted = f"/api/v1/assets/{asset_id}/versions/0/metadata", {"title": "A layer", "expected_version": 0}
    assert asked_again(lambda: other.ask("PUT", path, json=wanted)).json()["version"] == 1
    command = {"asset_id": asset_id}
    again = asked_again(lambda: other.ask("POST", "/api/v1/commands/asset.reindex", json=command))
    assert again.json()["outcome"] == "unchanged"


def change_an_asset(installation: Installation, other: Service) -> None:
    """Send new data and approve them: each is done once, though its answer is lost."""
    asked, key = new_data(), uuid4().hex
    receipt = asked_again(lambda: other.ask("POST", "/api/v1/submit", key, json=asked)).json()
    assert installation.until_ended(receipt["job_id"]) == "completed"
    approve = f"/api/v1/assets/{receipt['asset_id']}/approve"
    again = asked_again(lambda: other.ask("POST", approve, json={"clearance_level": "ouo"}))
    assert again.json()["changed"] is False
    assert installation.query(APPROVALS, receipt["asset_id"]) == [{"latest": 0, "clearance": "ouo", "told": 1}]
    assert installation.query(ASSET_ROWS, receipt["asset_id"])[0]["jobs"] == 1


def call_back(installation: Installation, other: Service, job_id: str) -> None:
    """Have a callback tried, and tried anew: each try is told once, though its answer is lost."""
    (row,) = installation.query(CALLBACK, job_id, None)
    eventually(lambda: installation.query(TRIES, row["callback_id"]), installation.left)
    asked_again(lambda: other.ask("POST", f"/api/v1/deliveries/{row['callback_id']}/redeliver"))
    eventually(lambda: len(installation.query(TRIES, row["callback_id"])) > 1, installation.left)


@on_postgres
def test_an_orchestrator_is_not_told_what_it_has_registered(installation: Installation, orchestrator: Service) -> None:
    pause(orchestrator)  # or it would try the callback
    with installation.visitors():
        other, _ = installation.orchestrator(*lost(OF_REGISTRY)), installation.worker()
        ended = installation.submit(other.until_ready())
        change_the_registry(installation, other)
        change_an_asset(installation, other)
        call_back(installation, other, ended)
        until_lost(other.member, OF_REGISTRY)
        installation.until_quiet()
    assert installation.violations() == []


def test_an_orchestrator_is_told_of_none_of_its_commits(installation: Installation, orchestrator: Service) -> None:
    commits = OVER[installation.transport]
    expired, orphan = installation.submit(orchestrator), installation.submit(orchestrator, first_seconds=1)
    installation.pause_between_transactions(orchestrator)
    installation.query(AGED_TASK, expired)
    installation.query(ORPHANED, orphan)
    installation.send()
    installation.send("no_such_workflow", is_bad=True)
    installation.leave(HELD_MESSAGE)
    letter = installation.leave(SET_ASIDE)
    with installation.visitors():
        other = installation.orchestrator(*lost(commits), **TOKEN).until_ready()
        worker = installation.worker(GRATICULE_DAG_CALLBACK_URL=f"http://127.0.0.1:{other.port}", **TOKEN)
        key = installation.expect("faults_chain")
        assert asked_again(lambda: installation.ask_for(other, "faults_chain", key, {})).status_code == 200
        slow, failing = installation.submit(other, seconds=30), installation.submit(other, fails=2)
        installation.submit(other, "faults_fan_out", may_fail=True)
        installation.until_leased(slow)
        assert asked_again(lambda: other.ask("POST", f"/api/v1/jobs/{slow}/cancel")).json()["status"] == "cancelled"
        assert installation.until_ended(failing) == "failed"
        assert asked_again(lambda: other.ask("POST", f"/api/v1/jobs/{failing}/retry")).status_code == 409
        again = asked_again(lambda: other.ask("POST", f"/api/v1/dead-letters/{letter}/requeue"))
        assert again.status_code == 404, "it is no dead letter any more"
        until_lost(other.member, [each for each in commits if each is not Commit.HAND_OVER])
        installation.until_quiet()
        handed_over = installation.submit(other, first_seconds=1)
        other.member.send(signal.SIGTERM)
        assert other.member.wait() == 0
        until_lost(other.member, [Commit.HAND_OVER])
        assert "Traceback" not in other.member.output
        go_on(orchestrator)
        worker.member.kill()  # nobody answers at the address to which it reports
        installation.worker()
        installation.until_quiet()
    assert installation.until_ended(failing) == installation.until_ended(handed_over) == "completed"
    assert installation.violations() == []


def test_a_worker_is_told_of_none_of_its_commits(installation: Installation, orchestrator: Service) -> None:
    with installation.visitors():
        worker = installation.worker(*lost(OF_WORKER))
        quick, phased = installation.submit(orchestrator), installation.submit(orchestrator, phases=3)
        slow = installation.submit(orchestrator, first_seconds=2)
        until_lost(worker.member, [each for each in OF_WORKER if each not in {Commit.ABANDON, Commit.WORKER_STOP}])
        installation.until_quiet()
        given_back = installation.submit(orchestrator, seconds=0.5)
        installation.until_leased(given_back)
        worker.member.send(signal.SIGTERM)
        assert worker.member.wait() == 0
        until_lost(worker.member, [Commit.ABANDON, Commit.WORKER_STOP])
        assert "Traceback" not in worker.member.output
        installation.worker()
        installation.until_quiet()
    assert {installation.until_ended(job_id) for job_id in (quick, phased, slow, given_back)} == {"completed"}
    assert installation.violations() == []


@over_broker
def test_a_task_that_the_broker_has_is_noted_later_when_that_fails_at_first(
    installation: Installation, orchestrator: Service
) -> None:
    with installation.visitors():
        other = installation.orchestrator(Fault(Commit.SEND, Moment.BEFORE, Action.LOSE_ANSWER)).until_ready()
        job_id = installation.submit(other)
        eventually(lambda: "fault before send" in other.member.output, "a note that fails")
        eventually(lambda: installation.tasks(job_id)[0]["sent_at"], installation.left, 10)
        installation.worker()
        installation.until_quiet()
    assert orchestrator.member.running
    assert installation.violations() == []


@on_postgres
def test_a_prune_is_not_told_of_its_commit(installation: Installation, orchestrator: Service) -> None:
    with installation.visitors():
        worker = installation.worker()
        acts = prune(Scene(installation, orchestrator, worker, *lost([Commit.PRUNE])))
        member = next(acts)
        assert member.wait() == 1
        until_lost(member, [Commit.PRUNE])
        next(acts, None)
    assert installation.violations() == []
