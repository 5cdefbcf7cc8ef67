"""Three orchestrators share the jobs, and go on sharing them when one is killed, one stops or one comes."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.e2e.eventually import eventually
from tests.faults.carriers import JOBS
from tests.faults.conftest import on_postgres
from tests.faults.installation import Installation, Service, go_on, pause

MANY = 100
SOME = 30
WAITED_FOR_OWNER = """
    SELECT extract(epoch FROM max(event.created_at) - max(stopped_at)) AS seconds
    FROM dagapp.dag_orchestrators, dagapp.dag_job_events AS event
    WHERE owner_id = %s AND event_type = 'job_reclaimed' AND event.created_at > started_at
"""


@dataclass
class Fleet:
    """Orchestrators, and a worker that works when it is told to: until then, all jobs are active at once."""

    installation: Installation
    worker: Service
    members: list[Service] = field(default_factory=list)

    def fill(self) -> "Fleet":
        """Have three that run and share."""
        self.members = [each for each in self.members if each.member.running]
        missing = [self.installation.orchestrator() for _ in range(3 - len(self.members))]
        self.members += [each.until_ready() for each in missing]
        for each in self.members:
            self.installation.owner_id(each)
        return self

    def instances(self, *, stopped: bool = False) -> dict[int, dict[str, Any]]:
        """Give what the API tells of the instances, by process."""
        path = f"/api/v1/orchestrators?stopped={str(stopped).lower()}"
        return {each["process_id"]: each for each in self.members[0].get(path)["items"]}

    def shares(self) -> list[int]:
        """Give how many active jobs each member has."""
        found = self.instances()
        return [found.get(each.member.pid, {"active_jobs": 0})["active_jobs"] for each in self.members]

    def until_even(self, jobs: int, seconds: float = 10) -> list[int]:
        """Wait until all jobs have an owner and no member has many more than its share; give the shares."""

        def even() -> list[int] | None:
            shares = self.shares()
            return shares if sum(shares) == jobs and max(shares) <= jobs / len(self.members) + 5 else None

        return eventually(even, lambda: f"even shares, not {self.shares()}; {self.instances()}", seconds)

    def finish(self) -> None:
        """Let the worker work, and see that every job ends as it should."""
        go_on(self.worker)
        self.installation.until_quiet()
        pause(self.worker)
        assert self.installation.violations() == []


@pytest.fixture(scope="module")
def started(installation: Installation) -> Fleet:
    worker = installation.worker(GRATICULE_WORKER_CONCURRENCY="200").until_ready()
    pause(worker)
    return Fleet(installation, worker)


@pytest.fixture
def fleet(started: Fleet) -> Iterator[Fleet]:
    yield started.fill()
    go_on(*started.members)


def test_a_hundred_jobs_by_message_are_shared_and_no_instance_ever_has_more_than_half(fleet: Fleet) -> None:
    fleet.installation.send_many(MANY)
    most = [0, 0, 0]

    def all_active() -> bool:
        shares = fleet.shares()
        most[:] = map(max, most, shares)
        return sum(shares) == MANY

    eventually(all_active, lambda: f"{MANY} active jobs, not {fleet.shares()}")
    go_on(fleet.worker)
    eventually(lambda: all_active() or sum(fleet.shares()) == 0, "the end of all")
    fleet.finish()
    assert max(most) <= MANY / 2, most


@on_postgres
def test_jobs_that_one_instance_was_given_are_shared_out(fleet: Fleet) -> None:
    fleet.installation.submit_many(fleet.members[0], SOME)
    fleet.until_even(SOME)
    given_away = "SELECT count(*) FROM dagapp.dag_jobs WHERE owner_epoch > 1 AND ended_at IS NULL"
    assert fleet.installation.query(given_away)[0]["count"] >= SOME / 2
    fleet.finish()


def test_the_survivors_share_the_jobs_of_one_that_is_killed(fleet: Fleet) -> None:
    fleet.installation.send_many(SOME)
    fleet.until_even(SOME)
    killed = fleet.members.pop()
    assert fleet.instances()[killed.member.pid]["state"] == "alive"
    killed.member.kill()
    began = time.monotonic()
    shares = fleet.until_even(SOME)
    assert time.monotonic() - began < 5
    assert min(shares) > 0
    assert killed.member.pid not in fleet.instances()
    assert fleet.instances(stopped=True)[killed.member.pid]["state"] == "stopped"
    fleet.finish()


def test_an_instance_that_is_silent_loses_its_jobs_and_takes_part_again_when_it_is_back(fleet: Fleet) -> None:
    fleet.installation.send_many(SOME)
    fleet.until_even(SOME)
    silent = fleet.members.pop()
    pause(silent)
    fleet.until_even(SOME)
    assert fleet.instances(stopped=True)[silent.member.pid]["state"] == "stopped"
    go_on(silent)
    fleet.members.append(silent)
    eventually(lambda: fleet.instances().get(silent.member.pid), "the silent one among the others again")
    fleet.until_even(SOME)
    fleet.finish()


def test_an_instance_that_is_told_to_stop_hands_its_jobs_over_at_once(fleet: Fleet) -> None:
    fleet.installation.send_many(SOME)
    fleet.until_even(SOME)
    stopping = fleet.members.pop()
    owner_id = fleet.installation.owner_id(stopping)
    stopping.member.send(signal.SIGTERM)
    assert stopping.member.wait(10) == 0
    assert fleet.instances(stopped=True)[stopping.member.pid]["state"] == "stopped"
    fleet.until_even(SOME)
    (waited,) = fleet.installation.query(WAITED_FOR_OWNER, owner_id)
    assert waited["seconds"] < 1.5, "to find the jobs of one that says nothing takes two"
    fleet.finish()


def test_an_instance_that_joins_gets_a_share(fleet: Fleet) -> None:
    fleet.installation.send_many(SOME)
    fleet.until_even(SOME)
    with fleet.installation.visitors():
        fleet.members.append(fleet.installation.orchestrator().until_ready())
        fleet.installation.owner_id(fleet.members[-1])
        fleet.installation.submit_many(fleet.members[0], SOME)
        shares = fleet.until_even(2 * SOME)
        assert shares[-1] > SOME / 4, shares
        fleet.finish()
    fleet.members.pop()


def test_an_instance_takes_no_messages_over_its_limit_until_jobs_have_ended(fleet: Fleet) -> None:
    pause(*fleet.members)
    limit = 5
    with fleet.installation.visitors():
        limited = fleet.installation.orchestrator(GRATICULE_MAX_ACTIVE_JOBS=str(limit)).until_ready()
        fleet.installation.send_many(2 * limit)
        most = 0
        waiting = "SELECT count(*) FROM dagapp.dag_job_messages WHERE status = 'queued'"
        active = "SELECT count(*) FROM dagapp.dag_jobs WHERE ended_at IS NULL"
        eventually(lambda: fleet.installation.query(active)[0]["count"] == limit, "as many jobs as it may have")
        polls = time.monotonic() + 1.2  # two of its polls, after each of which it could take more
        while time.monotonic() < polls:
            assert fleet.installation.query(active)[0]["count"] == limit
            assert fleet.installation.query(waiting)[0]["count"] == limit
        go_on(fleet.worker)
        while not fleet.installation.is_quiet():
            most = max(most, fleet.installation.query(active)[0]["count"])
        assert most <= limit
        assert limited.member.running
        fleet.finish()


@on_postgres
def test_a_key_that_is_sent_to_all_at_once_makes_one_job(fleet: Fleet) -> None:
    for _ in range(5):
        key = fleet.installation.expect("faults_chain")
        with ThreadPoolExecutor(3) as threads:
            asked = [
                threads.submit(fleet.installation.ask_for, each, "faults_chain", key, {}) for each in fleet.members
            ]
            answers = [answer for each in asked if (answer := each.result()) is not None]
        assert sorted(answer.status_code for answer in answers) == [200, 200, 201]
        assert len({answer.json()["job_id"] for answer in answers}) == 1
    fleet.finish()


def test_bad_job_messages_are_dead_letters_with_the_reason(fleet: Fleet) -> None:
    keys = {
        fleet.installation.send("no_such_workflow", is_bad=True): "There is no workflow 'no_such_workflow'",
        fleet.installation.send(is_bad=True, seconds="long"): "'seconds' must be a number",
    }
    fleet.installation.until_quiet()
    letters = {each["id"]: each for each in fleet.members[1].get("/api/v1/dead-letters?kind=job")["items"]}
    assert letters.keys() == keys.keys()
    for key, reason in keys.items():
        assert reason in letters[key]["reason"]
        assert (letters[key]["queue"], letters[key]["body"]["idempotency_key"]) == (JOBS, key)
    fleet.finish()
