"""Durations of ISO 8601, and what a description of a queue must not say."""

import pytest
from tests.servicebus_emulator.descriptions import duration_of, options_of, seconds_of

BODY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><content><QueueDescription'
    ' xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{}</QueueDescription></content></entry>'
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT5M", 300), ("P1D", 86_400), ("P1DT1H1M1.5S", 90_061.5), ("PT0.25S", 0.25), ("PT300S", 300)],
)
def test_durations_are_read_and_told(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    assert seconds_of(duration_of(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "5M", "P1M", "PT1", "P" + "9" * 50 + "D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds_of(text)


@pytest.mark.parametrize(
    "body",
    [
        "no XML",
        "<entry/>",
        BODY.format("<LockDuration>PT6M</LockDuration>"),
        BODY.format("<LockDuration>PT0S</LockDuration>"),
        BODY.format("<MaxDeliveryCount>0</MaxDeliveryCount>"),
        BODY.format("<MaxDeliveryCount>many</MaxDeliveryCount>"),
    ],
)
def test_what_cannot_be_is_refused(body: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has a reason of its own
        options_of(body.encode())
