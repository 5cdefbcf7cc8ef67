"""How each commit is reached: which process does it, and what has to happen before."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import httpx
import psycopg
from tests.chaos.member import Fault, Member
from tests.e2e.eventually import eventually
from tests.faults.installation import Installation, Service, go_on, pause

from graticule.config import Transport
from graticule.core.fault_points import Commit, Moment
from graticule.core.table import DatabaseRole

TOKEN = {"GRATICULE_WORKER_TOKEN": "a-token-of-some-length"}
AGED_TASK = """
    UPDATE dagapp.dag_tasks SET status = 'leased', leased_by = 'gone', delivery_count = 1,
        lease_expires_at = now() - interval '1 s' WHERE job_id = %s
"""
HELD_MESSAGE = """
    INSERT INTO dagapp.dag_job_messages (message_id, queue, body, status, leased_by, delivery_count, lease_expires_at)
    VALUES (%s, %s, %s, 'leased', 'gone', 1, now() - interval '1 s')
"""
SENT_LONG_AGO = "UPDATE dagapp.dag_tasks SET sent_at = now() - interval '9 days' WHERE job_id = %s"
ORPHANED = "UPDATE dagapp.dag_jobs SET owner_id = NULL, owner_epoch = owner_epoch + 1 WHERE job_id = %s"
AGED_JOB = "UPDATE dagapp.dag_jobs SET ended_at = now() - interval '9 days' WHERE job_id = %s"
SET_ASIDE = """
    INSERT INTO dagapp.dag_job_messages (message_id, queue, body, status, dead_reason)
    VALUES (%s, %s, %s, 'dead', 'a test')
"""
WAITS = "INSERT INTO dagapp.dag_job_messages (message_id, queue, body) VALUES (%s, %s, %s)"
ASSET_WITH_VERSION = """
    WITH asset AS (
        INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type, updated_at)
        VALUES (%s, 'geonode', '{"uuid": "u"}', 'raster', now()) RETURNING asset_id
    )
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label) SELECT asset_id, 0, '1' FROM asset
"""
ASSET_ROWS = """
    SELECT count(DISTINCT request_id) AS requests, count(DISTINCT version.version_ordinal) AS versions,
           count(DISTINCT job.job_id) AS jobs, min(processing_state::text) AS state,
           min(request.status::text) AS status,
           (SELECT count(*) FROM dagapp.dag_job_events AS event
            WHERE event.asset_id = version.asset_id AND event_type = 'asset_version_added') AS told
    FROM dagapp.asset_versions AS version
    JOIN dagapp.platform_requests AS request USING (asset_id) JOIN dagapp.dag_jobs AS job USING (asset_id)
    WHERE asset_id = %s GROUP BY version.asset_id
"""
APPROVALS = """
    SELECT latest_approved_version_ordinal AS latest, clearance_state::text AS clearance,
           (SELECT count(*) FROM dagapp.dag_job_events AS event
            WHERE event.asset_id = asset.asset_id AND event_type = 'asset_approved') AS told
    FROM dagapp.geospatial_assets AS asset WHERE asset_id = %s
"""
CALLBACK = """
    INSERT INTO dagapp.dag_callbacks (job_id, url, payload, next_attempt_at, delivered_at)
    VALUES (%s, 'http://127.0.0.1:1/', '{"job_id": "job", "status": "completed"}', now(), %s) RETURNING callback_id
"""
UNHELD = "UPDATE dagapp.dag_callbacks SET next_attempt_at = now() WHERE callback_id = %s"
TRIES = """
    SELECT (data->>'attempt')::int AS attempt FROM dagapp.dag_job_events
    WHERE event_type = 'callback_failed' AND (data->>'callback_id')::bigint = %s ORDER BY event_id
"""
WAITING_FOR_LOCK = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%%dag_job_messages%%'
"""


@dataclass(frozen=True)
class Scene:
    """A healthy orchestrator and a healthy worker, and the fault that another process will have."""

    installation: Installation
    orchestrator: Service
    worker: Service
    fault: Fault

    def other_orchestrator(self, **environment: str) -> Service:
        return self.installation.orchestrator(self.fault, **environment)

    def other_worker(self, **environment: str) -> Service:
        return self.installation.worker(self.fault, **environment)


# A way gives the process that has the fault, once that is on its way to it. When the fault has happened and the healthy
# ones go on, it is resumed: there it repeats what a user would, who got no answer.
Way = Callable[[Scene], Iterator[Member]]


@dataclass(frozen=True)
class Reached:
    """A commit, a way to it, and at which time of reaching it the fault comes."""

    commit: Commit
    way: Way
    at: int = 1

    def __str__(self) -> str:
        return f"{self.commit}-by-{getattr(self.way, 'func', self.way).__name__}"


# Requests


def submit(scene: Scene) -> Iterator[Member]:
    other = scene.other_orchestrator().until_ready()
    key = scene.installation.expect("faults_chain")
    _refused(scene.installation.ask_for(other, "faults_chain", key, {}))
    yield other.member
    answer = scene.installation.ask_for(scene.orchestrator, "faults_chain", key, {})
    assert answer is not None
    assert answer.status_code in {200, 201}


def cancel(scene: Scene) -> Iterator[Member]:
    other = scene.other_orchestrator().until_ready()
    job_id = scene.installation.submit(other, seconds=30)
    scene.installation.until_leased(job_id)
    _refused(other.ask("POST", f"/api/v1/jobs/{job_id}/cancel"))
    yield other.member
    answer = scene.orchestrator.ask("POST", f"/api/v1/jobs/{job_id}/cancel")
    assert answer is not None
    assert scene.installation.until_ended(job_id) == "cancelled"


def resume(scene: Scene) -> Iterator[Member]:
    other = scene.other_orchestrator().until_ready()
    job_id = scene.installation.submit(other, fails=2)
    assert scene.installation.until_ended(job_id) == "failed"
    _refused(other.ask("POST", f"/api/v1/jobs/{job_id}/retry"))
    yield other.member
    answer = scene.orchestrator.ask("POST", f"/api/v1/jobs/{job_id}/retry")
    assert answer is not None
    assert answer.status_code in {200, 409}, "409: it goes on already"
    assert scene.installation.until_ended(job_id) == "completed"


def requeue_dead_letter(scene: Scene) -> Iterator[Member]:
    message_id = scene.installation.leave(SET_ASIDE)
    other = scene.other_orchestrator().until_ready()
    _refused(other.ask("POST", f"/api/v1/dead-letters/{message_id}/requeue"))
    yield other.member
    answer = scene.orchestrator.ask("POST", f"/api/v1/dead-letters/{message_id}/requeue")
    assert answer is not None
    assert answer.status_code in {200, 404}, "404: it is no dead letter any more"


def add_platform(scene: Scene) -> Iterator[Member]:
    names = {"platform_id": f"p{uuid4().hex}", "display_name": "P", "required_refs": ["a"], "version_ref": "v"}
    yield from asked_twice(scene, "POST", "/api/v1/platforms", names, {200, 201})
    told = "SELECT event_id FROM dagapp.dag_job_events WHERE data ->> 'platform_id' = %s"
    assert len(scene.installation.query(told, names["platform_id"])) == 1


def describe_layer(scene: Scene) -> Iterator[Member]:
    scene.installation.query(ASSET_WITH_VERSION, asset_id := uuid4().hex)
    wanted = {"title": "A layer", "expected_version": 0}
    yield from asked_twice(scene, "PUT", f"/api/v1/assets/{asset_id}/versions/0/metadata", wanted, {200})
    told = "SELECT event_id FROM dagapp.dag_job_events WHERE asset_id = %s"
    assert len(scene.installation.query(told, asset_id)) == 1


def command(scene: Scene) -> Iterator[Member]:
    scene.installation.query(ASSET_WITH_VERSION, asset_id := uuid4().hex)
    yield from asked_twice(scene, "POST", "/api/v1/commands/asset.reindex", {"asset_id": asset_id}, {200})
    told = "SELECT data FROM dagapp.dag_job_events WHERE asset_id = %s ORDER BY event_id"
    outcomes = [row["data"]["outcome"] for row in scene.installation.query(told, asset_id)]
    assert outcomes in (["changed"], ["changed", "unchanged"])


def asked_twice(scene: Scene, method: str, path: str, body: dict[str, Any], answers: set[int]) -> Iterator[Member]:
    """Ask the one with the fault, and then a healthy one for the same."""
    other = scene.other_orchestrator().until_ready()
    _refused(other.ask(method, path, json=body))
    yield other.member
    answer = scene.orchestrator.ask(method, path, json=body)
    assert answer is not None
    assert answer.status_code in answers, answer.text


def add_client(scene: Scene) -> Iterator[Member]:
    """Whoever got no answer asks again, and gets a key; what may be there already is given another one."""
    other = scene.other_orchestrator().until_ready()
    new = {"client_id": f"c{uuid4().hex}", "display_name": "Portal", "roles": ["operator"]}
    _refused(other.ask("POST", "/api/v1/clients", json=new))
    yield other.member
    answer = scene.orchestrator.ask("POST", "/api/v1/clients", json=new)
    assert answer is not None
    if answer.status_code == 409:
        answer = scene.orchestrator.ask("POST", f"/api/v1/clients/{new['client_id']}/rotate")
        assert answer is not None
    assert answer.json()["key"].startswith("gtc_")
    told = (
        "SELECT event_id FROM dagapp.dag_job_events WHERE data->>'command' = 'client.add' AND data->>'client_id' = %s"
    )
    assert len(scene.installation.query(told, new["client_id"])) == 1


def submit_version(scene: Scene) -> Iterator[Member]:
    """A partner who got no answer sends the same with the same key: request, version and job are there once."""
    other = scene.other_orchestrator().until_ready()
    asked, key = new_data(), uuid4().hex
    _refused(other.ask("POST", "/api/v1/submit", key, json=asked))
    yield other.member
    receipt = submitted(scene.orchestrator, asked, key)
    assert scene.installation.until_ended(receipt["job_id"]) == "completed"
    assert scene.installation.query(ASSET_ROWS, receipt["asset_id"]) == [
        {"requests": 1, "versions": 1, "jobs": 1, "told": 1, "state": "completed", "status": "completed"}
    ]


def change_asset(scene: Scene) -> Iterator[Member]:
    """A reviewer who got no answer approves again: it was so already, or is so now, and is told once."""
    receipt = submitted(scene.orchestrator, new_data(), uuid4().hex)
    assert scene.installation.until_ended(receipt["job_id"]) == "completed"
    path = f"/api/v1/assets/{receipt['asset_id']}/approve"
    yield from asked_twice(scene, "POST", path, {"clearance_level": "ouo"}, {200})
    (approved,) = scene.installation.query(APPROVALS, receipt["asset_id"])
    assert approved == {"latest": 0, "clearance": "ouo", "told": 1}


def new_data() -> dict[str, Any]:
    """Give a submission of an asset that is not there yet."""
    names = {"platform_id": "geonode", "platform_refs": {"uuid": uuid4().hex}, "version_label": "1"}
    return {**names, "data_type": "raster", "container_name": "bronze", "file_name": "geonode/dem.tif"}


def submitted(to: Service, asked: dict[str, Any], key: str) -> dict[str, Any]:
    answer = to.ask("POST", "/api/v1/submit", key, json=asked)
    assert answer is not None
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def report(scene: Scene) -> Iterator[Member]:
    """A worker reports by HTTP, and does so until someone answers at that address."""
    other = scene.other_orchestrator(**TOKEN).until_ready()
    pause(scene.worker)
    scene.installation.submit(scene.orchestrator)
    scene.installation.worker(GRATICULE_DAG_CALLBACK_URL=f"http://127.0.0.1:{other.port}", **TOKEN)
    yield other.member
    if not other.member.running:
        scene.installation.orchestrator(GRATICULE_PORT=str(other.port), **TOKEN)
        scene.installation.until_quiet()


def _refused(answer: httpx.Response | None) -> None:
    assert answer is None or answer.status_code == 503, f"the fault was not met: {answer.status_code} {answer.text}"


# The loop


def own_job(scene: Scene, workflow_id: str = "faults_chain", *, may_fail: bool = False) -> Iterator[Member]:
    other = scene.other_orchestrator().until_ready()
    scene.installation.submit(other, workflow_id, may_fail=may_fail)
    yield other.member


def message(scene: Scene, *, is_bad: bool = False) -> Iterator[Member]:
    pause(scene.orchestrator)
    scene.installation.send("no_such_workflow" if is_bad else "faults_chain", is_bad=is_bad)
    yield scene.other_orchestrator().member


def cut_off_message(scene: Scene) -> Iterator[Member]:
    """The connection breaks while messages are claimed: what the instance may have been given goes back."""
    pause(scene.orchestrator)
    scene.installation.leave(WAITS)
    with psycopg.connect(scene.installation.url()) as connection:
        connection.execute("LOCK TABLE dagapp.dag_job_messages IN ACCESS EXCLUSIVE MODE")
        other = scene.other_orchestrator()
        waiting = eventually(lambda: scene.installation.query(WAITING_FOR_LOCK), "a claim that waits")
        scene.installation.query("SELECT pg_terminate_backend(%s)", waiting[0]["pid"])
    yield other.member


def start(scene: Scene) -> Iterator[Member]:
    yield scene.other_orchestrator().member


def orphan(scene: Scene) -> Iterator[Member]:
    job_id = scene.installation.submit(scene.orchestrator, seconds=0.2)
    pause(scene.orchestrator)
    scene.installation.query(ORPHANED, job_id)
    yield scene.other_orchestrator().member


def stop_with_job(scene: Scene) -> Iterator[Member]:
    other = scene.other_orchestrator().until_ready()
    scene.installation.owner_id(other)
    scene.installation.submit(other, seconds=0.2)
    other.member.send(signal.SIGTERM)
    yield other.member


# The way to the broker


def sent_task(scene: Scene) -> Iterator[Member]:
    """The broker has a task: whether its row says so or not, it is done once."""
    pause(scene.worker)
    other = scene.other_orchestrator().until_ready()
    scene.installation.submit(other)
    yield other.member


# Callbacks


def try_callback(scene: Scene) -> Iterator[Member]:
    """It leads to an address that is private, so each try fails; whoever dies over one leaves it to the others."""
    callback_id = add_callback(scene)
    yield scene.other_orchestrator().member
    scene.installation.query(UNHELD, callback_id)
    tries = [row["attempt"] for row in eventually(lambda: scene.installation.query(TRIES, callback_id), "a try")]
    assert tries == sorted({*tries}), "each is told once"


def redeliver(scene: Scene) -> Iterator[Member]:
    callback_id = add_callback(scene, delivered_at="now")
    go_on(scene.orchestrator)
    yield from asked_twice(scene, "POST", f"/api/v1/deliveries/{callback_id}/redeliver", {}, {200})
    eventually(lambda: scene.installation.query(TRIES, callback_id), "a try")


def add_callback(scene: Scene, delivered_at: str | None = None) -> int:
    """Add a callback of a job that has ended, while those that are healthy pause."""
    job_id = scene.installation.submit(scene.orchestrator)
    scene.installation.until_ended(job_id)
    pause(scene.orchestrator)
    return int(scene.installation.query(CALLBACK, job_id, delivered_at)[0]["callback_id"])


# The worker


def task(scene: Scene, **inputs: Any) -> Iterator[Member]:
    pause(scene.worker)
    scene.installation.submit(scene.orchestrator, **inputs)
    yield scene.other_worker().member


def stop_with_task(scene: Scene) -> Iterator[Member]:
    pause(scene.worker)
    job_id = scene.installation.submit(scene.orchestrator, seconds=0.4)
    other = scene.other_worker()
    scene.installation.until_leased(job_id)
    other.member.send(signal.SIGTERM)
    yield other.member


def stop_worker(scene: Scene) -> Iterator[Member]:
    other = scene.other_worker()
    scene.installation.worker_id(other)
    other.member.send(signal.SIGTERM)
    yield other.member


# Housekeeping


def prune(scene: Scene) -> Iterator[Member]:
    """Two jobs, each in a transaction of its own; what the first prune leaves, the second takes."""
    old = [scene.installation.submit(scene.orchestrator) for _ in range(2)]
    for job_id in old:
        scene.installation.until_ended(job_id)
        scene.installation.query(AGED_JOB, job_id)
    command = ("prune", "--older-than", "8d", "--batch", "1")
    yield scene.installation.start(DatabaseRole.ORCHESTRATOR, *command, faults=[scene.fault])
    again = scene.installation.start(DatabaseRole.ORCHESTRATOR, *command)
    assert again.wait() == 0, again.output
    assert scene.installation.query("SELECT FROM dagapp.dag_jobs WHERE job_id = ANY (%s)", old) == []
    scene.installation.forget(old)


WAYS: Final = (
    Reached(Commit.SUBMIT, submit),
    Reached(Commit.CANCEL, cancel),
    Reached(Commit.RESUME, resume),
    Reached(Commit.REPORT, report),
    Reached(Commit.DEAD_LETTERS, requeue_dead_letter),
    Reached(Commit.CLIENTS, add_client),
    Reached(Commit.PLATFORMS, add_platform),
    Reached(Commit.METADATA, describe_layer),
    Reached(Commit.COMMAND, command),
    Reached(Commit.SUBMIT_VERSION, submit_version),
    Reached(Commit.CHANGE_ASSET, change_asset),
    Reached(Commit.STEP, own_job, at=2),  # the first is that of the submission
    Reached(Commit.LARGE_STEP, partial(own_job, workflow_id="faults_fan_out", may_fail=True)),
    Reached(Commit.TAKE_MESSAGES, message),
    Reached(Commit.MAKE_JOBS, message),
    Reached(Commit.SET_ASIDE, partial(message, is_bad=True)),
    Reached(Commit.GIVE_MESSAGES_BACK, cut_off_message),
    Reached(Commit.JOIN, start),
    Reached(Commit.BEAT, start),
    Reached(Commit.SHARE_WORKFLOWS, start),
    Reached(Commit.TAKE_OVER, orphan),
    Reached(Commit.HAND_OVER, stop_with_job),
    Reached(Commit.CLAIM_CALLBACKS, try_callback),
    Reached(Commit.RECORD_CALLBACK, try_callback),
    Reached(Commit.REDELIVER, redeliver),
    Reached(Commit.CLAIM, task),
    Reached(Commit.RENEW, partial(task, first_seconds=0.8)),
    Reached(Commit.ABANDON, stop_with_task),
    Reached(Commit.FINISH, task),
    Reached(Commit.RUNNING, partial(task, first_seconds=2)),
    Reached(Commit.CHECKPOINT, partial(task, phases=3), at=2),
    Reached(Commit.WORKER_BEAT, task),
    Reached(Commit.WORKER_STOP, stop_worker),
    Reached(Commit.PRUNE, prune),
)

BY_REAPER: Final = (Commit.REAP_TASKS, Commit.REAP_MESSAGES)

# Of these the transport has no part: they commit nothing of tasks, of their results or of messages.
NOT_OF_QUEUES: Final = frozenset(
    {
        *(
            Commit.CLIENTS,
            Commit.PLATFORMS,
            Commit.METADATA,
            Commit.COMMAND,
            Commit.SUBMIT_VERSION,
            Commit.CHANGE_ASSET,
        ),
        *(Commit.CLAIM_CALLBACKS, Commit.RECORD_CALLBACK, Commit.REDELIVER),
        *(Commit.JOIN, Commit.BEAT, Commit.SHARE_WORKFLOWS),
        *(Commit.WORKER_BEAT, Commit.WORKER_STOP, Commit.PRUNE),
    }
)
OVER_BROKER: Final = (
    *(each for each in WAYS if each.commit not in NOT_OF_QUEUES),
    Reached(Commit.SEND, sent_task),
    Reached(Commit.SEND, message),
)

# The reaper comes two seconds after the start: all of its faults are tried at once. One that has a broker looks at the
# start for tasks that the broker has dropped, and for those of workers that are gone.
REAPERS: Final[Mapping[Transport, Sequence[Fault]]] = MappingProxyType(
    {
        Transport.POSTGRES: [Fault(commit, moment) for commit in BY_REAPER for moment in Moment],
        Transport.SERVICEBUS: [
            *(Fault(Commit.REAP_TASKS, moment, at=at) for at in (1, 2, 3) for moment in Moment),
            *(Fault(Commit.REAP_MESSAGES, moment) for moment in Moment),
        ],
    }
)
