"""docs/reference/catalogue.md shows an item whose fields are those of the items that are made of tables."""

import json
from typing import Any

from tests.unit.docs.pages import blocks, page
from tests.unit.handlers.stac.outputs import TIMES
from tests.unit.handlers.stac.table_outputs import geoparquet, table_inputs

from graticule.handlers.stac.items import Stored
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.stac.tables import table_item


def made() -> dict[str, Any]:
    given = TableInputs.model_validate(table_inputs(geoparquet=geoparquet()))
    return table_item(given, {key: Stored(file.path, 5, file.checksum) for key, file in given.exports.items()}, TIMES)


def test_the_item_of_the_page_is_like_one_that_is_made() -> None:
    (shown,) = blocks(page("catalogue.md"), "json")
    assert strange(json.loads(shown), made(), "item") == []


def strange(shown: Any, ours: Any, place: str) -> list[str]:
    """Give the places where what is shown has a field or a type that ours has not."""
    if isinstance(shown, dict) and isinstance(ours, dict):
        missing = [f"{place}.{name}" for name in shown if name not in ours]
        return missing + [each for name in shown.keys() & ours for each in strange(shown[name], ours[name], name)]
    return [] if type(shown) is type(ours) else [place]
