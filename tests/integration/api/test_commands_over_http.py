"""The commands against the real orchestrator, over a real connection."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.integration.api.conftest import KEY
from tests.integration.api.running import RunningApi
from tests.integration.api.test_event_stream_server import served
from tests.sources import put_source
from tests.unit.cli import conftest
from tests.unit.cli.conftest import Result, run

SUBMIT = (
    *("asset", "submit", "--platform", "atlas", "--ref", "sheet:=7", "--label", "2026-03", "--type", "raster"),
    *("--container", "bronze", "--file", "atlas/dem/europe.tif"),
)


async def test_from_a_partner_to_its_data_by_commands_alone(
    api: RunningApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "plain_logs", lambda: None)  # the server's lines stay where they are kept
    put_source(tmp_path / "storage", "bronze/atlas/dem/europe.tif")
    async with served(api) as (address, _):
        variables = {"GRATICULE_API_URL": address, "GRATICULE_API_KEY": KEY, "GRATICULE_HOME": str(tmp_path)}

        async def graticule(*arguments: str, code: int = 0, **more: str) -> Result:
            result = await asyncio.to_thread(run, *arguments, variables=variables | more)
            assert result.code == code, result
            return result

        await graticule(
            *("platform", "add", "atlas", "--name", "Atlas"), "--required-ref", "sheet", "--version-ref", "v"
        )
        key = (await graticule("client", "add", "portal", "--role", "submitter", "--platform", "atlas")).out.strip()
        refused = await graticule("client", "list", code=1, GRATICULE_API_KEY=key)
        assert refused.err.startswith("✗ ")
        request = (await graticule(*SUBMIT, GRATICULE_API_KEY=key)).out.strip()
        again = await graticule(*SUBMIT, "--overwrite", code=1)
        assert "Traceback" not in again.err
        assert "Version 0 (2026-03)" in (await graticule("asset", "status", request)).out
        (asset,) = json.loads((await graticule("asset", "list", "--ref", "sheet:=7", "--json")).out)
        assert asset["platform_refs"] == {"sheet": 7}
        asset_id = asset["asset_id"]
        assert "2026-03" in (await graticule("asset", "show", asset_id)).out
        assert "portal" in (await graticule("asset", "history", asset_id)).out
        assert asset_id in (await graticule("stats", "dataset", "--ref", "sheet:=7")).out
        too_early = await graticule("asset", "approve", asset_id, "--clearance", "ouo", code=1)
        assert len(too_early.err.splitlines()) <= 2
        assert "Done" in (await graticule("asset", "url-mode", asset_id, "all_versions")).err
        assert "asset_id" in (await graticule("command", "list")).out
        await graticule("command", "run", "cache.invalidate", f"asset_id={asset_id}")
        assert "no callback yet" in (await graticule("callbacks", "list")).err
        assert (await graticule("stats")).out
