"""Lists of jobs, nodes and events: filters, order, pages."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.integration.api.stored import ORDER, add_job, add_job_under_way
from tests.integration.api.test_bootstrap_access import problem_of
from tests.integration.repositories import rows

from graticule.core.models import Job, Node
from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus
from graticule.http.paging import Page
from graticule.repositories.database import Connection
from graticule.repositories.events import EventRepository
from graticule.repositories.job_views import JobListItem, NodeListItem

JOBS = "/api/v1/jobs"


async def listed(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def all_pages(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Follow the cursors to the end."""
    page = await listed(client, path, **query)
    items: list[dict[str, Any]] = page["items"]
    while page["next"] is not None:
        assert len(page["items"]) == query["limit"]
        page = await listed(client, path, **query, cursor=page["next"])
        items += page["items"]
    return items


def ids(items: list[dict[str, Any]]) -> list[str]:
    return [item["job_id"] for item in items]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
async def test_pages_of_jobs_are_newest_first_and_lose_or_double_none(
    admin_client: httpx.AsyncClient, connection: Connection, limit: int
) -> None:
    for number in range(7):
        await add_job(connection, f"job-{number}", number // 3)  # three at a time were created at the same moment
    expected = ["job-6", "job-5", "job-4", "job-3", "job-2", "job-1", "job-0"]
    assert ids(await all_pages(admin_client, JOBS, limit=limit)) == expected


async def test_a_job_that_arrives_between_two_pages_shifts_nothing(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    for number in range(4):
        await add_job(connection, f"job-{number}", number)
    first = await listed(admin_client, JOBS, limit=2)
    await add_job(connection, "job-9", 9)
    second = await listed(admin_client, JOBS, limit=2, cursor=first["next"])
    assert ids(first["items"] + second["items"]) == ["job-3", "job-2", "job-1", "job-0"]
    assert second["next"] is None


async def test_filters_of_jobs(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    await add_job(connection, "a", 0, status=JobStatus.RUNNING, correlation_id="c1", submitted_by="Zoë")
    await add_job(connection, "b", 1, status=JobStatus.FAILED, correlation_id="c2")
    await add_job(connection, "c", 2, workflow_id="other", status=JobStatus.RUNNING)
    minute = [(rows.NOW + timedelta(minutes=number)).isoformat() for number in range(3)]
    for query, expected in (
        ({}, ["c", "b", "a"]),
        ({"status": "running"}, ["c", "a"]),
        ({"status": "cancelled"}, []),
        ({"workflow_id": "other"}, ["c"]),
        ({"correlation_id": "c1"}, ["a"]),
        ({"submitted_by": "Zoë"}, ["a"]),
        ({"created_after": minute[1]}, ["c", "b"]),
        ({"created_before": minute[1]}, ["a"]),
        ({"created_after": minute[1], "created_before": minute[2]}, ["b"]),
        ({"status": "running", "workflow_id": "flow"}, ["a"]),
    ):
        assert ids((await listed(admin_client, JOBS, **query))["items"]) == expected, query


async def test_a_list_leaves_out_results_and_large_inputs_and_says_so(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    large = {"numbers": [number * 7919 % 104729 for number in range(20_000)]}
    await add_job(connection, "large", 1, input_params=large, result=large, status=JobStatus.COMPLETED)
    await add_job(connection, "small", 0, input_params={"a": 1}, result={"b": 2}, status=JobStatus.COMPLETED)
    page = await listed(admin_client, JOBS)
    big, small = page["items"]
    assert (big["input_params"], big["omitted"]) == ({}, ["input_params"])
    assert (small["input_params"], small["omitted"]) == ({"a": 1}, [])
    assert "result" not in big
    assert "result" not in small
    Page[JobListItem].model_validate(page)
    assert (await listed(admin_client, f"{JOBS}/large"))["input_params"] == large


async def test_a_list_shows_every_other_field_as_the_job_itself_does(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    values: dict[str, Any] = {"owner_id": "o", "owner_epoch": 3, "traceparent": "00", "cancel_requested_at": rows.NOW}
    values |= {"correlation_id": "c", "submitted_by": "s", "callback_url": "http://u", "idempotency_key": "k"}
    values |= {
        "status": JobStatus.FAILED,
        "started_at": rows.NOW,
        "result_ref": "outputs/r",
        "cancel_requested_by": "me",
    }
    await add_job(connection, "job", priority=3, input_params={"a": 1}, **values)
    (item,) = (await listed(admin_client, JOBS))["items"]
    job = await listed(admin_client, f"{JOBS}/job")
    assert set(item) == {*Job.model_fields, "omitted"} - {"result"}
    assert {name: job[name] for name in item if name != "omitted"} == {
        name: value for name, value in item.items() if name != "omitted"
    }
    assert [name for name, value in item.items() if value is None] == ["asset_id", "version_ordinal", "purpose"]


async def test_a_list_shows_every_field_of_a_node(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    await add_job_under_way(connection)
    for query in ({}, {"parent": "y_split"}):
        for item in (await listed(admin_client, f"{JOBS}/job/nodes", **query))["items"]:
            node = await listed(admin_client, f"{JOBS}/job/nodes/{item['node_id']}")
            assert set(item) == {*Node.model_fields, "omitted"}
            assert {name: node[name] for name in item} == item


@pytest.mark.parametrize(
    "query",
    [
        {"cursor": "nonsense"},
        {"limit": 0},
        {"limit": 501},
        {"limit": "x"},
        {"status": "RUNNING!"},
        {"created_after": "yesterday"},
        {"created_after": "2026-01-01T00:00:00"},
        {"correlation_id": "x" * 65},
    ],
)
async def test_a_list_that_is_asked_for_wrongly_is_refused(visitor: httpx.AsyncClient, query: dict[str, str]) -> None:
    visitor.headers["X-API-Key"] = "the-key-of-the-tests"
    problem_of(await visitor.get(JOBS, params=query), 422, "invalid_input")


async def test_the_nodes_of_a_job_stand_in_graph_order(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    await add_job_under_way(connection)
    page = await listed(admin_client, f"{JOBS}/job/nodes")
    assert [node["node_id"] for node in page["items"]] == ORDER
    assert page["next"] is None
    by_id = {node["node_id"]: node for node in page["items"]}
    assert by_id["bbbb"]["output"] == {"small": True}
    assert by_id["y_split"]["children_total"] == 5
    Page[NodeListItem].model_validate(page)
    completed = await listed(admin_client, f"{JOBS}/job/nodes", status="completed")
    assert [node["node_id"] for node in completed["items"]] == ["zero", "bbbb"]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_the_children_of_a_fan_out_come_in_pages_by_index(
    admin_client: httpx.AsyncClient, connection: Connection, limit: int
) -> None:
    await add_job_under_way(connection, children=12)
    nodes = f"{JOBS}/job/nodes"
    found = await all_pages(admin_client, nodes, parent="y_split", limit=limit)
    assert [node["fan_out_index"] for node in found] == list(range(12))
    pending = await all_pages(admin_client, nodes, parent="y_split", status="pending", limit=limit)
    assert [node["fan_out_index"] for node in pending] == list(range(3, 12))


async def test_children_of_no_node_and_nodes_of_no_job_are_404(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job_under_way(connection)
    for path in ("none/nodes", "job/nodes?parent=none", "job/nodes/none", "none", "none/events", "none/timeline"):
        problem_of(await admin_client.get(f"{JOBS}/{path}"), 404, "not_found")
    assert (await listed(admin_client, f"{JOBS}/job/nodes", parent="zero"))["items"] == []


async def test_events_come_in_order_in_pages_and_by_type(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job(connection, "job")
    kinds = [EventType.JOB_CREATED, EventType.NODE_READY, EventType.NODE_DISPATCHED, EventType.NODE_READY]
    for kind in kinds:
        await EventRepository(connection).insert(rows.event(event_type=kind))
        await EventRepository(connection).insert(rows.event(event_type=kind, job_id="other"))
    events = f"{JOBS}/job/events"
    found = await all_pages(admin_client, events, limit=2)
    assert [event["event_type"] for event in found] == kinds
    after = await listed(admin_client, events, after=found[1]["event_id"])
    assert after["items"] == found[2:]
    ready = await listed(admin_client, events, event_type=["node_ready", "job_created"])
    assert [event["event_type"] for event in ready["items"]] == ["job_created", "node_ready", "node_ready"]
    assert (await listed(admin_client, events, after=found[-1]["event_id"])) == {"items": [], "next": None}
