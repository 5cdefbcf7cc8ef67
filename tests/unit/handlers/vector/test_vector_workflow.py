"""`vector_ingest` publishes a table only when all that belongs to it is made."""

from importlib import resources

import pytest
from pydantic import JsonValue
from tests.unit.dag.jobs import PlayedJob

from graticule.core.states import JobStatus
from graticule.dag.compile import compile_workflow
from graticule.handlers.registry import known_handlers

SOURCE: JsonValue = {"source": "bronze/a.gpkg"}
STAGED: JsonValue = {"source": SOURCE, "chunks": [{"index": 0, "first_fid": 1}]}


def begun(**inputs: bool) -> PlayedJob:
    """Give a job that has validated its source and loaded it."""
    text = resources.files("graticule.workflows").joinpath("vector_ingest.yaml").read_text(encoding="utf-8")
    graph = compile_workflow(text, file="vector_ingest.yaml", handlers=known_handlers()).graph
    assert graph is not None
    given = {name: spec.default for name, spec in graph.inputs.items()}
    job = PlayedJob(graph, inputs={**given, "container_name": "bronze", "blob_name": "a", "table_name": "a", **inputs})
    job.submit()
    job.complete("validate", output=SOURCE)
    job.complete("stage", output=STAGED)
    job.complete("load__0", output={"chunk": 0})
    return job


@pytest.mark.parametrize("wanted", [("geoparquet",), ("pmtiles",), ("geoparquet", "pmtiles")])
def test_no_table_is_published_before_its_exports_are_made(wanted: tuple[str, ...]) -> None:
    job = begun(**dict.fromkeys(wanted, True))
    for name in wanted:
        assert job.statuses["finalize"] == "pending"
        job.complete(f"export_{name}", output={"name": name})
    assert job.statuses["finalize"] == "dispatched"
    job.complete("finalize", output={"table_name": "a"})
    job.complete("register", output={})
    assert job.status is JobStatus.COMPLETED


def test_no_table_is_published_when_an_export_fails() -> None:
    job = begun(geoparquet=True, pmtiles=True)
    job.complete("export_pmtiles", output={"name": "pmtiles"})
    job.fail("export_geoparquet")
    assert job.status is JobStatus.FAILED
    assert job.store.rows["finalize"].task_id is None


def test_what_is_not_wanted_is_not_waited_for() -> None:
    assert begun().statuses["finalize"] == "dispatched"
