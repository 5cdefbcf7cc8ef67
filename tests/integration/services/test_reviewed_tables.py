"""The table of a version that a reviewer approves: it is hashed while others may change the asset."""

import asyncio

import psycopg
import pytest
from psycopg import sql
from tests.conftest import TestDatabase
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import Refused
from graticule.core.models import AssetVersion
from graticule.core.states import ApprovalState
from graticule.repositories.assets import AssetVersionRepository


@pytest.fixture
def database(own_database: TestDatabase) -> TestDatabase:
    return own_database


async def loaded(desk: Desk, admin: psycopg.AsyncConnection) -> tuple[str, sql.Identifier]:
    """Return an asset whose version awaits its approval, and its table of features."""
    receipt = await desk.submit(data_type="vector", file_name="ddh/dem/europe.gpkg")
    name = (await desk.names(receipt))["table_name"]
    table = sql.Identifier("geo", name)
    await admin.execute(sql.SQL("CREATE TABLE {} (fid bigint PRIMARY KEY, name text)").format(table))
    await admin.execute(sql.SQL("INSERT INTO {} VALUES (1, 'a'), (2, 'b')").format(table))
    await admin.execute(sql.SQL("ALTER TABLE {} OWNER TO graticule_owner").format(table))
    row = await (await admin.execute("SELECT dagapp.hash_rows('geo', %s)", [name])).fetchone()
    assert row is not None
    comment = f"Made by job {receipt.job_id}: roads. Content: {row[0]}."
    await admin.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(comment)))
    await desk.finish(receipt.job_id, {"content_hash": "a" * 64, "table_name": name, "output_hash": row[0]})
    return receipt.asset_id, table


async def test_a_table_with_other_rows_is_not_approved(desk: Desk, admin: psycopg.AsyncConnection) -> None:
    asset_id, table = await loaded(desk, admin)
    await admin.execute(sql.SQL("UPDATE {} SET name = 'x' WHERE fid = 1").format(table))
    with pytest.raises(Refused) as changed:
        await desk.approve(asset_id)
    assert code_of(changed.value) == "outputs_changed"
    assert "its rows are not those that the job loaded" in str(changed.value)
    await admin.execute(sql.SQL("UPDATE {} SET name = 'a' WHERE fid = 1").format(table))
    approved = await desk.approve(asset_id)
    assert approved.version is not None
    assert approved.version.approval_state is ApprovalState.APPROVED


async def test_while_a_table_is_hashed_others_decide_and_the_approval_is_refused(
    desk: Desk, admin: psycopg.AsyncConnection
) -> None:
    asset_id, table = await loaded(desk, admin)
    async with admin.transaction():
        await admin.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(table))
        approval = asyncio.create_task(desk.approve(asset_id))
        await desk.until_waiting(1)
        async with asyncio.timeout(5):
            await desk.reject(asset_id)
    with pytest.raises(Refused) as stale:
        await approval
    assert code_of(stale.value) == "stale_version"
    assert (await desk.version(asset_id)).approval_state is ApprovalState.REJECTED


async def test_a_table_that_is_replaced_after_it_was_hashed_is_not_approved(
    desk: Desk, admin: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset_id, table = await loaded(desk, admin)
    find_fault = AssetVersionRepository.fault_of_table

    async def replace_afterwards(self: AssetVersionRepository, version: AssetVersion, most_bytes: int) -> str | None:
        fault = await find_fault(self, version, most_bytes)
        await admin.execute(sql.SQL("COMMENT ON TABLE {} IS 'Made by job another: roads.'").format(table))
        return fault

    monkeypatch.setattr(AssetVersionRepository, "fault_of_table", replace_afterwards)
    with pytest.raises(Refused) as replaced:
        await desk.approve(asset_id)
    assert code_of(replaced.value) == "outputs_changed"
    assert "another job has made it" in str(replaced.value)
