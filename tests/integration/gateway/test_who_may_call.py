"""Who may call what: the table of all routes of both processes, tried with every role.

A route that has no row here fails the test, and so does a row that has no route.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import fastapi.routing
import httpx
import pytest
from fastapi import FastAPI, Response
from fastapi.routing import iter_route_contexts
from tests.integration.gateway.front import FLAT, WHO, Front, headers_of

from graticule.core.models.platform import ClientRole
from graticule.core.permissions import ALLOWED, Deed
from graticule.http.sessions import CONSOLE_HEADER

PARTNERS: Final = frozenset({"partner", "stranger"})
EVERYONE: Final = frozenset({None, *WHO})
READS: Final = PARTNERS | {"reviewer", "operator", "admin"}
SUBMITS: Final = PARTNERS | {"operator", "admin"}
INSPECTS: Final = frozenset({"reviewer", "operator", "admin"})
REVIEWS: Final = frozenset({"reviewer", "admin"})
REMOVES: Final = frozenset({"reviewer", "operator", "admin"})
OPERATES: Final = frozenset({"operator", "admin"})
ADMINISTERS: Final = frozenset({"admin"})
REPORTS: Final = frozenset({"worker"})
THE_GATEWAY: Final = frozenset[str]()  # by what it signs; no key opens these

Table = Mapping[str, frozenset[Any]]

PROBES: Final[Table] = {
    "GET /livez": EVERYONE,
    "GET /readyz": EVERYONE,
    "GET /health": EVERYONE,
    "GET /metrics": EVERYONE,
    "GET /openapi.json": EVERYONE,
    "HEAD /openapi.json": EVERYONE,
}
GATEWAY: Final[Table] = {
    **PROBES,
    "GET /": EVERYONE,
    "HEAD /": EVERYONE,
    "GET /static/{path}": EVERYONE,
    "HEAD /static/{path}": EVERYONE,
    "GET /api/session": EVERYONE,
    "POST /api/session": EVERYONE,  # who shows a key there
    "DELETE /api/session": EVERYONE,
    "GET /api/session/oidc": EVERYONE,
    "GET /api/session/oidc/callback": EVERYONE,
    "GET /api/livez": EVERYONE,
    "GET /api/readyz": EVERYONE,
    "GET /api/gateway/health": EVERYONE,
    "POST /api/platform/submit": SUBMITS,
    "GET /api/platform/status/{key}": READS,
    "GET /api/platform/requests": READS,
    "POST /api/platform/approve": REVIEWS,
    "POST /api/platform/reject": REVIEWS,
    "POST /api/platform/revoke": REVIEWS,
    "POST /api/platform/unpublish": REMOVES,
    "POST /api/platform/reprocess": OPERATES,
    "POST /api/platform/retry": SUBMITS,
    "GET /api/platform/platforms": READS,
    "GET /api/platform/platforms/{platform_id}": READS,
    **{
        f"{method} /platform/{rest}": who  # the same routes without /api
        for method, rest, who in (
            ("POST", "submit", SUBMITS),
            ("GET", "status/{key}", READS),
            ("GET", "requests", READS),
            ("GET", "platforms", READS),
            ("GET", "platforms/{platform_id}", READS),
            ("POST", "approve", REVIEWS),
            ("POST", "reject", REVIEWS),
            ("POST", "revoke", REVIEWS),
            ("POST", "unpublish", REMOVES),
            ("POST", "reprocess", OPERATES),
            ("POST", "retry", SUBMITS),
        )
    },
    "GET /api/platforms": READS,
    "GET /api/platforms/{platform_id}": READS,
    "GET /api/assets": READS,
    "GET /api/assets/{asset_id}": READS,
    "GET /api/assets/{asset_id}/versions": READS,
    "GET /api/assets/{asset_id}/versions/{version_ordinal}/metadata": READS,
    "GET /api/assets/{asset_id}/services": READS,
    "GET /api/assets/{asset_id}/revisions": READS,
    "GET /api/assets/{asset_id}/history": READS,
    "GET /api/reviews": INSPECTS,
    "POST /api/assets/{asset_id}/clearance": REVIEWS,
    "PATCH /api/assets/{asset_id}": REVIEWS,
    "DELETE /api/assets/{asset_id}/versions/{version_ordinal}": REMOVES,
    "POST /api/gateway/submit": OPERATES,
    "POST /api/gateway/submit/batch": OPERATES,
    "POST /api/jobs/submit/{workflow_id}": OPERATES,
    "GET /api/jobs/status/{job_id}": OPERATES,
    "GET /api/status/job/{job_id}": OPERATES,
    "GET /api/status/job/{job_id}/nodes": OPERATES,
    "GET /api/status/job/{job_id}/events": OPERATES,
    "GET /api/status/jobs": OPERATES,
    "GET /api/status/stats": OPERATES,
    "GET /api/status/lookup": OPERATES,
    "GET /api/proxy/health": OPERATES,
    **{
        f"{method} /api/proxy/{{target}}/{{path}}": OPERATES
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    },
    "GET /api/admin/health": OPERATES,
    "GET /api/admin/config": OPERATES,
    "GET /api/admin/active-jobs": OPERATES,
    "GET /api/admin/recent-events": OPERATES,
    "GET /api/admin/workflows": OPERATES,
    "GET /api/admin/workflows/{workflow_id}": OPERATES,
    "GET /api/admin/workflows/{workflow_id}/versions/{workflow_hash}": OPERATES,
    "GET /api/view/{path}": INSPECTS,
    "HEAD /api/view/{path}": INSPECTS,
    "GET /storage/{path}": EVERYONE,  # who has an address that was signed
    "HEAD /storage/{path}": EVERYONE,
}
ORCHESTRATOR: Final[Table] = {
    **PROBES,
    "POST /api/v1/submit": SUBMITS,
    "GET /api/v1/status/{key}": READS,
    "GET /api/v1/assets": INSPECTS,
    "GET /api/v1/assets/{asset_id}": INSPECTS,
    "GET /api/v1/assets/{asset_id}/versions": INSPECTS,
    "GET /api/v1/assets/{asset_id}/versions/{ordinal}": INSPECTS,
    "GET /api/v1/assets/{asset_id}/revisions": INSPECTS,
    "GET /api/v1/assets/{asset_id}/history": INSPECTS,
    "POST /api/v1/assets/{asset_id}/approve": REVIEWS,
    "POST /api/v1/assets/{asset_id}/reject": REVIEWS,
    "POST /api/v1/assets/{asset_id}/revoke": REVIEWS,
    "POST /api/v1/assets/{asset_id}/clearance": REVIEWS,
    "PATCH /api/v1/assets/{asset_id}": REVIEWS,
    "POST /api/v1/assets/{asset_id}/unpublish": REMOVES,
    "DELETE /api/v1/assets/{asset_id}/versions/{ordinal}": REMOVES,
    "POST /api/v1/assets/{asset_id}/retry": SUBMITS,
    "POST /api/v1/assets/{asset_id}/reprocess": OPERATES,
    "GET /api/v1/assets/{asset_id}/versions/{ordinal}/metadata": READS,
    "PUT /api/v1/assets/{asset_id}/versions/{ordinal}/metadata": REVIEWS,
    "GET /api/v1/platforms": READS,
    "POST /api/v1/platforms": ADMINISTERS,
    "GET /api/v1/platforms/{platform_id}": READS,
    "PATCH /api/v1/platforms/{platform_id}": ADMINISTERS,
    "GET /api/v1/platforms/{platform_id}/webhook-secret": ADMINISTERS,
    "POST /api/v1/jobs": OPERATES,
    "GET /api/v1/jobs": OPERATES,
    "GET /api/v1/jobs/{job_id}": OPERATES,
    "GET /api/v1/jobs/{job_id}/nodes": OPERATES,
    "GET /api/v1/jobs/{job_id}/nodes/{node_id}": OPERATES,
    "GET /api/v1/jobs/{job_id}/events": OPERATES,
    "GET /api/v1/jobs/{job_id}/events/stream": OPERATES,
    "GET /api/v1/jobs/{job_id}/timeline": OPERATES,
    "GET /api/v1/jobs/{job_id}/graph": OPERATES,
    "POST /api/v1/jobs/{job_id}/cancel": OPERATES,
    "POST /api/v1/jobs/{job_id}/retry": OPERATES,
    "GET /api/v1/events/stream": OPERATES,
    "POST /api/jobs/submit/{workflow_id}": OPERATES,
    "GET /api/jobs/status/{job_id}": OPERATES,
    "GET /api/v1/workflows": OPERATES,
    "POST /api/v1/workflows/validate": OPERATES,
    "POST /api/v1/workflows/reload": OPERATES,
    "GET /api/v1/workflows/{workflow_id}": OPERATES,
    "POST /api/v1/callbacks/task-result": REPORTS,
    "POST /api/v1/callbacks/task-progress": REPORTS,
    "POST /api/v1/callbacks/checkpoint": REPORTS,
    "GET /api/v1/callbacks/checkpoint": REPORTS,
    "POST /api/v1/callbacks/task-results": REPORTS,
    "POST /api/v1/callbacks/worker": REPORTS,
    "POST /api/v1/callbacks/leases": REPORTS,
    "POST /api/v1/callbacks/leases/renew": REPORTS,
    "POST /api/v1/callbacks/leases/give-back": REPORTS,
    "POST /api/v1/callbacks/leases/dead-letter": REPORTS,
    "GET /api/v1/callbacks/catalogue/item": REPORTS,
    "POST /api/v1/callbacks/catalogue/collection": REPORTS,
    "POST /api/v1/callbacks/catalogue/items": REPORTS,
    "POST /api/v1/callbacks/catalogue/prefix": REPORTS,
    "POST /api/v1/callbacks/catalogue/prefix/release": REPORTS,
    "POST /api/v1/callbacks/catalogue/registration": REPORTS,
    "GET /api/v1/queues": OPERATES,
    "GET /api/v1/workers": OPERATES,
    "GET /api/v1/orchestrators": OPERATES,
    "GET /api/v1/stats": OPERATES,
    "GET /api/v1/stats/stuck": OPERATES,
    "GET /api/v1/stats/failed": OPERATES,
    "GET /api/v1/stats/durations": OPERATES,
    "GET /api/v1/stats/attempts": OPERATES,
    "GET /api/v1/stats/load": OPERATES,
    "GET /api/v1/stats/datasets": OPERATES,
    "GET /api/v1/dead-letters": OPERATES,
    "POST /api/v1/dead-letters/{letter_id}/requeue": OPERATES,
    "POST /api/v1/dead-letters/{letter_id}/discard": OPERATES,
    "DELETE /api/v1/dead-letters/{letter_id}": OPERATES,
    "GET /api/v1/deliveries": OPERATES,
    "GET /api/v1/deliveries/{callback_id}": OPERATES,
    "POST /api/v1/deliveries/{callback_id}/redeliver": OPERATES,
    "GET /api/v1/deliveries/webhook-secret": OPERATES,  # that of their own jobs
    "GET /api/v1/commands": OPERATES,
    "POST /api/v1/commands/{name}": OPERATES,
    "GET /api/v1/clients": ADMINISTERS,
    "POST /api/v1/clients": ADMINISTERS,
    "GET /api/v1/clients/{client_id}": ADMINISTERS,
    "POST /api/v1/clients/{client_id}/rotate": ADMINISTERS,
    "POST /api/v1/clients/{client_id}/disable": ADMINISTERS,
    "POST /api/v1/clients/{client_id}/enable": ADMINISTERS,
    "POST /api/v1/clients/used": THE_GATEWAY,
    "GET /api/v1/bootstrap/status": ADMINISTERS,
    "GET /api/v1/bootstrap/tables": ADMINISTERS,
    "GET /api/v1/bootstrap/ddl": ADMINISTERS,
    "POST /api/v1/bootstrap/deploy": ADMINISTERS,
    "POST /api/v1/bootstrap/migrate": ADMINISTERS,
    "POST /api/v1/bootstrap/rebuild": ADMINISTERS,
}
REACHED: Final = 299  # what a route answers here instead of doing its work
PARAMETER: Final = re.compile(r"\{(\w+)\}")


def routes_of(app: FastAPI) -> Iterator[str]:
    """Give all routes of an application, the ones too that its document does not show."""
    for route in iter_route_contexts(app.routes):
        for method in route.methods or ():
            yield f"{method} {route.path_format}"


@pytest.mark.parametrize("process", ["gateway", "orchestrator"])
def test_every_route_stands_in_the_table(front: Front, process: str) -> None:
    app, table = (front.app, GATEWAY) if process == "gateway" else (front.api, ORCHESTRATOR)
    assert app is not None
    found = list(routes_of(app))
    assert sorted(found) == sorted(table)  # one that stands twice hides the other


def test_the_table_has_the_roles_of_the_deeds() -> None:
    rows = {
        Deed.READ: READS,
        Deed.SUBMIT: SUBMITS,
        Deed.INSPECT: INSPECTS,
        Deed.REVIEW: REVIEWS,
        Deed.REMOVE: REMOVES,
        Deed.OPERATE: OPERATES,
        Deed.ADMINISTER: ADMINISTERS,
        Deed.REPORT: REPORTS,
    }
    assert set(rows) == set(Deed)
    for deed, who in rows.items():
        roles = {ClientRole(role) for each in who for role in WHO[each][0]}
        assert roles == ALLOWED[deed], deed


@pytest.mark.parametrize("process", ["gateway", "orchestrator"])
async def test_each_route_opens_to_those_of_the_table_alone(
    front: Front, process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reached(**_: Any) -> Response:
        return Response(status_code=REACHED)

    monkeypatch.setattr(fastapi.routing, "run_endpoint_function", reached)
    front.app.state.open_id_sign_in = object()  # without an issuer there is no way to it
    app, table = (front.app, GATEWAY) if process == "gateway" else (front.api, ORCHESTRATOR)
    wrong = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://it") as client:  # type: ignore[arg-type]
        for row, allowed in table.items():
            method, path = row.split(" ")
            for who in (None, *WHO):
                headers = {**headers_of(who), CONSOLE_HEADER: "1"}
                answer = await client.request(method, PARAMETER.sub("0", path), headers=headers)
                if answer.status_code not in expected(row, who, allowed):
                    wrong.append((row, who, answer.status_code))
    assert wrong == []


def expected(row: str, who: str | None, allowed: frozenset[Any]) -> set[int]:
    if row.endswith("/openapi.json"):
        return {200}
    if who in allowed:
        return {REACHED, 422}  # what is wrong with the request is looked at after who sends it
    return {401} if who is None or allowed is THE_GATEWAY else {403}


@pytest.mark.parametrize("process", ["gateway", "orchestrator"])
async def test_a_partner_finds_nothing_of_another_at_any_route_that_is_open_to_it(front: Front, process: str) -> None:
    receipt = await front.submitted()
    front.fail(receipt["asset_id"])
    app, table = (front.app, GATEWAY) if process == "gateway" else (front.api, ORCHESTRATOR)
    before = front.execute(STATE)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://it") as client:  # type: ignore[arg-type]
        for row in [row for row, allowed in table.items() if allowed >= PARTNERS and None not in allowed]:
            for method, path, body in requests_for(row, receipt):
                answer = await client.request(method, path, json=body, headers=headers_of("stranger"))
                is_list = answer.status_code == 200 and PARAMETER.search(row) is None
                assert is_list or answer.status_code in {404, 422}, (row, path, answer.status_code, answer.text)
                told = {receipt["asset_id"], receipt["request_id"], "0038272", "shapefile", "Data Distribution Hub"}
                found = {word for word in told if word in answer.text and word not in path + str(body)}
                assert not found, (row, answer.text)
                if is_list:
                    assert not [item for item in answer.json()["items"] if item.get("platform_id") == "ddh"]
    assert front.execute(STATE) == before


STATE: Final = (
    "SELECT (SELECT count(*) FROM dagapp.dag_jobs), (SELECT count(*) FROM dagapp.platform_requests),"
    " (SELECT count(*) FROM dagapp.dag_job_events), (SELECT sum(version) FROM dagapp.geospatial_assets)"
)
FILTERS: Final = ("", "?platform_id=ddh", '?refs={"dataset_id":"0038272"}', "?text=shapefile", "?with_deleted=true")


def requests_for(row: str, receipt: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Give the requests of one partner that name what belongs to another."""
    method, path = row.split(" ")
    bodies: list[Any] = [None]
    if path.endswith("/submit"):
        refs = {"dataset_id": "0038272", "resource_id": "shapefile"}
        rest = {name: value for name, value in FLAT.items() if not name.endswith("_id")}
        bodies = [
            {**FLAT, "platform_id": "ddh"},
            {**rest, "platform_id": "ddh", "platform_refs": refs, "version_label": "1"},
        ]
    elif path.endswith("/retry"):
        bodies = [{"asset_id": receipt["asset_id"]}, {"request_id": receipt["request_id"]}, {}]
    names = {"asset_id": receipt["asset_id"], "platform_id": "ddh", "ordinal": "0", "version_ordinal": "0"}
    for key in (receipt["asset_id"], receipt["request_id"]):
        filled = path.format(**{name: names.get(name, key) for name in PARAMETER.findall(path)})
        for body in bodies:
            for query in FILTERS if method == "GET" and PARAMETER.search(path) is None else ("",):
                yield method, filled + query, body
