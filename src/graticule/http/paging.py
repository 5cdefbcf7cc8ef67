"""Lists in pages: `{"items": [...], "next": cursor or null}`; a page begins after the row that its cursor names."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from graticule.core.errors import InvalidInput

MOST_ITEMS: Final = 500

T = TypeVar("T")
K = TypeVar("K")

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items a page has at most.")]
Cursor = Annotated[
    str | None, Query(max_length=1024, description="`next` of the page before; without one, the first page.")
]


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(None, description="The cursor of the next page; null on the last one.")


class Cursors(Generic[K]):
    """Writes and reads the cursors of one list; a cursor is opaque to its caller."""

    def __init__(self, key: Any) -> None:
        self._adapter: TypeAdapter[K] = TypeAdapter(key)

    def page(self, rows: Sequence[T], limit: int, key: Callable[[T], K]) -> Page[T]:
        """Make a page of `limit` items from one row more than that, if there are so many."""
        kept = list(rows[:limit])
        return Page(items=kept, next=self.write(key(kept[-1])) if len(rows) > limit else None)

    def write(self, key: K) -> str:
        """Give the cursor of a key."""
        return base64.urlsafe_b64encode(self._adapter.dump_json(key)).decode().rstrip("=")

    def read(self, cursor: str | None) -> K | None:
        """Give the key of a cursor; `InvalidInput` unless it is one of this list's."""
        if cursor is None:
            return None
        try:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            return self._adapter.validate_json(text)
        except (binascii.Error, ValueError, ValidationError) as error:
            raise InvalidInput(
                "The cursor is not one that this list has given.", hint="Send `next` of the page before, unchanged."
            ) from error
