import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.core.trace_context import (
    TraceContext,
    continued,
    current_trace,
    current_traceparent,
    parse_traceparent,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [(VALID, True), (f"00-{TRACE}-{SPAN}-00", False), (f"00-{TRACE}-{SPAN}-03", True), (f"cc-{TRACE}-{SPAN}-01", True)],
)
def test_a_header_names_a_place_in_a_trace(header: str, is_sampled: bool) -> None:
    assert parse_traceparent(header) == TraceContext(TRACE, SPAN, is_sampled=is_sampled)


def test_a_later_version_may_say_more() -> None:
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-01-what-is-to-come") == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00",
        f"{VALID}-more",
        f"{VALID}\n",
        f" {VALID}",
        VALID.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0x",
        f"01-{TRACE}-{SPAN}-01-{'x' * 10_000}",
        f"00-{'٣' * 32}-{SPAN}-01",
        "'; DROP TABLE dag_jobs; --",
    ],
)
def test_what_is_no_header_is_no_trace(header: str | None) -> None:
    assert parse_traceparent(header) is None


@settings(max_examples=examples(100))
@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_what_is_read_can_be_written_and_read_again(header: str) -> None:
    found = parse_traceparent(header)
    assert found is None or parse_traceparent(found.traceparent) == found


def test_what_is_done_in_a_block_belongs_to_its_trace_and_to_no_other() -> None:
    with continued(parse_traceparent(VALID)):
        assert current_traceparent() == VALID
        with continued(None):
            assert current_trace() is None
        assert current_traceparent() == VALID
    assert current_traceparent() is None
