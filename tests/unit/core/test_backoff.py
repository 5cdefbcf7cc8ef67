"""Pauses between attempts: they grow, and not without bound."""

from itertools import pairwise

from graticule.core.backoff import FIRST_SECONDS, LONGEST_SECONDS, SPREAD, Backoff


def test_pauses_grow_up_to_a_bound_until_an_attempt_succeeds() -> None:
    backoff = Backoff()
    pauses = [backoff.next() for _ in range(20)]
    assert FIRST_SECONDS * (1 - SPREAD) <= pauses[0] <= FIRST_SECONDS * (1 + SPREAD)
    assert all(later > earlier for earlier, later in pairwise(pauses[:4]))
    assert max(pauses) <= LONGEST_SECONDS * (1 + SPREAD)
    assert min(pauses[10:]) >= LONGEST_SECONDS * (1 - SPREAD)
    backoff.succeeded()
    assert backoff.next() < FIRST_SECONDS * 2


def test_those_who_begin_together_do_not_come_back_together() -> None:
    assert len({Backoff().next() for _ in range(50)}) > 25
