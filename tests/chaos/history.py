"""What is left when the chaos is over: the rows, the events, the ledger, and what was submitted."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.rows import DictRow, dict_row
from tests.chaos.ledger import Entry, Ledger

from graticule.core.models import Event, Job, JobMessage, Node, Orchestrator, Task, TaskResult, Workflow
from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus
from graticule.core.table import Row
from graticule.dag.deciding.step import child_id
from graticule.dag.graph import Graph

R = TypeVar("R", bound=Row)
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
ALL_ROWS = "SELECT * FROM {} ORDER BY {}"


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job that was asked for, by HTTP or by message."""

    key: str  # its idempotency key
    workflow_id: str
    job_id: str | None = None  # None: nobody was told, for it was sent as a message or the answer was lost
    may_fail: bool = False
    is_bad: bool = False  # a message that can never become a job: it ends as a dead letter


@dataclass(slots=True)
class Run:
    """One execution of a handler, as its entries in the ledger tell."""

    entries: list[Entry]

    @property
    def name(self) -> str:
        return self.entries[0].run

    @property
    def entry(self) -> Entry:
        """Give the first entry: all of them say the same of the task."""
        return self.entries[0]

    @property
    def moments(self) -> list[str]:
        return [entry.moment for entry in self.entries]

    @property
    def began(self) -> float:
        return self.entry.at

    @property
    def ended(self) -> float | None:
        """Tell when its effect was written."""
        return next((entry.at for entry in self.entries if entry.moment == "ended"), None)

    def __str__(self) -> str:
        entry = self.entry
        return f"run {self.name} of {entry.task_id} (delivery {entry.delivery_count}, process {entry.process_id})"


@dataclass
class Story:
    """All that is known of one job."""

    job: Job
    graph: Graph
    nodes: dict[str, Node]
    tasks: dict[str, Task]
    results: list[TaskResult]
    events: list[Event]  # in the order of their ids
    runs: list[Run]  # of this job
    all_runs: Mapping[str, Run]  # of every job, by name

    def completed_tasks(self) -> list[Node]:
        """Give the nodes whose output is the work of a handler."""
        done = (node for node in self.nodes.values() if node.status is NodeStatus.COMPLETED)
        return [node for node in done if node.node_type is NodeType.TASK]

    def counted_run(self, node: Node) -> Run | None:
        """Give the run that a completed node's output names, if it is one of the ledger's."""
        return self.all_runs.get(run_named_in(node.output) or "")

    def counted_runs(self) -> list[tuple[Node, Run]]:
        """Give the runs that counted, each with its node."""
        found = ((node, self.counted_run(node)) for node in self.completed_tasks())
        return [(node, run) for node, run in found if run is not None]

    def children(self, fan_out: str) -> list[Node]:
        """Give the children of a fan-out in index order."""
        found = [node for node in self.nodes.values() if node.parent_node_id == fan_out]
        return sorted(found, key=lambda child: child.fan_out_index or 0)

    def tasks_of(self, node_id: str) -> list[Task]:
        """Give the attempts of a node, in order."""
        return sorted(self._tasks_by_node[node_id], key=lambda task: task.retry_count)

    def runs_of(self, node_id: str) -> list[Run]:
        return self._runs_by_node[node_id]

    @cached_property
    def _tasks_by_node(self) -> Mapping[str, list[Task]]:
        return grouped(self.tasks.values(), [task.node_id for task in self.tasks.values()])

    @cached_property
    def _runs_by_node(self) -> Mapping[str, list[Run]]:
        return grouped(self.runs, [run.entry.node_id for run in self.runs])


@dataclass
class History:
    """All that is known of all jobs."""

    submitted: list[SubmittedJob] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    results: list[TaskResult] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    messages: list[JobMessage] = field(default_factory=list)
    orchestrators: list[Orchestrator] = field(default_factory=list)
    graphs: dict[str, Graph] = field(default_factory=dict)  # by workflow_hash
    ledger: list[Entry] = field(default_factory=list)

    def runs(self) -> dict[str, Run]:
        """Give the executions that the ledger tells of, by name."""
        return {name: Run(entries) for name, entries in grouped(self.ledger, [e.run for e in self.ledger]).items()}

    def stories(self) -> list[Story]:
        """Give what is known of each job."""
        runs = self.runs()
        nodes, tasks = _by_job(self.nodes), _by_job(self.tasks)
        results, events = _by_job(self.results), _by_job(self.events)
        runs_of_job = grouped(runs.values(), [run.entry.job_id for run in runs.values()])
        return [
            Story(
                job=job,
                graph=self.graphs[job.workflow_hash],
                nodes={node.node_id: node for node in nodes[job.job_id]},
                tasks={task.task_id: task for task in tasks[job.job_id]},
                results=results[job.job_id],
                events=sorted(events[job.job_id], key=lambda event: event.event_id or 0),
                runs=runs_of_job[job.job_id],
                all_runs=runs,
            )
            for job in self.jobs
        ]


def grouped(things: Iterable[T], keys: Iterable[K]) -> defaultdict[K, list[T]]:
    """Put things together whose keys are equal."""
    found: defaultdict[K, list[T]] = defaultdict(list)
    for thing, key in zip(things, keys, strict=True):
        found[key].append(thing)
    return found


def _by_job(rows: Sequence[R]) -> defaultdict[str, list[R]]:
    return grouped(rows, [getattr(row, "job_id") for row in rows])  # noqa: B009 - not every table has one


def run_named_in(output: object) -> str | None:
    """Give the run that an output names: that of the execution whose effect it is."""
    named = output.get("run") if isinstance(output, dict) else None
    return named if isinstance(named, str) else None


def nodes_told_of(event: Event) -> list[str]:
    """Give the nodes that an event is about: one, or those children of a fan-out that it tells of together."""
    node_id = event.node_id or ""
    first, last = event.data.get("from"), event.data.get("to")
    if isinstance(first, int) and isinstance(last, int):
        return [child_id(node_id, index) for index in range(first, last + 1)]
    return [node_id]


def names_in(event: Event, key: str) -> list[str]:
    """Give a list of names that an event has."""
    found = event.data.get(key)
    return [str(name) for name in found] if isinstance(found, list) else []


def set_back_by(resumed: Event, node_ids: Iterable[str]) -> list[str]:
    """Give those of the nodes that begin anew with a `job_resumed`."""
    named = {*names_in(resumed, "ready"), *names_in(resumed, "reset")}
    removed = names_in(resumed, "removed_children_of")
    return [node_id for node_id in node_ids if node_id in named or is_child_of(node_id, removed)]


def is_child_of(node_id: str, fan_outs: Iterable[str]) -> bool:
    """Tell from its name whether a node is a child of one of these fan-outs; its row may be gone."""
    return node_id.startswith(tuple(child_id(fan_out, 0)[:-1] for fan_out in fan_outs))


async def read_history(url: str, ledger: Ledger, submitted: Sequence[SubmittedJob]) -> History:
    """Read everything as it is at one moment."""
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        workflows = await _all(connection, Workflow)
        return History(
            submitted=[*submitted],
            jobs=await _all(connection, Job),
            nodes=await _all(connection, Node),
            tasks=await _all(connection, Task),
            results=await _all(connection, TaskResult),
            events=[event for event in await _all(connection, Event) if event.job_id is not None],
            messages=await _all(connection, JobMessage),
            orchestrators=await _all(connection, Orchestrator),
            graphs={each.workflow_hash: Graph.model_validate(each.definition) for each in workflows},
            ledger=ledger.read(),
        )


async def _all(connection: psycopg.AsyncConnection[DictRow], model: type[R]) -> list[R]:
    table = sql.Identifier(model.table.schema, model.table.name)
    key = sql.SQL(", ").join(map(sql.Identifier, model.table.primary_key))
    cursor = await connection.execute(sql.SQL(ALL_ROWS).format(table, key))
    return [model.model_validate(row) for row in await cursor.fetchall()]
