"""Server-sent events: put together from any pieces, taken up where a connection broke; the same for both clients."""

import json
from typing import Any

import httpx
import pytest
from tests.unit.cli.api import JOB_ID, event, problem, stream
from tests.unit.client.senders import Sender, Wire

from graticule.client import ApiProblem, Unavailable, UnexpectedAnswer
from graticule.client.event_stream import MessageReader

TEXT = ": comment\n\nretry: 5\n\nid: 1\nevent: a\ndata: x\ndata:y\n\ndata: z\n\nevent: lost\n\ndata: cut off"
READ = [("a", "1", "x\ny"), ("message", None, "z")]


def messages(text: str, size: int) -> list[tuple[str, str | None, str]]:
    reader, raw = MessageReader(), text.encode()
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    return [(each.event, each.id, "\n".join(each.data)) for piece in pieces for each in reader.take(piece)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_messages_are_read_as_the_standard_says_from_pieces_of_any_size(end: str, size: int) -> None:
    assert messages(TEXT.replace("\n", end), size) == READ


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c", "𝄞é"])
def test_only_line_ends_end_a_line(sign: str, size: int) -> None:
    assert messages(f'data: "a{sign}b"\n\n', size) == [("message", None, f'"a{sign}b"')]


def test_events_have_their_type(sender: Sender) -> None:
    (found,) = sender.follow(Wire([stream(event(1, "node_failed", "a", error="a\u2028b"))]), JOB_ID)
    assert (found.event_id, found.event_type, found.node_id, found.data) == (
        1,
        "node_failed",
        "a",
        {"error": "a\u2028b"},
    )


def test_a_stream_that_breaks_is_taken_up_after_the_last_event(sender: Sender, pauses: list[float]) -> None:
    wire = Wire(
        [
            stream(event(1, "job_created"), event(2, "node_ready", "a"), end=False),
            httpx.ReadError("reset"),
            problem(503, "It starts."),
            httpx.ConnectError("refused"),
            stream(event(3, "job_completed")),
        ]
    )
    assert [each.event_id for each in sender.follow(wire, JOB_ID)] == [1, 2, 3]
    assert [request.headers["Last-Event-ID"] for request in wire.asked] == ["0", "2", "2", "2", "2"]
    assert pauses == [0.5] * 4


def test_half_a_message_of_a_broken_connection_is_forgotten(sender: Sender, pauses: list[float]) -> None:
    half = json.dumps(event(2, "node_ready"))[:20]
    whole = stream(event(1, "job_created"), end=False).text
    wire = Wire([httpx.Response(200, text=f"{whole}id: 2\ndata: {half}"), stream(event(2, "node_ready"))])
    assert [each.event_id for each in sender.follow(wire, JOB_ID)] == [1, 2]
    assert wire.headers["Last-Event-ID"] == "1"
    assert len(pauses) == 1


def test_the_first_connection_asks_for_what_comes_after(sender: Sender) -> None:
    wire = Wire([stream(event(8, "job_completed"))])
    sender.follow(wire, JOB_ID, 7)
    assert wire.headers["Last-Event-ID"] == "7"


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(
    ("lost", "told"), [(httpx.ConnectError("refused"), Unavailable), (problem(503, "x"), ApiProblem)]
)
def test_a_server_that_stays_away_is_given_up(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, lost: Any, told: type[Exception]
) -> None:
    monkeypatch.setattr("graticule.client.event_stream.PATIENCE_SECONDS", 0.02)
    with pytest.raises(told):
        sender.follow(Wire([lost]), JOB_ID)


def test_a_job_that_does_not_exist_is_not_waited_for(sender: Sender, pauses: list[float]) -> None:
    wire = Wire([problem(404, "There is no such job.")])
    with pytest.raises(ApiProblem, match="no such job"):
        sender.follow(wire, JOB_ID)
    assert (len(wire.asked), pauses) == (1, [])


def test_an_event_that_is_none_is_told_as_such(sender: Sender) -> None:
    with pytest.raises(UnexpectedAnswer):
        sender.follow(Wire([httpx.Response(200, text="data: <html>\n\n")]), JOB_ID)
