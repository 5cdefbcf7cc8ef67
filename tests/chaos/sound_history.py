"""A history as the engine writes it, made by hand: what the checker must pass, and what tests tamper with.

One job goes through everything that may happen to a job that completes: a branch, children, a retry, a worker that is
killed, a worker that gives a task back, an owner that dies. A second fails and is resumed. A third fails for good.
"""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from tests.chaos.history import History, SubmittedJob
from tests.chaos.ledger import Entry, Moment
from tests.integration.services.engine import compiled, flow

from graticule.core.models import Event, Job, JobMessage, Node, Task, TaskResult
from graticule.core.models.engine import EventType as E
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus, ResultStatus

NOW = datetime(2024, 1, 1, tzinfo=UTC)
FULL = flow(
    """
  start: {type: start, next: a}
  a: {handler: echo, next: choose}
  choose:
    type: conditional
    condition_field: "{{ nodes.a.output.n }}"
    branches:
      - {condition: "< 5", next: split}
      - {default: true, next: other}
  other: {handler: echo, next: end}
  split:
    type: fan_out
    source: [1, 2, 3]
    task: {handler: echo, params: {i: "{{ item }}"}}
    next: merge
  merge: {type: fan_in, aggregation: collect, next: end}""",
    workflow_id="full",
)
TWO = flow(
    """
  start: {type: start, next: [x, y]}
  x: {handler: echo, next: end}
  y: {handler: echo, next: end}""",
    workflow_id="two",
)


_compiled = cache(compiled)


class Scribe:
    """Writes what the engine and its handlers would write of one job."""

    def __init__(self, history: History, text: str, job_id: str) -> None:
        self.history = history
        self.job_id = job_id
        self.graph = _compiled(text)
        self.term = 1
        self.nodes: dict[str, dict[str, Any]] = {
            node_id: {"node_id": node_id, "node_type": spec.type, "status": NodeStatus.PENDING}
            for node_id, spec in self.graph.nodes.items()
        }
        self.tasks: dict[str, dict[str, Any]] = {}
        history.graphs[self.graph.content_hash] = self.graph
        self.tell(E.JOB_CREATED, workflow_id=self.graph.workflow_id, nodes_completed=["start"])
        self.node("start", NodeStatus.COMPLETED)

    # What the engine does

    def tell(self, event_type: E, node_id: str | None = None, task_id: str | None = None, /, **data: Any) -> None:
        """Write an event; there is room between the ids for what a test adds."""
        actor = data.pop("actor", None)
        self.history.events.append(
            Event(
                event_id=10 * (len(self.history.events) + 1),
                event_type=event_type,
                job_id=self.job_id,
                node_id=node_id,
                task_id=task_id,
                actor=actor,
                owner_epoch=self.term,
                data=data,
                created_at=NOW,
            )
        )

    def node(self, node_id: str, status: NodeStatus, **values: Any) -> None:
        if status in (NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED):
            values |= {"ended_at": NOW}
        self.nodes[node_id] |= {"status": status, **values}

    def make_children(self, fan_out: str, count: int) -> None:
        self.tell(E.NODE_READY, fan_out)
        self.tell(E.NODE_RUNNING, fan_out, children=count)
        self.node(fan_out, NodeStatus.RUNNING, children_total=count, children_started=count)
        for index in range(count):
            child = f"{fan_out}__{index}"
            self.nodes[child] = {
                "node_id": child,
                "node_type": NodeType.TASK,
                "parent_node_id": fan_out,
                "fan_out_index": index,
            }
            self.send(child, 0)
        together: dict[str, Any] = {"fan_out": True, "children": count, "from": 0, "to": count - 1}
        self.tell(E.NODE_READY, fan_out, **together)
        self.tell(E.NODE_DISPATCHED, fan_out, **together)

    def dispatch(self, node_id: str, number: int = 0) -> None:
        task_id = self.send(node_id, number)
        self.tell(E.NODE_DISPATCHED, node_id, task_id, task_id=task_id, retry_count=number)

    def send(self, node_id: str, number: int) -> str:
        task_id = f"{self.job_id}_{node_id}_{number}"
        self.tasks[task_id] = {"task_id": task_id, "node_id": node_id, "retry_count": number, "delivery_count": 0}
        self.node(node_id, NodeStatus.DISPATCHED, task_id=task_id, retry_count=number)
        return task_id

    def reclaim(self, owner: str) -> None:
        self.term += 1
        self.tell(E.JOB_RECLAIMED, actor=owner, owner_epoch=self.term)

    # What workers and handlers do

    def run(self, node_id: str, *moments: Moment, again: bool = False) -> str:
        """Deliver the task of a node (again: one that was given back), and let its handler come so far."""
        task = self.tasks[self.nodes[node_id]["task_id"]]
        task["delivery_count"] += not again
        ledger = self.history.ledger
        number = len({entry.run for entry in ledger})
        for moment in ("began", *moments):
            entry = Entry(
                run=f"run-{number}",
                moment=moment,
                task_id=task["task_id"],
                job_id=self.job_id,
                node_id=node_id,
                retry_count=task["retry_count"],
                delivery_count=task["delivery_count"],
                process_id=1000 + number,
                at=float(len(ledger)),
            )
            ledger.append(entry)
        return f"run-{number}"

    def report(self, node_id: str, status: ResultStatus, output: Any = None, task_id: str | None = None) -> str:
        task_id = task_id or str(self.nodes[node_id]["task_id"])
        if status is not ResultStatus.RUNNING:
            self.tasks[task_id]["status"] = MessageStatus.DONE
        self.history.results.append(
            TaskResult(
                result_id=len(self.history.results) + 1,
                task_id=task_id,
                job_id=self.job_id,
                node_id=node_id,
                status=status,
                output=output,
                reported_at=NOW,
                processed_at=NOW,
            )
        )
        return task_id

    # Both

    def complete(self, node_id: str, run: str) -> None:
        output = {"run": run, "n": 1}
        task_id = self.report(node_id, ResultStatus.COMPLETED, output)
        self.node(node_id, NodeStatus.COMPLETED, output=output)
        self.tell(E.NODE_COMPLETED, node_id, task_id, worker_id="w")

    def fail(self, node_id: str, *, will_retry: bool) -> None:
        task_id = self.report(node_id, ResultStatus.FAILED)
        self.node(node_id, NodeStatus.FAILED, error_message="it failed")
        self.tell(E.NODE_FAILED, node_id, task_id, error="it failed", will_retry=will_retry)
        if will_retry:
            self.tell(E.NODE_RETRY, node_id, retry_count=1)

    def cancel_under_way(self, node_id: str) -> None:
        """Fail a node because its job ends."""
        task_id = self.nodes[node_id]["task_id"]
        self.tasks[task_id]["status"] = MessageStatus.WITHDRAWN
        self.node(node_id, NodeStatus.FAILED, error_message="cancelled: the job failed")
        self.tell(E.NODE_FAILED, node_id, task_id, error="cancelled: the job failed", cancelled=True)

    def close(self, status: JobStatus, **values: Any) -> None:
        """Write the rows as they are at last."""
        history, own = self.history, {"job_id": self.job_id}
        history.nodes += [Node(**own, **values) for values in self.nodes.values()]
        history.tasks += [
            Task(**own, queue="q", handler="echo", available_at=NOW, created_at=NOW, **task)
            for task in self.tasks.values()
        ]
        history.jobs.append(
            Job(
                **own,
                workflow_id=self.graph.workflow_id,
                workflow_version="1",
                workflow_hash=self.graph.content_hash,
                status=status,
                idempotency_key=f"key-{self.job_id}",
                owner_epoch=self.term,
                created_at=NOW,
                updated_at=NOW,
                ended_at=NOW,
                **values,
            )
        )


def sound_history() -> History:
    """Make a history that breaks no rule."""
    history = History(
        submitted=[
            SubmittedJob("key-full", "full", "full"),
            SubmittedJob("key-resumed", "two"),  # asked for by message
            SubmittedJob("key-doomed", "two", "doomed", may_fail=True),
            SubmittedJob("bad", "nowhere", is_bad=True),
        ],
        messages=[
            _message("m1", MessageStatus.DONE, {"idempotency_key": "key-resumed"}),
            _message("bad", MessageStatus.DEAD, {"workflow_id": "nowhere"}, dead_reason="There is no such workflow."),
        ],
    )
    _full(Scribe(history, FULL, "full"))
    _resumed(Scribe(history, TWO, "resumed"))
    _doomed(Scribe(history, TWO, "doomed"))
    return history


def _message(message_id: str, status: MessageStatus, body: dict[str, Any], **more: Any) -> JobMessage:
    return JobMessage(
        message_id=message_id, queue="jobs", body=body, status=status, available_at=NOW, created_at=NOW, **more
    )


def _full(scribe: Scribe) -> None:
    scribe.tell(E.NODE_READY, "a")
    scribe.dispatch("a")
    scribe.tell(E.JOB_STARTED)
    scribe.run("a")  # its worker is killed
    second = scribe.run("a", "ended")
    task_id = scribe.report("a", ResultStatus.RUNNING)
    scribe.tell(E.NODE_RUNNING, "a", task_id, worker_id="w")
    scribe.tell(E.NODE_PROGRESS, "a", task_id, done=1)
    scribe.complete("a", second)
    scribe.node("choose", NodeStatus.COMPLETED, output={"branch": 0, "next": ["split"]})
    scribe.tell(E.NODE_COMPLETED, "choose", branch=0, next=["split"])
    scribe.node("other", NodeStatus.SKIPPED)
    scribe.tell(E.NODE_SKIPPED, "other")
    scribe.make_children("split", 3)
    first = scribe.run("split__0", "ended")
    scribe.complete("split__0", first)
    late = scribe.report("split__0", ResultStatus.RUNNING)
    scribe.tell(E.RESULT_IGNORED, "split__0", late, task_id=late, status="running", reason="the node is completed")
    scribe.reclaim("owner-b")
    scribe.run("split__1", "failed")
    scribe.fail("split__1", will_retry=True)
    scribe.dispatch("split__1", 1)
    second = scribe.run("split__1", "ended")
    scribe.complete("split__1", second)
    scribe.run("split__2")  # given back by a worker that stops
    third = scribe.run("split__2", "ended", again=True)
    scribe.complete("split__2", third)
    children = [f"split__{index}" for index in range(3)]
    output = {"count": 3, "failed": 0, "fan_out_count": 3, "child_node_ids": children}
    scribe.node("split", NodeStatus.COMPLETED, children_done=3, output=output)
    scribe.tell(E.NODE_COMPLETED, "split", children=3, failed=0)
    results = [{"run": run, "n": 1} for run in (first, second, third)]
    scribe.node("merge", NodeStatus.COMPLETED, output={"results": results, "count": 3})
    scribe.tell(E.NODE_COMPLETED, "merge", count=3)
    scribe.node("end", NodeStatus.COMPLETED)
    scribe.tell(E.JOB_COMPLETED, nodes_completed=["end"])
    scribe.close(JobStatus.COMPLETED, owner_id="owner-b")


def _resumed(scribe: Scribe) -> None:
    _start_two(scribe)
    scribe.complete("x", scribe.run("x", "ended"))
    scribe.run("y", "failed")
    scribe.fail("y", will_retry=False)
    scribe.tell(E.JOB_FAILED, node_id="y", error="it failed")
    scribe.term += 1
    scribe.tell(E.JOB_RESUMED, ready=["y"], reset=[], removed_children_of=[], actor="someone")
    scribe.tell(E.NODE_READY, "y")
    scribe.dispatch("y", 1)
    scribe.complete("y", scribe.run("y", "ended"))
    scribe.node("end", NodeStatus.COMPLETED)
    scribe.tell(E.JOB_COMPLETED, nodes_completed=["end"])
    scribe.close(JobStatus.COMPLETED, owner_id="owner-c")


def _start_two(scribe: Scribe) -> None:
    for node_id in ("x", "y"):
        scribe.tell(E.NODE_READY, node_id)
    for node_id in ("x", "y"):
        scribe.dispatch(node_id)
    scribe.tell(E.JOB_STARTED)


def _doomed(scribe: Scribe) -> None:
    _start_two(scribe)
    scribe.run("y", "failed")
    scribe.fail("y", will_retry=False)
    scribe.cancel_under_way("x")
    scribe.tell(E.JOB_FAILED, node_id="y", error="it failed")
    scribe.close(JobStatus.FAILED, owner_id="owner-a", error_message="node 'y' failed: it failed")
