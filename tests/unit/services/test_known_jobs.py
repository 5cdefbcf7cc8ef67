"""What is known of jobs is bounded, forgotten while a step is under way, and never of a job that has ended."""

from datetime import UTC, datetime

import pytest

from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.repositories.steps import JobRow, JobSnapshot
from graticule.services import known_jobs
from graticule.services.known_jobs import KnownJobs

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def snapshot(job_id: str, size: int = 1, status: JobStatus = JobStatus.RUNNING) -> JobSnapshot:
    return JobSnapshot(JobRow(JobId(job_id), 1, NOW, "hash", status), {}, size)


def test_a_job_is_taken_out_for_its_step() -> None:
    known = KnownJobs()
    known.keep(snapshot("a"))
    known.keep(snapshot("b"))
    assert known.take([JobId("a"), JobId("nowhere")]) == {"a": snapshot("a")}
    assert list(known) == ["b"]
    assert known.take([JobId("a")]) == {}


@pytest.mark.parametrize("status", JobStatus)
def test_only_a_job_that_goes_on_is_kept(status: JobStatus) -> None:
    known = KnownJobs()
    known.keep(snapshot("a"))
    known.keep(snapshot("a", status=status))
    assert (len(known) == 1) is (status in {JobStatus.PENDING, JobStatus.RUNNING})


def test_the_jobs_whose_step_is_longest_ago_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_jobs, "TEXT_KEPT", 10)
    known = KnownJobs()
    for job_id in ("a", "b", "c"):
        known.keep(snapshot(job_id, size=3))
    known.keep(snapshot("a", size=4))
    assert list(known) == ["b", "c", "a"]
    known.keep(snapshot("d", size=3))
    assert list(known) == ["c", "a", "d"]
    known.keep(snapshot("giant", size=11))
    assert list(known) == []
    known.keep(snapshot("e", size=10))
    assert list(known) == ["e"]
