"""Items of the catalog, as the workers of the tests would have registered them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase


def put_item(database: TestDatabase, collection_id: str, item_id: str, assets: Mapping[str, Any] | None = None) -> None:
    """Write an item, in a collection that may be there from a test before."""
    item = {
        "id": item_id,
        "type": "Feature",
        "collection": collection_id,
        "geometry": {"type": "Point", "coordinates": [0, 0]},
        "properties": dict.fromkeys(("datetime", "updated"), datetime.now(UTC).isoformat()),
        "assets": assets or {},
    }
    with psycopg.connect(database.url()) as admin:
        admin.execute("SET search_path = pgstac, public")
        admin.execute("SELECT upsert_collection(%s)", [Jsonb({"id": collection_id, "type": "Collection"})])
        admin.execute("SELECT create_item(%s)", [Jsonb(item)])
