"""Jobs put into the database as an engine would have left them."""

from datetime import timedelta
from typing import Any

from tests.integration.repositories import rows

from graticule.core.ids import WorkflowHash
from graticule.core.models import Workflow
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.compile import KnownHandler, compile_workflow
from graticule.dag.graph import Graph
from graticule.repositories.database import Connection
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.workflows import WorkflowRepository

# Named so that the order of the graph is neither that of the alphabet nor that in which a database keeps keys.
YAML = """
workflow_id: flow
name: Flow
version: 1
nodes:
  zero: {type: start, next: bbbb}
  bbbb: {handler: echo, next: y_split}
  y_split: {type: fan_out, source: [1, 2, 3], task: {handler: echo, params: {item: "{{ item }}"}}, next: gathered}
  gathered: {type: fan_in, next: x_route}
  x_route:
    type: conditional
    condition: "{{ nodes.gathered.output.count }} > 1"
    on_true: aa
    on_false: the_end
  aa: {handler: echo, next: the_end}
  the_end: {type: end}
"""
ORDER = ["zero", "bbbb", "y_split", "gathered", "x_route", "aa", "the_end"]


def graph() -> Graph:
    compiled = compile_workflow(YAML, file="flow.yaml", handlers={"echo": KnownHandler("functionapp-tasks", 600)})
    assert compiled.graph is not None, compiled.problems
    return compiled.graph


def workflow() -> Workflow:
    found = graph()
    return rows.workflow(
        workflow_hash=WorkflowHash(found.content_hash), definition=found.model_dump(mode="json"), name=found.name
    )


async def keep_workflow(connection: Connection) -> WorkflowHash:
    kept = workflow()
    await WorkflowRepository(connection).keep(kept)
    return kept.workflow_hash


async def add_job(connection: Connection, job_id: str, number: int = 0, **changes: Any) -> None:
    """Add a job without nodes, created so many minutes after the first."""
    created = rows.NOW + timedelta(minutes=number)
    values = {"workflow_hash": await keep_workflow(connection), "created_at": created, **changes}
    if values.get("status") in {JobStatus.COMPLETED, JobStatus.CANCELLED, JobStatus.FAILED}:
        values.setdefault("ended_at", created + timedelta(seconds=number + 1))
    if values.get("status") is JobStatus.FAILED:
        values.setdefault("error_message", "it failed")
    await JobRepository(connection).insert(rows.job(job_id, **values))


async def add_job_under_way(connection: Connection, job_id: str = "job", children: int = 5) -> None:
    """Add a job whose fan-out has so many children: the first completed, the second failed, the third runs."""
    await add_job(connection, job_id, status=JobStatus.RUNNING, started_at=rows.NOW)
    done: dict[str, Any] = {"status": NodeStatus.COMPLETED, "ready_at": rows.NOW, "ended_at": rows.LATER}
    later = {"started_at": rows.NOW + timedelta(seconds=30)}
    nodes = {node_id: rows.node(node_id, job_id=job_id, node_type=spec.type) for node_id, spec in graph().nodes.items()}
    nodes["zero"] = nodes["zero"].model_copy(update=done)
    nodes["bbbb"] = nodes["bbbb"].model_copy(update={**done, "output": {"small": True}, "started_at": rows.NOW})
    counters = {"children_total": children, "children_started": 3, "children_done": 1, "children_failed": 1}
    running = {"status": NodeStatus.RUNNING, "ready_at": rows.NOW, "started_at": rows.NOW}
    nodes["y_split"] = nodes["y_split"].model_copy(update={**running, **counters})
    child_states: list[dict[str, Any]] = [
        {**done, "dispatched_at": rows.NOW, "started_at": rows.NOW},
        {**done, "status": NodeStatus.FAILED, "error_message": "no", **later},
        {**running, **later},
    ]
    made = [
        rows.node(
            f"y_split__{index}",
            job_id=job_id,
            node_type=NodeType.TASK,
            parent_node_id="y_split",
            fan_out_index=index,
            fan_out_key=f"key {index}",
            **(child_states[index] if index < 3 else {}),
        )
        for index in range(children)
    ]
    await NodeRepository(connection).insert_many([*nodes.values(), *made])
