"""Names with a signature are used again while they hold for long enough, and only for the same content."""

from itertools import count

import pytest

from graticule.serve.tiles import signed_names
from graticule.serve.tiles.signed_names import KEPT_SECONDS, SignedNames


def test_a_signed_name_is_used_again_for_a_while() -> None:
    now, numbers = [0.0], count()
    names = SignedNames(lambda path: f"/vsicurl/https://a.test/{path}?sig={next(numbers)}", clock=lambda: now[0])
    first = names.name("one", "silver/x")
    now[0] = KEPT_SECONDS - 1
    assert names.name("one", "silver/x") == first
    assert len({first, names.name("two", "silver/x"), names.name("one", "silver/y")}) == 3
    now[0] = KEPT_SECONDS
    assert names.name("one", "silver/x") != first


def test_the_name_of_a_file_is_looked_up_each_time() -> None:
    numbers = count()
    names = SignedNames(lambda path: f"/files/{path}/{next(numbers)}")
    assert names.name("one", "x") != names.name("one", "x")


def test_not_too_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(signed_names, "MOST_KEPT", 2)
    names = SignedNames(lambda path: f"/vsicurl/{path}?{next(numbers)}")
    first = names.name("one", "a")
    for path in ("b", "c"):
        names.name("one", path)
    assert names.name("one", "a") != first
