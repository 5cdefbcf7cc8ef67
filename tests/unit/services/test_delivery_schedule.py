"""What follows from a try: when the next one comes, and when there is none."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.integration.repositories import rows

from graticule.core.models.engine import EventType
from graticule.services import deliveries
from graticule.services.deliveries import PAUSES, Outcome, pause_after, recorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = 24 * HOUR


def test_the_schedule() -> None:
    told = [5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24))]
    assert [pause.total_seconds() for pause in PAUSES] == told


def test_pauses_are_spread_by_a_tenth() -> None:
    for attempt, pause in enumerate(PAUSES, 1):
        found = [pause_after(attempt, Outcome(500), NOW) or timedelta() for _ in range(200)]
        assert pause * 0.9 <= min(found) < pause * 0.95
        assert pause * 1.05 < max(found) <= pause * 1.1


def test_after_the_last_pause_there_is_no_other_try() -> None:
    assert pause_after(len(PAUSES), Outcome(500), NOW) is not None
    assert pause_after(len(PAUSES) + 1, Outcome(500), NOW) is None


@pytest.mark.parametrize(
    ("status", "retry_after", "least", "most"),
    [
        (503, "3600", HOUR, HOUR),
        (429, "3600", HOUR, HOUR),
        (429, format_datetime(NOW + HOUR, usegmt=True), HOUR, HOUR),
        (429, "Thu, 01 Jan 2026 01:00:00", HOUR, HOUR),
        (503, "9" * 30, DAY, DAY),
        (503, "Fri, 01 Jan 2100 00:00:00 GMT", DAY, DAY),
        (503, "0", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "Thu, 01 Jan 1970 00:00:00 GMT", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "soon", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "²", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "Thu, 01 Jan 2026 00:00:00 +99999999999999", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "Thu, 01 Jan 99999999999999999999 00:00:00 GMT", timedelta(seconds=4), timedelta(seconds=6)),
        (503, "Fri, 31 Dec 9999 23:59:59 -2359", DAY, DAY),
        (503, "Mon, 01 Jan 0001 00:00:00 +2359", timedelta(seconds=4), timedelta(seconds=6)),
        (503, None, timedelta(seconds=4), timedelta(seconds=6)),
        (500, "3600", timedelta(seconds=4), timedelta(seconds=6)),
    ],
)
def test_who_asks_for_time_gets_it_up_to_a_day(
    status: int, retry_after: str | None, least: timedelta, most: timedelta
) -> None:
    pause = pause_after(1, Outcome(status, retry_after), NOW)
    assert pause is not None
    assert least <= pause <= most


@pytest.mark.parametrize("error", [OverflowError, TypeError, ValueError])
def test_no_error_of_the_parser_keeps_a_try_from_being_written_down(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> datetime:
        raise error

    monkeypatch.setattr(deliveries, "parsedate_to_datetime", fail)
    assert (pause_after(1, Outcome(503, "soon"), NOW) or HOUR) < timedelta(seconds=6)


def test_time_that_is_asked_for_does_not_shorten_the_schedule() -> None:
    assert (pause_after(5, Outcome(503, "1"), NOW) or timedelta()) > 4 * HOUR


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_2xx_is_delivered(status: int) -> None:
    came = recorded(rows.callback(attempt_count=3), Outcome(status), NOW)
    assert (came.event_type, came.delivered_at, came.given_up_at) == (EventType.CALLBACK_SENT, NOW, None)
    assert (came.error, came.next_attempt_at) == (None, None)
    assert came.data == {"callback_id": None, "attempt": 3, "status": status}


@pytest.mark.parametrize("outcome", [Outcome(100), Outcome(302), Outcome(404), Outcome(500), Outcome(error="lost")])
def test_anything_else_is_tried_again(outcome: Outcome) -> None:
    came = recorded(rows.callback(attempt_count=1), outcome, NOW)
    assert (came.event_type, came.delivered_at, came.given_up_at) == (EventType.CALLBACK_FAILED, None, None)
    assert came.next_attempt_at is not None
    assert came.data["next_attempt_at"] == came.next_attempt_at.isoformat()
    assert came.data["error"] == came.error
    assert came.data.get("status") == outcome.status


@pytest.mark.parametrize(("attempt", "outcome"), [(1, Outcome(410)), (10, Outcome(500)), (11, Outcome(error="lost"))])
def test_what_is_gone_or_was_tried_often_enough_is_given_up(attempt: int, outcome: Outcome) -> None:
    came = recorded(rows.callback(attempt_count=attempt), outcome, NOW)
    assert (came.event_type, came.given_up_at, came.next_attempt_at) == (EventType.CALLBACK_FAILED, NOW, None)
    assert came.data["next_attempt_at"] is None


def test_a_redirect_is_told_as_one() -> None:
    assert recorded(rows.callback(attempt_count=1), Outcome(302), NOW).error == "status 302: redirects are not followed"
