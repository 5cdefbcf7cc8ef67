"""The story of the smallest job, to the letter."""

from tests.unit.dag.jobs import PlayedJob, end, graph, start, task


def test_echo_trace() -> None:
    job = PlayedJob(graph(start("echo_handler"), task("echo_handler", "end", params={"a": 1}), end()))

    job.submit()
    assert job.status == "running"
    job.complete("echo_handler", output={"echoed_params": {"a": 1}})

    assert [event.event_type for event in job.store.events] == [
        "job_created",
        "node_ready",
        "node_dispatched",
        "job_started",
        "node_completed",
        "job_completed",
    ]
    assert job.statuses == {"start": "completed", "echo_handler": "completed", "end": "completed"}
    assert job.status == "completed"
    assert job.store.result == {"echoed_params": {"a": 1}}
