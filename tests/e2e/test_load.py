"""The load of `make load`, in small: the same client and the same report, against a real installation."""

import asyncio

from benchmarks.load.client import Kind, Load, run
from benchmarks.load.platform import COMPLETED, UNDER_WAY
from benchmarks.load.report import Measured, Used, tables
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up


def test_every_submission_has_a_receipt_and_every_receipt_a_job_that_completes(installation: Up) -> None:
    load = Load(Kind.JOBS, port=installation.port, name="load", rate=40, seconds=1, keys=[installation.admin_key])
    seen = asyncio.run(run(load))
    eventually(lambda: installation.query(UNDER_WAY) == [(0,)], "all jobs ended")
    completed = {receipt for (receipt,) in installation.query(COMPLETED)}
    measured = Measured(
        kind=Kind.JOBS,
        rate=load.rate,
        seen=seen,
        completed=completed,
        seconds_to_the_last_job=0,
        cores_busy=0.5,
        used=[Used("gateway", cpu_seconds=0.1, megabytes=[100, 101, 101])],
    )
    assert (measured.refused, measured.lost, len(seen["receipts"])) == (0, 0, 40)
    assert len(seen["milliseconds"]) == 40
    assert {table.row_count for table in tables(measured)} == {1, 5, 6}


def test_what_is_refused_lost_or_grows_is_not_sound(installation: Up) -> None:
    load = Load(Kind.JOBS, port=installation.port, name="refused", rate=10, seconds=0.2, keys=["gtc_nobody"])
    seen = asyncio.run(run(load))
    assert [why.partition(":")[0] for why in seen["refused"]] == ["401"]
    grows = Used("gateway", cpu_seconds=0.1, megabytes=[100, 120, 140])
    lost = {**seen, "sent": 2, "receipts": ["a", "a"], "seconds": 1}
    told = Measured(Kind.JOBS, 10, lost, {"b"}, 0, 0, [grows])
    assert [reached for *_, reached in told.checks] == [True, False, False, False, False]
    assert not told.is_sound
