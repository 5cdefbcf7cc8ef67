"""Files of other partners are refused by gateway and orchestrator, in the words in which missing ones are."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway.front import FLAT, Front, problem_of
from tests.sources import put_source

from graticule.config import Settings

FOREIGN = ("arcgis/secret.zip", "arcgis/none.zip", "secret.zip", "none.zip", "DDH/roads/europe.zip", "ddh2/roads.zip")
MISSING = "ddh/none.zip"
# Paths that lead to another partner's file when they are tidied, decoded, or followed.
TRICKS = (
    *("ddh/../arcgis/secret.zip", "ddh//../arcgis/secret.zip", "./arcgis/secret.zip", "ddh/./../arcgis/secret.zip"),
    *("/arcgis/secret.zip", "//arcgis/secret.zip", "ddh/..%2farcgis/secret.zip", "ddh/%2e%2e/arcgis/secret.zip"),
    *("ddh\\..\\arcgis\\secret.zip", "ddh/\uff0e\uff0e/arcgis/secret.zip", "ddh/..\0/arcgis/secret.zip", "ddh/"),
    *("ddh", "ddh/link.zip", "ddh/links/secret.zip", "ddh/loop.zip", "ddh/dangling.zip", "ddh/roads", "ddh/pipe"),
    *("https://host/secret.zip", "/vsicurl/https://host/a.zip", "vsizip/arcgis/secret.zip", "ddh/europe.zip/a.shp"),
)
LINKS = (
    *("ddh/link.zip", "ddh/links/secret.zip", "ddh/links/none.zip", "ddh/dangling.zip", "ddh/loop.zip"),
    *("ddh/loops/secret.zip", "ddh/outside/hosts", "ddh/outside/none", "ddh/hosts"),
    *("ddh/container/secret.zip", "ddh/container/none.zip"),
)


@pytest.fixture
def storage(settings: Settings) -> Path:
    storage: Path = settings.storage_folder
    for name in ("bronze/arcgis/secret.zip", "bronze/secret.zip", "other/secret.zip", "bronze/ddh2/roads.zip"):
        put_source(storage, name)
    own = storage / "bronze" / "ddh"
    (own / "link.zip").symlink_to("../arcgis/secret.zip")
    (own / "links").symlink_to("../arcgis")
    (own / "loop.zip").symlink_to("loop.zip")
    (own / "dangling.zip").symlink_to("../arcgis/none.zip")
    (own / "loops").symlink_to("loops")
    (own / "outside").symlink_to("/etc")
    (own / "hosts").symlink_to("/etc/hosts")
    (own / "container").symlink_to("../../other")
    return storage


async def refused(front: Front, who: str = "partner", **more: Any) -> dict[str, Any]:
    """Submit what is refused, and return the problem without what names this request."""
    answer = await front.ask(who, "POST", "/api/platform/submit", json={**FLAT, **more})
    problem = problem_of(answer, 422)
    return {name: value for name, value in problem.items() if name != "request_id"}


def nothing_is_written(front: Front) -> None:
    for table in ("platform_requests", "geospatial_assets", "dag_jobs", "dag_job_events"):
        assert front.execute(f"SELECT count(*) FROM dagapp.{table}") == [(0,)], table


async def test_anothers_file_is_refused_as_a_missing_one_is(front: Front, storage: Path) -> None:
    missing = await refused(front, file_name=MISSING)
    assert missing["code"] == "source_not_found"
    assert [each["loc"] for each in missing["errors"]] == [["body", "file_name"]]
    assert "bronze/ddh/" in missing["hint"]
    for name in FOREIGN:
        assert await refused(front, file_name=name) == missing, name
    for container in ("other", "none"):
        assert await refused(front, container_name=container, file_name="secret.zip") == missing, container
    nothing_is_written(front)


async def test_the_orchestrator_refuses_it_too(front: Front, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def let_pass(*_: object) -> None:
        """Stand for a gateway that was taken over."""

    monkeypatch.setattr(front.app.state.platforms, "check_source", let_pass)
    missing = await refused(front, file_name=MISSING)
    for name in FOREIGN:
        assert await refused(front, file_name=name) == missing, name
    assert await refused(front, "operator", platform_id="ddh", file_name=FOREIGN[0]) == missing
    nothing_is_written(front)


async def test_the_gateway_refuses_it_without_asking_the_orchestrator(
    front: Front, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(*_: object, **__: object) -> None:
        raise AssertionError("It was forwarded.")

    monkeypatch.setattr(front.app.state.orchestrator, "send", send)
    problem = await refused(front, file_name=FOREIGN[0])
    assert problem["code"] == "source_not_found"
    own = await front.ask("partner", "POST", "/api/platform/submit", json=FLAT)
    assert own.status_code == 500  # what is admitted is forwarded


@pytest.mark.parametrize("is_checked_by_gateway", [True, False])
async def test_no_detour_leads_to_it(
    front: Front, storage: Path, monkeypatch: pytest.MonkeyPatch, is_checked_by_gateway: bool
) -> None:
    async def let_pass(*_: object) -> None:
        """Stand for a gateway that was taken over."""

    if not is_checked_by_gateway:
        monkeypatch.setattr(front.app.state.platforms, "check_source", let_pass)
    for name in TRICKS:
        problem = await refused(front, file_name=name)
        assert problem["code"] in {"source_not_found", "invalid_input"}, name
    nothing_is_written(front)


async def test_a_file_that_a_link_leads_to_is_indistinguishable_from_none(front: Front, storage: Path) -> None:
    missing = await refused(front, file_name=MISSING)
    for name in LINKS:
        assert await refused(front, file_name=name) == missing, name


async def test_what_an_admin_adds_to_the_sources_can_be_submitted(front: Front, storage: Path) -> None:
    assert front.api is not None
    patterns = ["bronze/ddh/", "other"]
    front.execute("UPDATE dagapp.platforms SET source_containers = %s WHERE platform_id = 'ddh'", patterns)
    await front.submitted(container_name="other", file_name="secret.zip")
    (shown,) = (await front.get("partner", "/api/platforms"))["items"]
    assert shown["source_containers"] == patterns
    assert (await front.get("operator", "/api/platforms/arcgis"))["source_containers"] == ["bronze/arcgis/"]


async def test_a_repeated_submission_has_its_receipt_whatever_became_of_the_file(front: Front, storage: Path) -> None:
    key = {"Idempotency-Key": "a-1"}
    receipt = await front.post("partner", "/api/platform/submit", {**FLAT}, 202, **key)
    (storage / "bronze" / FLAT["file_name"]).unlink()
    assert await front.post("partner", "/api/platform/submit", {**FLAT}, 202, **key) == receipt
    front.execute("UPDATE dagapp.platforms SET source_containers = '{other}' WHERE platform_id = 'ddh'")
    assert await front.post("partner", "/api/platform/submit", {**FLAT}, 202, **key) == receipt
