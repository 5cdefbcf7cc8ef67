"""A world of its own for one job: a clock, a queue with leases, workers, an orchestrator, and bad weather.

Everything follows from one seed.
"""

from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from pydantic import JsonValue
from tests.simulation.invariants import ACTIVE, Before, Violation, check_commit, check_end, check_story, require
from tests.simulation.store import UNDER_WAY, Stale, Store
from tests.simulation.workflows import random_workflow

from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag.state import (
    CancelRequested,
    DeadlinePassed,
    Decision,
    Happening,
    NewTask,
    Policy,
    Reported,
    Resumed,
    Submitted,
)

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=60)
MOST_TURNS = 20_000
CHAOTIC_TURNS = 300  # then the weather clears, so that every job can end
MOST_RESUMES = 3


@dataclass(frozen=True)
class Weather:
    """How often things go wrong."""

    failure: float = 0.0
    permanent: float = 0.0
    worker_crash: float = 0.0
    worker_pause: float = 0.0
    duplicate: float = 0.0
    commit_crash: float = 0.0
    dispatch_delay: float = 0.0
    cancel: float = 0.0
    bad_output: float = 0.0

    @classmethod
    def random(cls, rng: Random) -> "Weather":
        if rng.random() < 0.2:
            return cls()
        return cls(
            failure=rng.choice((0.0, 0.1, 0.4)),
            permanent=rng.choice((0.0, 0.0, 0.3)),
            worker_crash=rng.choice((0.0, 0.1)),
            worker_pause=rng.choice((0.0, 0.1)),
            duplicate=rng.choice((0.0, 0.3)),
            commit_crash=rng.choice((0.0, 0.2)),
            dispatch_delay=rng.choice((0.0, 0.0, 0.1)),
            cancel=rng.choice((0.0, 0.0, 0.0, 0.01)),
            bad_output=rng.choice((0.0, 0.0, 0.02)),
        )


@dataclass
class Lease:
    """A task that a worker holds, or believes that it holds."""

    task: NewTask
    worker: str
    expires: datetime
    reported_running: bool = False


class World:
    """One job from its submission to its end."""

    def __init__(self, seed: int, *, tells: bool = False) -> None:
        self.seed = seed
        self.story: list[str] = []
        self._tells = tells
        self._rng = Random(seed)
        self._weather = Weather.random(self._rng)
        self._now = BEGINNING
        policy = Policy(dispatch_timeout_seconds=self._rng.choice((0, 30, 3600)), running_grace_seconds=10)
        self.store = Store(random_workflow(self._rng), {"value": self._rng.randint(0, 9)}, policy)
        left_out = self._rng.choice((0.0, 0.5, 1.0))
        self.store.leaves_out = lambda node: self._rng.random() < left_out
        self._inbox: list[Reported] = []
        self._outputs: dict[str, list[JsonValue]] = {}  # all that was reported, of each task
        self._finished: set[str] = set()  # tasks that a worker took off the queue
        self._leases: dict[str, Lease] = {}  # as the queue sees it
        self._at_work: list[Lease] = []  # as the workers see it: two may believe that they hold one task
        self._workers = 0
        self._resumes = 0
        self._turns = 0

    def run(self) -> "World":
        """Play until the job has ended and nothing is left to be delivered."""
        try:
            self._insist(Submitted())
            while self._goes_on():
                self._turn()
                self._turns += 1
                require(self._turns < MOST_TURNS, "the job does not end")
            check_story(self.store.graph, self.store)
            check_end(self.store)
            self._check_outputs()
        except (Violation, Stale) as broken:
            raise Violation(
                f"seed {self.seed}: {broken}\nReplay it with: python -m tests.simulation {self.seed}"
            ) from broken
        return self

    def _check_outputs(self) -> None:
        """What a task gave is what one of its workers reported of its last attempt."""
        for row in self.store.rows.values():
            if row.node_type is NodeType.TASK and row.status is NodeStatus.COMPLETED:
                require(row.output in self._outputs[str(row.task_id)], f"nobody reported {row.output} of {row.task_id}")

    def _goes_on(self) -> bool:
        while self.store.status is JobStatus.FAILED and self._resumes < MOST_RESUMES and self._rng.random() < 0.7:
            self._resume()
        return self.store.status in ACTIVE or bool(self._inbox)

    @property
    def _is_chaotic(self) -> bool:
        return self._turns < CHAOTIC_TURNS

    def _strikes(self, rate: float) -> bool:
        return rate > 0 and self._is_chaotic and self._rng.random() < rate

    def _say(self, text: str) -> None:
        if self._tells:
            self.story.append(f"{(self._now - BEGINNING).total_seconds():9.1f}  {text}")

    # One turn: something moves, somewhere

    def _turn(self) -> None:
        moves = [self._take_task] * bool(self._queued())
        moves += [self._work] * min(3, len(self._at_work))
        moves += [self._deliver] * (2 if self._inbox else 0)
        moves += [self._orchestrate_due] * bool(self._due())
        if not moves:
            self._sleep()
            return
        self._rng.choice(moves)()
        if self._strikes(0.2):
            self._now += timedelta(seconds=self._rng.choice((0.1, 1, 5, 40)))
        if self._strikes(self._weather.cancel):
            self._say("someone cancels the job")
            self._commit([CancelRequested("someone")])

    def _sleep(self) -> None:
        """Nothing can move before a timer runs out: a backoff, a deadline or a lease."""
        rows = self.store.rows.values()
        timers = [row.ready_at for row in rows if row.status is NodeStatus.READY]
        timers += [row.deadline_at for row in rows if row.status in UNDER_WAY]
        timers += [lease.expires for lease in self._leases.values()]
        ahead = [timer for timer in timers if timer is not None and timer > self._now]
        require(ahead, "nothing is left that could move the job")
        self._now = min(ahead)

    # The queue

    def _queued(self) -> list[NewTask]:
        """Give the tasks that a worker may take; a lease that ran out gives its task back."""
        for task_id in [task_id for task_id, lease in self._leases.items() if lease.expires <= self._now]:
            del self._leases[task_id]
        return [
            task
            for task_id, task in self.store.tasks.items()
            if task_id not in self._leases and task_id not in self._finished and task_id not in self.store.withdrawn
        ]

    def _take_task(self) -> None:
        task = self._rng.choice(self._queued())
        if self._strikes(self._weather.dispatch_delay):
            self._now += timedelta(seconds=35)
            return
        self._workers += 1
        lease = Lease(task, f"w{self._workers}", self._now + LEASE)
        self._leases[task.task_id] = lease
        self._at_work.append(lease)
        self._say(f"{lease.worker} takes {task.task_id}")

    # The workers

    def _work(self) -> None:
        lease = self._rng.choice(self._at_work)
        if self._strikes(self._weather.worker_pause):
            self._say(f"{lease.worker} is paused")
            self._now += LEASE
            return
        if self._leases.get(lease.task.task_id) is lease:
            lease.expires = self._now + LEASE
        if self._strikes(self._weather.worker_crash):
            self._say(f"{lease.worker} crashes")
            self._at_work.remove(lease)
        elif lease.task.task_id in self.store.withdrawn and self._rng.random() < 0.7:
            self._finish(lease, ResultStatus.CANCELLED)
        elif not lease.reported_running and self._rng.random() < 0.5:
            lease.reported_running = True
            self._report(lease, ResultStatus.RUNNING)
        elif self._rng.random() < 0.2:
            progress: dict[str, JsonValue] = {"done": self._rng.randint(0, 9), "total": 9}
            checkpoint = "half" if self._rng.random() < 0.3 else None
            self._report(lease, ResultStatus.RUNNING, progress=progress, checkpoint=checkpoint)
        elif self._strikes(self._weather.failure):
            retryable = not self._strikes(self._weather.permanent)
            self._finish(lease, ResultStatus.FAILED, error_message="bad luck", retryable=retryable)
        else:
            self._finish(lease, ResultStatus.COMPLETED, output=self._output(lease.task))

    def _finish(self, lease: Lease, status: ResultStatus, **more: object) -> None:
        self._at_work.remove(lease)
        if self._leases.get(lease.task.task_id) is lease:
            del self._leases[lease.task.task_id]
            self._finished.add(lease.task.task_id)
        self._report(lease, status, **more)

    def _report(self, lease: Lease, status: ResultStatus, **more: object) -> None:
        report = Reported(lease.task.task_id, lease.task.node_id, status, worker_id=lease.worker, **more)  # type: ignore[arg-type]
        if status is ResultStatus.COMPLETED:
            self._outputs.setdefault(report.task_id, []).append(report.output)  # type: ignore[arg-type]
        self._inbox += [report] * (2 if self._strikes(self._weather.duplicate) else 1)
        self._say(f"{lease.worker} reports {status} of {report.task_id}")

    def _output(self, task: NewTask) -> JsonValue:
        rng = self._rng
        if "index" in task.params:
            outputs: list[JsonValue] = [rng.randint(0, 9), [task.params["index"]], {"value": rng.randint(0, 9)}, None]
            return rng.choice(outputs)
        items: JsonValue = [{"id": number} for number in range(rng.choice((0, 1, 2, 3, 5, 8)))]
        if rng.random() < 0.1:
            items = {"a": 1, "b": 2}
        if self._strikes(self._weather.bad_output):
            items = "not a list"
        return {"value": rng.randint(0, 9), "items": items}

    # The orchestrator

    def _deliver(self) -> None:
        """Act on some of the reports, in any order."""
        self._rng.shuffle(self._inbox)
        batch = self._inbox[: self._rng.randint(1, len(self._inbox))]
        happened: list[Happening] = [*batch, *(self._due() if self._rng.random() < 0.3 else [])]
        if self._strikes(0.1):
            self._rng.shuffle(happened)
        if self._commit(happened):
            self._inbox = self._inbox[len(batch) :]
            if batch and self._strikes(self._weather.duplicate):
                self._inbox.append(self._rng.choice(batch))

    def _due(self) -> list[Happening]:
        """Give the deadlines that are over; a backoff that is over makes a step of its own, even an empty one."""
        rows = self.store.rows.values()
        if self.store.status not in ACTIVE:
            return []
        passed: list[Happening] = [
            DeadlinePassed(row.node_id, taken=row.task_id in self._leases)
            for row in rows
            if row.deadline_at is not None and row.deadline_at <= self._now
        ]
        ready = any(
            row.status is NodeStatus.READY and row.ready_at is not None and row.ready_at <= self._now for row in rows
        )
        return passed or ([DeadlinePassed("start")] if ready else [])

    def _orchestrate_due(self) -> None:
        self._commit(self._due())

    def _resume(self) -> None:
        self._resumes += 1
        named = None
        if self._rng.random() < 0.4:
            begun = [
                node_id
                for node_id in self.store.graph.nodes
                if self.store.rows[node_id].status not in (NodeStatus.PENDING, NodeStatus.SKIPPED)
            ]
            named = self._rng.choice(begun)
        self._say(f"someone resumes the job, from {named or 'its failed nodes'}")
        self._insist(Resumed(named, actor="someone"))

    def _insist(self, happening: Happening) -> None:
        """Ask again until an orchestrator lives long enough."""
        while not self._commit([happening]):
            pass

    def _commit(self, happened: list[Happening]) -> bool:
        """Decide and write, unless the orchestrator dies in between; tell whether it was written."""
        untouched = deepcopy(self.store.rows) if self._rng.random() < 0.02 else None
        decision = self.store.decide(happened, self._now)
        require(untouched is None or untouched == self.store.rows, "the evaluator changed what it was given")
        if self._strikes(self._weather.commit_crash):
            self._say("an orchestrator dies before its commit")
            return False
        before = {node_id: Before(row.status, row.task_id) for node_id, row in self.store.rows.items()}
        self.store.apply(decision, happened)
        self._say_decision(decision)
        check_commit(self.store, decision, before)
        if self._rng.random() < 0.05:
            check_story(self.store.graph, self.store)
        return True

    def _say_decision(self, decision: Decision) -> None:
        for event in decision.events if self._tells else ():
            data = f" {event.data}" if event.data else ""
            self._say(f"    {event.event_type} {event.node_id or ''}{data}")
