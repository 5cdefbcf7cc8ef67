"""One trace from a partner's request to the callback, through every process of a real installation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.callback_receiver import Received, Receiver, receiver
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.site import BRONZE, opened_site
from tests.otlp_collector import Collector, SeenSpan
from tests.rasters import make_raster

pytestmark = pytest.mark.timeout(180)

PARTNER_SPAN = "00f067aa0ba902b7"
GOOD, BROKEN = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
KEY = "sig=not-for-anyone"  # stands in the query of the address that is called back


@pytest.fixture(scope="module")
def partner(installation: Up) -> Iterator[httpx.Client]:
    """Give the client of a partner, with a key that an admin made."""
    wanted = {"client_id": "traced", "display_name": "Traced", "roles": ["submitter"], "platform_id": "ddh"}
    with httpx.Client(timeout=30, trust_env=False, verify=False) as client:
        orchestrator = f"http://127.0.0.1:{installation.ports['orchestrator']}"
        made = client.post(f"{orchestrator}/api/v1/clients", json=wanted, headers={"X-API-Key": installation.admin_key})
        assert made.status_code == 201, made.text
        client.headers["X-API-Key"] = made.json()["key"]
        client.base_url = httpx.URL(f"http://127.0.0.1:{installation.port}")
        yield client


def processed(partner: httpx.Client, callbacks: Receiver, trace_id: str, file: str) -> Received:
    """Submit a raster as part of a trace, and give the callback that tells of its end."""
    asked = {
        "dataset_id": f"traced-{file[0]}",
        "resource_id": "dem",
        "version_id": "V1",
        "data_type": "raster",
        "container_name": BRONZE,
        "file_name": f"ddh/{file}",
        "callback_url": f"{callbacks.url}?{KEY}",
    }
    headers = {"traceparent": f"00-{trace_id}-{PARTNER_SPAN}-01"}
    answer = partner.post("/api/platform/submit", json=asked, headers=headers)
    assert answer.status_code == 202, answer.text
    return callbacks.next(60)


def seen(collector: Collector, trace_id: str) -> list[SeenSpan]:
    """Give the spans of a trace when the last of it is there."""

    def asked() -> list[SeenSpan]:
        spans = collector.trace(trace_id)
        known = {span.span_id for span in spans}
        missing = {span.parent_id for span in spans} - known
        sent = sum(span.attributes["graticule.tasks"] for span in spans if span.name == "step")
        handled = [span for span in spans if span.name.startswith("handle ")]
        is_told = any(span.name == "callback" for span in spans)
        return spans if is_told and missing == {PARTNER_SPAN} and len(handled) == sent else []

    return eventually(asked, lambda: f"a whole trace; {[span.name for span in collector.trace(trace_id)]}")


def test_a_partners_trace_goes_through_every_process_and_back(
    installation: Up, partner: httpx.Client, collector: Collector, tmp_path: Path
) -> None:
    with opened_site(installation, tmp_path) as site, receiver() as callbacks:
        raster = make_raster(tmp_path / "good.tif", "rgb", width=64, height=64, photometric="RGB")
        site.storage.put(f"{BRONZE}/ddh/good.tif", raster.read_bytes())
        site.storage.put(f"{BRONZE}/ddh/broken.tif", b"II*\0 and no raster")
        good = processed(partner, callbacks, GOOD, "good.tif")
        broken = processed(partner, callbacks, BROKEN, "broken.tif")

    _is_whole(seen(collector, GOOD), good)
    _tells_what_went_wrong(seen(collector, BROKEN), broken)
    _logs_name_both(installation)
    told = b"".join(collector.bodies)
    assert KEY.encode() not in told
    assert partner.headers["X-API-Key"].encode() not in told
    assert installation.admin_key.encode() not in told
    assert "key-of-collector" not in installation.logs


def _is_whole(spans: list[SeenSpan], callback: Received) -> None:
    by_id = {span.span_id: span for span in spans}
    one = {span.name: span for span in spans}
    (first,) = [span for span in spans if span.parent_id not in by_id]
    assert (first.name, first.parent_id) == ("POST /api/platform/submit", PARTNER_SPAN)
    assert _way(one["submit raster_ingest"], by_id) == [
        ("graticule-orchestrator", "submit raster_ingest"),
        ("graticule-orchestrator", "POST /api/v1/submit"),
        ("graticule-gateway", "POST orchestrator"),
        ("graticule-gateway", "POST /api/platform/submit"),
    ]
    submitted = one["submit raster_ingest"]
    assert _way(one["gdal.render"], by_id)[:4] == [
        ("graticule-worker", "gdal.render"),
        ("graticule-worker", "handle raster.create_cog"),
        ("graticule-orchestrator", "step"),
        ("graticule-orchestrator", "submit raster_ingest"),
    ]
    assert _way(one["gdal.examine"], by_id)[1][1] == "handle raster.validate"
    handled = [span for span in spans if span.name.startswith("handle ")]
    assert {by_id[span.parent_id].name for span in handled} == {"step"}
    assert len({span.parent_id for span in handled}) == len(handled)  # each was sent by a step of its own
    assert {span.parent_id for span in spans if span.name == "step"} == {submitted.span_id}
    assert (one["callback"].parent_id, one["callback"].attributes["http.response.status_code"]) == (
        submitted.span_id,
        204,
    )
    assert callback.headers["traceparent"] == f"00-{GOOD}-{one['callback'].span_id}-01"
    job_ids = {span.attributes["graticule.job_id"] for span in spans if "graticule.job_id" in span.attributes}
    assert len(job_ids) == 1
    assert {span.error for span in spans} == {None}


def _tells_what_went_wrong(spans: list[SeenSpan], callback: Received) -> None:
    wrong = {span.name for span in spans if span.error is not None}
    assert {"handle raster.validate", "step"} <= wrong
    assert b'"failed"' in callback.body
    assert callback.headers["traceparent"].startswith(f"00-{BROKEN}-")


def _way(span: SeenSpan, by_id: dict[str, SeenSpan]) -> list[tuple[str, str]]:
    """Name a span and those above it."""
    above: Any = by_id.get(span.parent_id)
    return [(span.service, span.name), *(_way(above, by_id) if above else [])]


def _logs_name_both(installation: Up) -> None:
    """Every process has a line of the trace that failed; those that tell of the job name it, too."""
    for process in ("gateway", "orchestrator", "worker"):
        (path,) = (installation.home / "logs").glob(f"{process}*.log")
        log = re.sub(r"\x1b\[\d*m", "", path.read_text())
        lines = [line for line in log.splitlines() if f"trace_id={BROKEN}" in line]
        assert lines, process
        if process == "worker":
            assert all(re.search(r"job_id=[0-9a-f]{32}\b", line) for line in lines)
