"""The whole service in this process, for both audiences, on a database and a storage that a test has filled.

Assets share a few files and tables. Each tells by its data of which version and revision it is, and in which zone it
lies: `mark_of`.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final, LiteralString
from urllib.parse import unquote

import numpy as np
import orjson
import psycopg
import rasterio
from affine import Affine
from fastapi import FastAPI
from psycopg import sql
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase
from tests.integration.serve.access_table import (
    APPROVED,
    INTERNAL,
    ORDINALS,
    PUBLIC,
    REJECTED,
    UNCLEARED,
    Asset,
    Version,
)

from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.core.models import ApiClient, AssetRevision, AssetVersion, GeospatialAsset
from graticule.core.models.platform import ClientRole, DataType
from graticule.core.table import Row
from graticule.serve.app import create_serve
from graticule.services.access import key_hash

NOW: Final = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
HOST: Final = "served"
REVISIONS: Final = (1, 2)
BOX: Final = (-62.0, 14.0, -61.0, 15.0)
INSIDE: Final = (-61.5, 14.5)
TILE: Final = "WebMercatorQuad/8/84/117"  # it lies wholly inside of the box
SHARED: Final = "shared"  # the collection of all assets that have none of their own
OF_PUBLIC: Final = "-public"
SECRET: Final = "canary-3f1c9d"  # what no answer may show
ADMIN_KEY: Final = "the-admin-key-of-the-settings"
WORKER_TOKEN: Final = "the-token-of-the-workers"


def mark_of(audience: Audience, ordinal: int, revision: int) -> int:
    """Give the number that stands in the data of a revision, in an audience's zone."""
    return 100 * (audience is not INTERNAL) + 10 * (ordinal + 1) + revision


def blob_of(ordinal: int, revision: int, container: str = "silver") -> str:
    return f"{container}/{SHARED}/v{ordinal}/r{revision}/cogs/data.tif"


def table_of(ordinal: int, revision: int) -> str:
    return f"{SHARED}_v{ordinal}_r{revision}"


def item_of(asset_id: str, ordinal: int, revision: int) -> str:
    """Return the id under which a revision is catalogued; in service it has that of the first one."""
    return f"{asset_id}-v{ordinal}" + (f"-r{revision}" if revision > 1 else "")


# The callers


def _key(name: str) -> str:
    return "gtc_" + name.replace(" ", "-").ljust(43, "-")


@dataclass(frozen=True)
class Role:
    """Someone who calls, and what it shows."""

    name: str
    headers: Mapping[str, str] = field(default_factory=dict)
    is_known: bool = True
    is_reviewer: bool = False


def _client(name: str, *, is_known: bool = True, is_reviewer: bool = False) -> Role:
    return Role(name, {"x-api-key": _key(name)}, is_known, is_reviewer)


NOBODY: Final = Role("nobody", is_known=False)
REVIEWER: Final = _client("reviewer", is_reviewer=True)
ROLES: Final = (
    NOBODY,
    _client("submitter"),
    _client("submitter of another platform"),
    REVIEWER,
    _client("operator"),
    _client("admin", is_reviewer=True),
    Role("the admin key", {"x-api-key": ADMIN_KEY}, is_reviewer=True),
    _client("worker"),
    Role("the worker token", {"authorization": f"Bearer {WORKER_TOKEN}"}),
    _client("an inactive key", is_known=False),
    _client("a key of nobody", is_known=False),
    Role("no key at all", {"x-api-key": "x"}, is_known=False),
    Role("a wrong token", {"authorization": "Bearer x"}, is_known=False),
    Role("a broken header", {"authorization": "Basic ???"}, is_known=False),
    Role("two credentials", {"x-api-key": _key("reviewer"), "authorization": "Bearer x"}, is_known=False),
)
CLIENTS: Final[Mapping[str, tuple[ClientRole, str | None, bool]]] = {
    "submitter": (ClientRole.SUBMITTER, "ddh", True),
    "submitter of another platform": (ClientRole.SUBMITTER, "arcgis", True),
    "reviewer": (ClientRole.REVIEWER, None, True),
    "operator": (ClientRole.OPERATOR, None, True),
    "admin": (ClientRole.ADMIN, None, True),
    "worker": (ClientRole.WORKER, None, True),
    "an inactive key": (ClientRole.REVIEWER, None, False),
}


# What is there


class World:
    """Writes rows, files and tables."""

    def __init__(self, database: TestDatabase, folder: Path) -> None:
        self.database = database
        self.folder = folder

    def write_clients(self) -> None:
        """Write those who have a key."""
        rows = [
            ApiClient.model_validate(
                {"client_id": name.replace(" ", "-"), "display_name": name, "key_hash": key_hash(_key(name))}
                | {"roles": [role], "platform_id": platform, "is_active": is_active}
                | {"created_at": NOW, "updated_at": NOW}
            )
            for name, (role, platform, is_active) in CLIENTS.items()
        ]
        with self.connected() as connection:
            _insert(connection, rows)

    def write_data(self, ordinals: Sequence[int] = ORDINALS, revisions: Sequence[int] = REVISIONS) -> None:
        """Write the files and tables that the assets share."""
        for audience, ordinal, revision in product(Audience, ordinals, revisions):
            container = "silver" if audience is INTERNAL else "external"
            value = mark_of(audience, ordinal, revision)
            write_raster(self.folder / "storage" / blob_of(ordinal, revision, container), value)
        with self.connected() as connection:
            for audience, ordinal, revision in product(Audience, ordinals, revisions):
                schema = "geo" if audience is INTERNAL else "external"
                write_table(connection, schema, table_of(ordinal, revision), mark_of(audience, ordinal, revision))

    def write_assets(self, assets: Sequence[Asset], own_collections: Iterable[str] = ()) -> None:
        """Write assets with all that is known of them; those that are named have collections of their own."""
        own = frozenset(own_collections)
        collections = {asset.asset_id: asset.asset_id if asset.asset_id in own else SHARED for asset in assets}
        with self.connected() as connection:
            _insert(connection, [_asset(asset) for asset in assets])
            pairs = [(asset, version) for asset in assets for version in asset.versions]
            _insert(connection, [_version(asset, each, collections[asset.asset_id]) for asset, each in pairs])
            logged = [
                _revision(asset, each, revision, collections[asset.asset_id])
                for asset, each in pairs
                for revision in range(1, each.story.revision)
            ]
            _insert(connection, logged)
            self.write_items(connection, assets, collections)

    def write_items(
        self, connection: psycopg.Connection[Any], assets: Sequence[Asset], collections: Mapping[str, str]
    ) -> None:
        """Write the items of all revisions of rasters that were made, and those of the copies."""
        connection.execute("SET search_path = pgstac, public")
        items: dict[str, list[dict[str, Any]]] = {}
        for asset in [asset for asset in assets if asset.data_type is DataType.RASTER]:
            name = collections[asset.asset_id]
            for version in asset.versions:
                for revision in version.story.made:
                    items.setdefault(name, []).append(item(asset.asset_id, version.ordinal, revision, name))
                if version.copies.exported is not None:
                    public = item(asset.asset_id, version.ordinal, version.copies.exported, f"{name}{OF_PUBLIC}")
                    items.setdefault(f"{name}{OF_PUBLIC}", []).append(public)
        for collection_id, documents in items.items():
            connection.execute("SELECT create_collection(%s)", [Jsonb(collection(collection_id))])
            connection.execute("SELECT create_items(%s)", [Jsonb(documents)])

    def connected(self) -> psycopg.Connection[Any]:
        """Give a connection of the administrator."""
        return psycopg.connect(self.database.url(), autocommit=True)

    def settings(self, **more: Any) -> Settings:
        """Give the settings of the service."""
        given = {"home": self.folder, "admin_key": ADMIN_KEY, "worker_token": WORKER_TOKEN, **more}
        return Settings.model_validate(given)


def write_raster(path: Path, value: int) -> None:
    """Write a cloud-optimized GeoTIFF of one value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 256
    transform = Affine((BOX[2] - BOX[0]) / size, 0, BOX[0], 0, (BOX[1] - BOX[3]) / size, BOX[3])
    profile = {"driver": "COG", "dtype": "uint8", "count": 1, "width": size, "height": size, "crs": "EPSG:4326"}
    with rasterio.open(path, "w", **profile, transform=transform, blocksize=256, compress="deflate") as file:
        file.write(np.full((1, size, size), value, dtype="uint8"))


def write_table(connection: psycopg.Connection[Any], schema: str, name: str, mark: int) -> None:
    """Write a live table of one feature, with the owner and the reader that it would have."""
    table = sql.Identifier(schema, name)
    audience = INTERNAL if schema == "geo" else Audience.EXTERNAL
    connection.execute("SET ROLE graticule_owner")
    make: LiteralString = "CREATE TABLE {} (fid integer PRIMARY KEY, mark integer, geom geometry(Point, 4326))"
    fill: LiteralString = "INSERT INTO {} VALUES (1, %s, ST_Point(%s, %s, 4326))"
    connection.execute(sql.SQL(make).format(table))
    connection.execute(sql.SQL(fill).format(table), [mark, *INSIDE])
    reader = sql.Identifier(f"graticule_serve_{audience}")
    connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(table, reader))


def _insert(connection: psycopg.Connection[Any], rows: Sequence[Row]) -> None:
    if rows:
        table = type(rows[0]).table
        statement: LiteralString = "INSERT INTO {0} SELECT * FROM jsonb_populate_recordset(NULL::{0}, %s)"
        name = sql.Identifier(table.schema, table.name)
        documents = [row.model_dump(mode="json") for row in rows]
        stored = [
            {column: row.stored(column) for column in ("approval_state",) if hasattr(row, column)} for row in rows
        ]
        connection.execute(
            sql.SQL(statement).format(name),
            [Jsonb([document | kept for document, kept in zip(documents, stored, strict=True)])],
        )


def _who(done: str, when: bool) -> dict[str, Any]:
    return {f"{done}_at": NOW, f"{done}_by": "rita"} if when else {}


def _asset(asset: Asset) -> GeospatialAsset:
    values = {
        "asset_id": asset.asset_id,
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": asset.asset_id, "resource_id": "r"},
        "data_type": asset.data_type,
        "clearance_state": asset.clearance,
        **_who("cleared", asset.clearance is not UNCLEARED),
        **_who("made_public", asset.clearance is PUBLIC),
        "url_mode": asset.url_mode,
        "latest_approved_version_ordinal": _latest(asset),
        **_who("deleted", asset.is_unpublished),
        **_TIMES,
    }
    return GeospatialAsset.model_validate(values)


_TIMES: Final = {"created_at": NOW, "updated_at": NOW}


def _latest(asset: Asset) -> int | None:
    live = [each for each in asset.versions if not each.story.is_deleted and not asset.is_unpublished]
    return max((each.ordinal for each in live if each.story.approved is not None), default=None)


def _version(asset: Asset, version: Version, collection_id: str) -> AssetVersion:
    story, copies, ordinal = version.story, version.copies, version.ordinal
    decided = story.approval in {APPROVED, REJECTED}
    values = {
        "asset_id": asset.asset_id,
        "version_ordinal": ordinal,
        "version_label": f"V{ordinal}",
        "approval_state": story.approval,
        **({"reviewer": "rita", "reviewed_at": NOW} if decided else {}),
        "rejection_reason": "clouds" if story.approval is REJECTED else None,
        "revoked_at": NOW if story.is_revoked else None,
        "approved_revision": story.approved,
        "first_approved_at": NOW if story.was_approved else None,
        "processing_state": story.processing,
        "last_error": "it failed" if story.processing == "failed" else None,
        "revision": story.revision,
        **(_outputs(asset, ordinal, max(story.made), collection_id) if story.made else {}),
        "external_blob_path": _external_blob(asset, version),
        "export_run_id": "run" if copies.exported else None,
        "exported_revision": copies.exported,
        "first_exported_at": NOW if copies.was_exported else None,
        **_who("deleted", story.is_deleted or asset.is_unpublished),
        **_TIMES,
    }
    return AssetVersion.model_validate(values)


def _external_blob(asset: Asset, version: Version) -> str | None:
    exported = version.copies.exported
    is_file = asset.data_type is DataType.RASTER
    return blob_of(version.ordinal, exported, "external") if exported and is_file else None


def _outputs(asset: Asset, ordinal: int, revision: int, collection_id: str) -> dict[str, Any]:
    is_raster = asset.data_type is DataType.RASTER
    made = {"blob_path": blob_of(ordinal, revision)} if is_raster else {"table_name": table_of(ordinal, revision)}
    ids = {"stac_item_id": item_of(asset.asset_id, ordinal, revision), "stac_collection_id": collection_id}
    return {**made, **(ids if is_raster else {}), "bbox": list(BOX)}


def _revision(asset: Asset, version: Version, revision: int, collection_id: str) -> AssetRevision:
    story = version.story
    is_made = revision in story.made
    values = {
        "asset_id": asset.asset_id,
        "version_ordinal": version.ordinal,
        "revision": revision,
        "outputs": _outputs(asset, version.ordinal, revision, collection_id) if is_made else {},
        "approval_state": APPROVED if story.approved else REJECTED,
        "clearance_state": asset.clearance,
        "reviewer": "rita",
        "created_at": NOW,
        "superseded_at": NOW,
    }
    return AssetRevision.model_validate(values)


def collection(collection_id: str) -> dict[str, Any]:
    """Give a collection."""
    extent = {"spatial": {"bbox": [list(BOX)]}, "temporal": {"interval": [[NOW.isoformat(), None]]}}
    told = {"id": collection_id, "description": collection_id, "license": "other", "extent": extent, "links": []}
    return {"type": "Collection", "stac_version": "1.1.0", **told}


def item(asset_id: str, ordinal: int, revision: int, collection_id: str) -> dict[str, Any]:
    """Give the item of a revision."""
    west, south, east, north = BOX
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    of_version = {"platform:asset_id": asset_id, "platform:version_ordinal": ordinal, "platform:revision": revision}
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "id": item_of(asset_id, ordinal, revision),
        "collection": collection_id,
        "geometry": {"type": "Polygon", "coordinates": [corners]},
        "bbox": list(BOX),
        "properties": {"datetime": NOW.isoformat(), **of_version},
        "assets": {"data": {"href": blob_of(ordinal, revision), "roles": ["data"]}},
        "links": [],
    }


# The service


@dataclass(frozen=True)
class Given:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return orjson.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")


class Service:
    """A running service, asked without a network in between, and without a client that takes longer than it does."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._callers = 0

    async def get(self, path: str, headers: Mapping[str, str] | None = None, **more: Any) -> Given:
        """Ask; each request comes from another address, since each address may be wrong only so often."""
        return await self.ask("GET", path, headers, **more)

    async def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Given:
        """Send a request with this path and query, as they stand."""
        self._callers += 1
        raw, _, query = path.partition("?")
        given = {"host": HOST, **(headers or {})}
        told = [(name.encode(), text.encode("latin-1")) for name, text in given.items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),  # as servers do it: what is no text becomes a sign for that
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": told,
            "client": (f"10.{self._callers >> 16 & 255}.{self._callers >> 8 & 255}.{self._callers & 255}", 1),
            "server": (HOST, 80),
        }
        return await _answered(self.app, scope, body)


async def _answered(app: FastAPI, scope: dict[str, Any], body: bytes) -> Given:
    answer: dict[str, Any] = {"body": b""}
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.update(message)
        elif message["type"] == "http.response.body":
            answer["body"] += message.get("body", b"")

    await app(scope, receive, send)
    headers = {name.decode().lower(): text.decode() for name, text in answer["headers"]}
    return Given(answer["status"], headers, answer["body"])


@asynccontextmanager
async def serving(world: World, **settings: Any) -> AsyncIterator[dict[Audience, Service]]:
    """Give the services of both audiences."""
    async with AsyncExitStack() as stack:
        services = {}
        for audience in Audience:
            app = create_serve(world.settings(**settings), world.database.url(audience.role), audience)
            await stack.enter_async_context(app.router.lifespan_context(app))
            services[audience] = Service(app)
        yield services
