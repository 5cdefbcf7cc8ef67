"""Overviews: vector tiles prepared in advance where a table holds more features than a live tile can show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any, ClassVar, Final

from psycopg import ProgrammingError, errors, sql

from graticule.core.errors import GraticuleError, InvalidInput
from graticule.core.ids import JobId
from graticule.core.tile_counts import COUNT
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries, load_queries
from graticule.repositories.tile_shapes import LAYER, TILE_BUFFER, TILE_PIXELS, TILE_RESOLUTION, tile_geometry

LONGEST_ID: Final = 40  # in the names of tables
OVERVIEW_COMMENT: Final = "Tiles. "  # and what the table says of itself: so it shows of which table they are
MAX_LIVE_FEATURES: Final = 10_000  # a tile of more features is prepared
MAX_LIVE_GEOMETRY_BYTES: Final = 48 * 1024**2  # likewise one of larger shapes
MAX_TILE_BYTES: Final = 1_970_000
MAX_DRAWN: Final = 30_000  # features of a prepared tile that are drawn themselves
MAX_ZOOM: Final = 20  # above it all tiles are made live
MAX_ZOOM_BY_BYTES: Final = 10
# Features of the tiles of all zooms, each counted in each tile: those of a map of small ones are in about one at each.
MAX_MEMBERS_PER_ROW: Final = 24
MAX_MORE_TILES: Final = 200  # beyond that: full ones of features that are in many
ROWS_AT_ONCE: Final = 100_000
OVERHEAD_BYTES: Final = 45  # of a feature in a tile, without its attributes: a small shape
STATEMENT_TIMEOUT: Final = "30min"
WORK_MEMORY: Final = "64MB"  # of each sort and hash of a statement
NEVER: Final = 99  # a zoom that there is not
WORLD: Final = 2 * 20037508.342789244  # metres around the equator, as Mercator has them
EDGE: Final = 1 - 2.0**-40  # the east and the south belong to the last pixel
LEFT_OUT_PIXELS: Final = 16.0  # larger features that are left out are not drawn pixel by pixel


class OverviewFailed(GraticuleError):
    """PostGIS cannot draw a feature of the table."""

    code = "overview_failed"


@dataclass(frozen=True, slots=True)
class OverviewSource:
    """A table of which tiles are made."""

    schema: str
    table: str
    feature_id: str
    geometry: str
    attributes: Sequence[str]  # the columns that tiles have


@dataclass(frozen=True, slots=True)
class RowSizes:
    """How many rows a table has, and how large they are."""

    row_count: int
    attribute_bytes: float
    geometry_bytes: int
    first: int
    last: int

    @property
    def max_live_features(self) -> int:
        """How many features a tile may have that is made live."""
        return max(1, min(MAX_LIVE_FEATURES, int(MAX_TILE_BYTES / 1.3 / (self.attribute_bytes + OVERHEAD_BYTES))))

    @property
    def max_members(self) -> int:
        """How often the features may be in a tile that is looked at, in all zooms together."""
        return MAX_MEMBERS_PER_ROW * self.row_count + MAX_MORE_TILES * self.max_live_features

    @property
    def is_small(self) -> bool:
        """Whether every tile of the table can be made live."""
        return self.row_count <= self.max_live_features and self.geometry_bytes <= MAX_LIVE_GEOMETRY_BYTES


def overview_name(table: str) -> str:
    """Return the name of the table that holds the prepared tiles of a table, in the same schema."""
    return f"tiles_{md5(table.encode(), usedforsecurity=False).hexdigest()}"


def staging_name(job_id: JobId) -> str:
    """Return the name of a job's staging table, with which all names begin of what belongs to it.

    PostgreSQL cuts names after 63 bytes. An id that is a digest of the parameters is longer than what fits.
    """
    return f"staging_{job_id[:LONGEST_ID]}"


class OverviewBuilder:
    """Makes the overview of a job's staging table, step by step, in one transaction that belongs to the caller."""

    queries: ClassVar[Queries] = load_queries("overviews.sql")

    def __init__(self, connection: Connection, job_id: JobId, source: OverviewSource) -> None:
        self._connection = connection
        self._job_id = job_id
        self._source = source
        self._sizes = RowSizes(0, 0, 0, 0, 0)

    async def lock(self) -> None:
        """Let nobody else make this overview, or drop its table, until the transaction ends."""
        await self._run("lock_overview", job_id=self._job_id, timeout=STATEMENT_TIMEOUT, memory=WORK_MEMORY)

    async def measure(self) -> bool:
        """Measure the table; False when it needs no overview."""
        sizes = [f"pg_column_size({sql.Identifier(name).as_string()})" for name in self._source.attributes]
        attribute_bytes = " + ".join(["0", *(f"coalesce({size}, 0)" for size in sizes)])
        found = await self._run("measure_rows", attribute_bytes=sql.SQL(attribute_bytes))
        self._sizes = RowSizes(**found)
        return not self._sizes.is_small

    async def find_dense_tiles(self) -> list[int]:
        """Find the tiles that are to be prepared, and return how many there are of each zoom.

        Large features that lie upon each other are in four times as many tiles at each zoom: where these are too many,
        tiles of that zoom and of those above it are made live.
        """
        for name in ("overview", "boxes", "burnt", "runs"):
            await self._run("drop", table=self._name(name))
        await self._run("create_boxes", boxes=self._name("boxes"))
        await self._run("create_tiles")
        await self._run("store_plainly")
        found: list[int] = []
        left = self._sizes.max_members
        for zoom in range(MAX_ZOOM + 1):
            if zoom:
                left -= await self._create_members(zoom, left)
            count = await self._find_dense(zoom) if left >= 0 else 0
            if not count:
                await self._run("drop", table=self._members(zoom))
                break
            await self._run("index_members", members=self._members(zoom), zoom=sql.Literal(zoom))
            found.append(count)
        if not found:
            await self._run("drop", table=self._name("overview"))
        return found

    async def _create_members(self, zoom: int, most: int) -> int:
        """Collect the features of the tiles of a zoom, up to one more than `most`, and return how many they are."""
        parts = {"children": self._members(zoom), "most": sql.Literal(most + 1), **self._parents(zoom - 1)}
        await self._run("create_members", **parts)
        return int((await self._run("count_members", members=self._members(zoom)))["found"])

    async def _find_dense(self, zoom: int) -> int:
        await self._run(
            "find_dense",
            members=self._members(zoom),
            zoom=zoom,
            max_features=self._sizes.max_live_features,
            max_bytes=MAX_LIVE_GEOMETRY_BYTES,
            max_zoom_by_bytes=MAX_ZOOM_BY_BYTES,
        )
        return int((await self._run("count_dense", zoom=zoom))["found"])

    def fid_ranges(self) -> Iterator[tuple[int, int]]:
        """Return the ranges of feature ids that are burnt one after the other."""
        for first in range(self._sizes.first, self._sizes.last + 1, ROWS_AT_ONCE):
            yield first, first + ROWS_AT_ONCE

    async def begin_burning(self) -> None:
        """Prepare for `burn`."""
        await self._run("index_boxes", boxes=self._name("boxes"))
        await self._run("create_burnt", burnt=self._name("burnt"))
        await self._run("create_runs", runs=self._name("runs"))
        await self._run("index_runs", runs=self._name("runs"))
        await self._run("analyze", table=self._name("runs"))

    async def burn(self, first: int, after: int, max_zoom: int) -> None:
        """Burn the small features of a range of ids into the pixels that they touch."""
        await self._run(
            "burn",
            burnt=self._name("burnt"),
            boxes=self._name("boxes"),
            zoom=sql.Literal(max_zoom),
            pixel=self._pixel(),
            first=first,
            after=after,
        )

    async def create_level(self, zoom: int, *, is_highest: bool) -> None:
        """Collect what is merged at a zoom; those above it come first."""
        above = self._level(zoom + 1)
        and_above = sql.SQL("") if is_highest else self._composed("and_above", above=above)
        await self._run(
            "create_level",
            level=self._level(zoom),
            burnt=self._name("burnt"),
            zoom=sql.Literal(zoom),
            and_above=and_above,
        )
        await self._run("index_level", level=self._level(zoom))
        await self._run("analyze", table=self._level(zoom))
        await self._run("drop", table=above)

    async def dense_tiles(self, zoom: int) -> list[tuple[int, int]]:
        """Return the tiles of a zoom that are to be prepared."""
        with domain_errors("read the tiles to prepare"):
            statement = self._composed("dense_tiles")
            rows = await (await self._connection.execute(statement, {"zoom": zoom})).fetchall()
        return [(row["x"], row["y"]) for row in rows]

    async def fill_tile(self, zoom: int, x: int, y: int) -> None:
        """Make a tile, with as many features themselves as fit into it, the largest first."""
        limit = min(MAX_DRAWN, int(MAX_TILE_BYTES / (self._sizes.attribute_bytes + OVERHEAD_BYTES)))
        while True:
            made = await self._run("fill_tile", **self._tile(zoom, x, y, limit))
            if made["bytes"] <= MAX_TILE_BYTES or limit == 0:
                return
            limit = int(0.98 * min(limit, made["shown"]) * MAX_TILE_BYTES / made["bytes"])

    async def finish_zoom(self, zoom: int) -> None:
        """Drop what only the tiles of a zoom needed."""
        await self._run("drop", table=self._members(zoom))

    async def finish(self) -> None:
        """Drop all but the tiles."""
        for table in (*map(self._name, ("boxes", "burnt", "runs")), self._level(0)):
            await self._run("drop", table=table)

    def _tile(self, zoom: int, x: int, y: int, limit: int) -> dict[str, Any]:
        place = {"zoom": sql.Literal(zoom), "x": sql.Literal(x), "y": sql.Literal(y), "limit": sql.Literal(limit)}
        shape = tile_geometry(
            f"ST_Transform(feature.{sql.Identifier(self._source.geometry).as_string()}, 3857)",
            f"ST_TileEnvelope({zoom:d}, {x:d}, {y:d})",
        )
        columns = [sql.Identifier(name) for name in self._source.attributes]
        members = self._members(zoom)
        left_out = self._composed(
            "left_out", members=members, pixel=self._pixel(), small=sql.Literal(LEFT_OUT_PIXELS), **place
        )
        return {
            **place,
            "attributes": sql.SQL("").join(sql.SQL("feature.{}, ").format(column) for column in columns),
            "no_attributes": sql.SQL("NULL, ") * len(columns),
            "count": sql.Identifier(COUNT),
            "shape": sql.SQL(shape),
            "members": members,
            "level": self._level(zoom),
            "left_out": left_out,
            "runs": self._name("runs"),
            "cell": sql.Literal(TILE_RESOLUTION // TILE_PIXELS),
            "layer": sql.Literal(LAYER),
            "resolution": sql.Literal(TILE_RESOLUTION),
        }

    def _parents(self, zoom: int) -> dict[str, sql.Composable]:
        return {
            "members": self._members(zoom),
            "zoom": sql.Literal(zoom),
            "tiles": sql.Literal(2.0 ** (zoom + 1)),
            "margin": sql.Literal(TILE_BUFFER / TILE_RESOLUTION),
        }

    def _pixel(self) -> sql.Composed:
        return self._composed("pixel")

    def _name(self, part: str) -> sql.Identifier:
        return sql.Identifier(self._source.schema, f"{staging_name(self._job_id)}_{part}")

    def _members(self, zoom: int) -> sql.Identifier:
        return self._name(f"in_{zoom}" if zoom else "boxes")

    def _level(self, zoom: int) -> sql.Identifier:
        return self._name(f"at_{zoom}")

    def _composed(self, query: str, **parts: sql.Composable) -> sql.Composed:
        common = {
            "table": sql.Identifier(self._source.schema, self._source.table),
            "feature_id": sql.Identifier(self._source.feature_id),
            "geometry": sql.Identifier(self._source.geometry),
            "world": sql.Literal(WORLD),
            "edge": sql.Literal(EDGE),
            "never": sql.Literal(NEVER),
            "overview": self._name("overview"),
        }
        return sql.SQL(self.queries[query]).format(**{**common, **parts})

    async def _run(self, query: str, **parts: Any) -> dict[str, Any]:
        names = {name: part for name, part in parts.items() if isinstance(part, sql.Composable)}
        values = {name: part for name, part in parts.items() if name not in names}
        try:
            with domain_errors(query.replace("_", " ")):
                cursor = await self._connection.execute(self._composed(query, **names), values or None)
                return (await cursor.fetchone() or {}) if cursor.description else {}
        except GraticuleError as error:
            is_permanent = isinstance(error.__cause__, errors.InternalError_ | ProgrammingError)
            if isinstance(error, InvalidInput) or is_permanent:
                raise OverviewFailed(error.message, detail=error.detail) from error
            raise
