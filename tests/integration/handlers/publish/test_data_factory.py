"""Exports and reversals by way of Azure Data Factory: one run for each, whose copies are looked at first."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.azure_login import identified
from tests.integration.handlers.publish.factory_double import TOKEN, Answer, FactoryDouble, factory_double
from tests.integration.handlers.publish.publisher import Publisher, output

LOST = Answer(0, happens=True)


@pytest.fixture
def factory(publisher: Publisher) -> Iterator[FactoryDouble]:
    with factory_double(publisher.folder) as double, identified(double.settings()):
        yield double


async def test_a_pipeline_copies_and_we_look_and_catalogue(publisher: Publisher, factory: FactoryDouble) -> None:
    made, job_id = await publisher.made(b"pixels"), publisher.job("export")
    done = output(await publisher.export(made, job_id=job_id))
    (run,) = factory.runs.values()
    at = f"{publisher.prefix()}/r1/cogs"
    assert run.pipeline == "copy-out"
    assert run.parameters == {
        "asset_id": publisher.asset_id,
        "version_ordinal": 0,
        "revision": 1,
        "source_container": "silver",
        "source_folder": at,
        "target_container": "external",
        "target_folder": at,
        "run_token": f"{job_id}-1",
    }
    assert done["export_run_id"] == run.run_id
    assert done["external_blob_path"] == f"external/{at}/scene.tif"
    assert publisher.items(publisher.public) == [made["stac_item_id"]]
    assert await publisher.blobs() == {"v0/r1/cogs/scene.tif": b"pixels"}
    assert any(told.get("message") == "blobs, by Azure Data Factory" for told in publisher.told)
    saved = publisher.saved[job_id].all
    assert run.run_id in str(saved)
    assert TOKEN not in str((saved, publisher.told, done))


async def test_documents_never_go_by_way_of_the_factory(publisher: Publisher, factory: FactoryDouble) -> None:
    output(await publisher.export(await publisher.made_mosaic()))
    (run,) = factory.runs.values()
    assert run.parameters["source_folder"].endswith("/r1/cogs")
    blobs = await publisher.blobs()
    assert len(blobs) == 5
    assert b"silver" not in b"".join(blobs.values())


async def test_a_run_that_fails_is_told_in_its_own_words_and_the_next_attempt_starts_another(
    publisher: Publisher, factory: FactoryDouble
) -> None:
    made, job_id = await publisher.made(), publisher.job("export")
    factory.scripts, factory.message = [["Failed"]], "Operation on target Copy failed: ErrorCode=UserErrorX"
    failed = await publisher.export(made, job_id=job_id)
    assert failed.retryable
    assert "ended as Failed: Operation on target Copy failed: ErrorCode=UserErrorX" in str(failed.error_message)
    assert publisher.items(publisher.public) == []
    output(await publisher.export(made, job_id=job_id))
    assert [run.parameters["run_token"] for run in factory.runs.values()] == [f"{job_id}-1", f"{job_id}-2"]


async def test_a_run_that_someone_has_cancelled_there_is_not_started_again(
    publisher: Publisher, factory: FactoryDouble
) -> None:
    factory.scripts = [["InProgress", "Cancelled"]]
    result = await publisher.export(await publisher.made())
    assert (result.retryable, "ended as Cancelled" in str(result.error_message)) == (False, True)


@pytest.mark.parametrize("deed", ["createRun", "run"])
async def test_a_busy_factory_is_asked_again_when_it_says(
    publisher: Publisher, factory: FactoryDouble, deed: str
) -> None:
    busy = Answer(429, {"error": {"code": "TooManyRequests", "message": "later"}}, {"Retry-After": "0"})
    factory.instead[deed] = [busy, busy]
    if deed == "run":
        factory.instead[deed].append(Answer(503))
    output(await publisher.export(await publisher.made()))
    assert len(factory.runs) == 1


@pytest.mark.parametrize("lost", [LOST, Answer(500, happens=True)])
async def test_a_lost_answer_starts_no_second_run(publisher: Publisher, factory: FactoryDouble, lost: Answer) -> None:
    factory.instead["createRun"] = [lost]
    done = output(await publisher.export(await publisher.made()))
    assert [done["export_run_id"]] == list(factory.runs)
    assert (factory.calls("createRun"), factory.calls("queryPipelineRuns")) == (1, 1)


async def test_a_start_that_never_happened_is_tried_by_the_next_attempt(
    publisher: Publisher, factory: FactoryDouble
) -> None:
    made, job_id = await publisher.made(), publisher.job("export")
    factory.instead["createRun"] = [Answer(500)]
    failed = await publisher.export(made, job_id=job_id)
    assert failed.retryable
    output(await publisher.export(made, job_id=job_id))
    (run,) = factory.runs.values()
    assert run.parameters["run_token"] == f"{job_id}-1"


async def test_the_next_worker_watches_the_same_run(publisher: Publisher, factory: FactoryDouble) -> None:
    made, job_id = await publisher.made(), publisher.job("export")
    factory.scripts = [["InProgress"] * 2 + ["Succeeded"]]

    def stop(_: dict[str, Any]) -> None:
        publisher.signals.shutdown_requested = True

    publisher.on_progress = stop
    assert (await publisher.export(made, job_id=job_id)).is_interrupted
    publisher.signals.shutdown_requested, publisher.on_progress = False, publisher.told.append
    done = output(await publisher.export(made, job_id=job_id))
    assert [done["export_run_id"]] == list(factory.runs)
    assert [factory.calls(deed) for deed in ("createRun", "queryPipelineRuns", "cancel")] == [1, 0, 0]


async def test_a_cancelled_job_cancels_its_run(publisher: Publisher, factory: FactoryDouble) -> None:
    factory.scripts = [["InProgress"]]

    def cancel(_: dict[str, Any]) -> None:
        publisher.signals.cancelled = True

    publisher.on_progress = cancel
    result = await publisher.export(await publisher.made())
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert factory.calls("cancel") == 1
    (run,) = factory.runs.values()
    assert run.status == "Canceling"


async def test_a_refusal_is_for_good_and_in_their_words(publisher: Publisher, factory: FactoryDouble) -> None:
    words = "The client does not have authorization to perform action 'createRun'."
    factory.instead["createRun"] = [Answer(403, {"error": {"code": "AuthorizationFailed", "message": words}})]
    result = await publisher.export(await publisher.made())
    assert result.error_message == f"Azure Data Factory refused: AuthorizationFailed: {words} (403)"
    assert not result.retryable


async def test_copies_that_are_not_there_do_not_count(publisher: Publisher, factory: FactoryDouble) -> None:
    made, job_id = await publisher.made(), publisher.job("export")
    factory.copies = False
    failed = await publisher.export(made, job_id=job_id)
    assert (failed.retryable, "is not there" in str(failed.error_message)) == (True, True)
    assert publisher.items(publisher.public) == []
    factory.copies = True
    output(await publisher.export(made, job_id=job_id))
    assert len(factory.runs) == 2


async def test_copies_that_are_not_right_do_not_count(publisher: Publisher, factory: FactoryDouble) -> None:
    factory.after_copying = lambda folder: next(folder.rglob("scene.tif")).write_bytes(b"pixelz")
    result = await publisher.export(await publisher.made(b"pixels"))
    assert "is another than the catalogue says" in str(result.error_message)


async def test_a_reversal_ends_the_runs_of_cancelled_exports_first(
    publisher: Publisher, factory: FactoryDouble
) -> None:
    """What such a run still copies would come after all was removed."""
    export = publisher.job("export")
    factory.scripts = [["InProgress"]]
    publisher.on_progress = lambda _: setattr(publisher.signals, "cancelled", True)
    factory.instead["cancel"] = [Answer(403, {"error": {"code": "No", "message": "not now"}})]
    await publisher.export(await publisher.made(), job_id=export)
    publisher.note(export, publisher.saved[export].all[-1].data)
    (run,) = factory.runs.values()
    assert run.status == "InProgress", "it could not be cancelled then"
    publisher.signals.cancelled, publisher.on_progress = False, publisher.told.append
    assert output(await publisher.reverse())["remaining"] == 0
    assert run.status == "Cancelled"


async def test_a_pipeline_removes_the_copies_when_there_is_one(
    publisher: Publisher, factory: FactoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    output(await publisher.export(await publisher.made()))
    monkeypatch.setenv("GRATICULE_ADF_REVERSAL_PIPELINE", "remove")
    job_id = publisher.job("reversal")
    factory.copies = False
    failed = await publisher.reverse(job_id=job_id)
    assert (failed.retryable, "still there" in str(failed.error_message)) == (True, True)
    factory.copies = True
    assert output(await publisher.reverse(job_id=job_id))["removed"]["blobs"] == 1
    run = list(factory.runs.values())[-1]
    assert (run.pipeline, run.parameters["target_folder"]) == ("remove", publisher.prefix())
    assert run.parameters["run_token"] == f"{job_id}-2"
    assert await publisher.blobs() == {}


async def test_tables_are_copied_without_the_factory(publisher: Publisher, factory: FactoryDouble) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"))
    job_id = publisher.job("export", table_name=name, version_prefix=publisher.prefix())
    assert output(await publisher.export({"table_name": name}, job_id=job_id))["export_run_id"] == job_id
    assert factory.asked == []


async def test_half_a_configuration_is_told(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_ADF_FACTORY_NAME", "factory-1")
    result = await publisher.export(await publisher.made())
    assert "GRATICULE_ADF_SUBSCRIPTION_ID, GRATICULE_ADF_RESOURCE_GROUP" in str(result.error_message)
    assert not result.retryable
    assert await publisher.blobs() == {}


async def test_a_token_goes_only_where_it_is_encrypted(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUBSCRIPTION_ID", "RESOURCE_GROUP", "FACTORY_NAME", "EXPORT_PIPELINE"):
        monkeypatch.setenv(f"GRATICULE_ADF_{name}", "x")
    monkeypatch.setenv("GRATICULE_ADF_ENDPOINT", "http://management.example")
    result = await publisher.export(await publisher.made())
    assert "must begin with https://" in str(result.error_message)
