"""Pages and their cursors."""

import base64
import json
from datetime import UTC, datetime

import pytest
from pydantic import AwareDatetime

from graticule.core.errors import InvalidInput
from graticule.http.paging import Cursors

Key = tuple[datetime, str]
CURSORS: Cursors[Key] = Cursors(tuple[AwareDatetime, str])
NUMBERS: Cursors[int] = Cursors(int)
TIME = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)


@pytest.mark.parametrize("name", ["", "job", "jöb '1' 🗺", "a" * 64])
def test_a_cursor_leads_back_to_its_key_to_the_microsecond(name: str) -> None:
    cursor = CURSORS.write((TIME, name))
    assert CURSORS.read(cursor) == (TIME, name)
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_no_cursor_is_the_first_page() -> None:
    assert CURSORS.read(None) is None


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *["", "x", "%%%", "ключ", "a" * 1000, NUMBERS.write(7)],
        *map(encoded, ([], None, {"a": 1}, ["yesterday", "a"], [TIME.isoformat(), 1, 2])),
        encoded([TIME.replace(tzinfo=None).isoformat(), "a"]),
    ],
)
def test_a_cursor_that_this_list_has_not_given_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        CURSORS.read(cursor)


def test_a_page_has_a_next_one_only_if_there_is_more() -> None:
    assert NUMBERS.page([1, 2], 3, int).next is None
    assert NUMBERS.page([1, 2, 3], 3, int).next is None
    page = NUMBERS.page([1, 2, 3, 4], 3, int)
    assert page.items == [1, 2, 3]
    assert NUMBERS.read(page.next) == 3
    empty: list[int] = []
    assert NUMBERS.page(empty, 3, int).model_dump() == {"items": [], "next": None}
