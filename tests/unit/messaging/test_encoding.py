"""What is written as AMQP is what Microsoft's client reads."""

from datetime import UTC, datetime

from azure.servicebus._pyamqp._decode import decode_payload  # its own decoder: what it reads, a receiver gets
from hypothesis import given
from hypothesis import strategies as st

from graticule.messaging.servicebus.encoding import encoded

TEXTS = st.text(max_size=400)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - they have one


@given(st.binary(max_size=70_000), st.tuples(TEXTS, TEXTS, TEXTS), st.integers(60, 14 * 86_400), st.none() | MOMENTS)
def test_every_part_of_a_message_arrives(
    body: bytes, texts: tuple[str, str, str], seconds: int, not_before: datetime | None
) -> None:
    written = encoded(
        body,
        message_id=texts[0],
        correlation_id=texts[1],
        subject=texts[2],
        seconds_to_live=seconds,
        not_before=not_before,
    )
    read = decode_payload(memoryview(written))
    assert read.header is not None
    assert read.properties is not None
    told = (read.properties.message_id, read.properties.correlation_id, read.properties.subject)
    assert told == tuple(text.encode() for text in texts)
    assert (read.properties.content_type, read.header.ttl) == (b"application/json", seconds * 1000)
    if not_before is None:
        assert read.message_annotations is None
    else:
        assert read.message_annotations == {b"x-opt-scheduled-enqueue-time": round(not_before.timestamp() * 1000)}
    assert read.data == [body]
