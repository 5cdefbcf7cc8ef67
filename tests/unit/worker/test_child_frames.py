"""What a child process tells is taken only as it should be."""

from dataclasses import asdict
from typing import Any

import pytest

from graticule.core.states import ResultStatus
from graticule.worker.child_frames import ProgressFrame, ResultFrame, SavedPhase, SpanFrame, json_object
from graticule.worker.frames import BrokenFrame

RESULT: dict[str, Any] = {
    "kind": "result",
    "task_id": "t",
    "status": "completed",
    "has_output": True,
    "error_message": None,
    "retryable": True,
    "metrics": None,
    "is_interrupted": False,
    "progress": {"done": 1, "total": 2.0, "percent": 50.0, "eta_seconds": 1.5, "message": "half"},
    "is_worn": False,
}


def test_a_result_is_taken_as_it_was_sent() -> None:
    told = ResultFrame.of(RESULT)
    assert told.last_progress() == RESULT["progress"]
    assert (told.outcome(b"1").status, told.outcome(b"1").output) == (ResultStatus.COMPLETED, b"1")
    assert ResultFrame.of({**RESULT, "has_output": False}).outcome(b"1").output is None


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "evil"},
        {"status": 1},
        {"has_output": 1},
        {"error_message": {"a": 1}},
        {"error_message": "x" * 10_000},
        {"retryable": "x"},
        {"metrics": 5},
        {"is_interrupted": None},
        {"progress": "x"},
        {"progress": {"done": "1"}},
        {"progress": {"done": 1, "message": "x" * 10_000}},
        {"progress": {"done": 1, "more": 1}},
        {"is_worn": "no"},
        {"more": 1},
    ],
)
def test_a_result_of_other_types_is_none(changed: dict[str, Any]) -> None:
    with pytest.raises(BrokenFrame):
        ResultFrame.of({**RESULT, **changed})


@pytest.mark.parametrize("missing", RESULT)
def test_a_result_is_whole(missing: str) -> None:
    with pytest.raises(BrokenFrame):
        ResultFrame.of({name: value for name, value in RESULT.items() if name != missing})


def test_what_is_no_end_or_no_text_is_not_an_outcome() -> None:
    with pytest.raises(BrokenFrame):
        ResultFrame.of({**RESULT, "status": "running"}).outcome(b"1")
    with pytest.raises(BrokenFrame):
        ResultFrame.of(RESULT).outcome(b"\xff")


def test_progress_is_numbers_and_a_word() -> None:
    frame = {"kind": "progress", "task_id": "t", "progress": {"done": None, "message": "x"}}
    assert ProgressFrame.of(frame).plain() == {"done": None, "message": "x"}
    for progress in (None, {}, {"done": 1, "total": "2"}, {"done": True}):
        with pytest.raises(BrokenFrame):
            ProgressFrame.of({**frame, "progress": progress})


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a": "\\u0000"}', b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}"])
def test_what_is_kept_is_an_object_that_can_be_stored(body: bytes) -> None:
    with pytest.raises(BrokenFrame):
        json_object(body)


def test_a_phase_is_a_name_data_and_paths() -> None:
    given: dict[str, Any] = {"phase": "a", "data": {"n": 1}, "artifacts": ["x"]}
    assert SavedPhase.of(given).data == {"n": 1}
    wrong: list[dict[str, Any]] = [{"phase": 1}, {"data": []}, {"artifacts": [1]}, {"artifacts": "x"}]
    for changed in wrong:
        with pytest.raises(BrokenFrame):
            SavedPhase.of({**given, **changed})


SPAN: dict[str, Any] = {
    "kind": "span",
    "task_id": "t",
    "name": "gdal.open",
    "span_id": "00f067aa0ba902b7",
    "parent_id": "53995c3f42cd8ad8",
    "start_ns": 1,
    "end_ns": 2,
    "error": None,
    "attributes": {"graticule.bands": 3, "graticule.path": "silver/a.tif", "graticule.is_cog": True, "f": 0.5},
}


def test_a_span_is_told_in_full() -> None:
    told = SpanFrame.of(SPAN).recorded()
    assert {**SPAN, **asdict(told)} == SPAN


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "x" * 101},
        {"name": ""},
        {"span_id": "0" * 15},
        {"span_id": "0" * 16},
        {"parent_id": "00F067AA0BA902B7"},
        {"start_ns": 2**63},
        {"end_ns": "2"},
        {"error": "x" * 257},
        {"attributes": {"a": ["b"]}},
        {"attributes": {"a": "b" * 257}},
        {"attributes": {f"a{number}": 1 for number in range(21)}},
        {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"},
    ],
)
def test_what_is_no_span_is_not_taken_for_one(changed: dict[str, Any]) -> None:
    with pytest.raises(BrokenFrame):
        SpanFrame.of({**SPAN, **changed})
