"""Deadlines come up in their order, and those that were called off never do."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.servicebus_emulator.deadlines import Deadlines


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 50))), max_size=200), st.integers(0, 50)
)
def test_the_due_ones_are_taken_in_order(steps: list[tuple[int, int | None]], now: int) -> None:
    deadlines: Deadlines[int] = Deadlines()
    expected: dict[int, int] = {}
    for key, when in steps:
        if when is None:
            deadlines.drop(key)
            expected.pop(key, None)
        else:
            deadlines.set(key, when)
            expected[key] = when
    assert deadlines.next() == min(expected.values(), default=None)
    taken = list(deadlines.take_due(now))
    assert sorted(taken) == sorted(key for key, when in expected.items() if when <= now)
    assert [expected[key] for key in taken] == sorted(expected[key] for key in taken)
    assert len(deadlines) == len(expected) - len(taken)


def test_what_was_called_off_is_forgotten() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key in range(10_000):
        deadlines.set(key, key)
        deadlines.drop(key)
    assert len(deadlines._heap) < 100
