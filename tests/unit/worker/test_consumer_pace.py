"""How many tasks a worker takes in advance."""

from graticule.worker.consumer import MOST_AHEAD, Pace


def test_nothing_is_taken_in_advance_of_what_is_not_known() -> None:
    assert Pace().ahead(64) == 0


def test_of_slow_tasks_none_and_of_quick_ones_a_tenth_of_a_second() -> None:
    slow, quick, quickest = Pace(), Pace(), Pace()
    slow.note(10)
    quick.note(0.1)
    quickest.note(0)
    assert (slow.ahead(64), quick.ahead(64), quickest.ahead(64)) == (0, 64, MOST_AHEAD)


def test_the_pace_follows_what_tasks_take_lately() -> None:
    pace = Pace()
    pace.note(0.001)
    for _ in range(60):
        pace.note(10)
    assert pace.ahead(64) == 0
