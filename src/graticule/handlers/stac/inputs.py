"""What the catalogue's handlers are given: the outputs of the steps before them, and whose data it is.

Orchestrators import this to know the handlers, hence no STAC library here. Of other steps' outputs only what is used
is asked for; the rest is their own business.
"""

import math
import re
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, model_validator

MOST_TILES: Final = 100_000
_TIFF_DATETIME: Final = "%Y:%m:%d %H:%M:%S"
_SUMS: Final = frozenset({"count", "min", "max", "sum", "sum_of_squares"})
Identifier = Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


class Given(BaseModel):
    """A part of an input."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class Grid(Given):
    """The pixel grid of an output: a projection's code or WKT, and where each pixel lies."""

    crs: str
    transform: list[float] = Field(min_length=6, max_length=9)
    width: int = Field(ge=1)
    height: int = Field(ge=1)

    def point(self, column: float, row: float) -> tuple[float, float]:
        """Give where a corner of a pixel lies."""
        a, b, c, d, e, f = self.transform[:6]
        return a * column + b * row + c, d * column + e * row + f

    def corners(self) -> list[tuple[float, float]]:
        """Give the four corners, the first once more at the end."""
        at = ((0, 0), (0, self.height), (self.width, self.height), (self.width, 0), (0, 0))
        return [self.point(*corner) for corner in at]

    def bounds(self) -> list[float]:
        """Give the least and the greatest coordinates."""
        xs, ys = zip(*self.corners(), strict=True)
        return [min(xs), min(ys), max(xs), max(ys)]

    def part(self, column: int, row: int, width: int, height: int) -> "Grid":
        """Give the grid of a rectangle of its pixels."""
        x, y = self.point(column, row)
        a, b, _, d, e, _ = self.transform[:6]
        return Grid(crs=self.crs, transform=[a, b, x, d, e, y], width=width, height=height)


class Statistics(Given):
    """What is known of a band's valid pixels: either mean and deviation, or the sums that they come from."""

    count: int | None = Field(None, ge=0)
    minimum: int | float | None = Field(None, validation_alias=AliasChoices("minimum", "min"))
    maximum: int | float | None = Field(None, validation_alias=AliasChoices("maximum", "max"))
    mean: float | None = None
    stddev: float | None = Field(None, validation_alias=AliasChoices("stddev", "std"))
    sum: float | None = None
    sum_of_squares: float | None = None
    valid_percent: float | None = Field(None, ge=0, le=100)

    @property
    def average(self) -> float | None:
        """The mean."""
        if self.mean is not None or self.sum is None or not self.count:
            return self.mean
        return self.sum / self.count

    @property
    def deviation(self) -> float | None:
        """The standard deviation of all pixels."""
        if self.stddev is not None or self.sum_of_squares is None or not self.count or self.average is None:
            return self.stddev
        return math.sqrt(max(0.0, self.sum_of_squares / self.count - self.average**2))


class Band(Given):
    """A band of an output."""

    name: str | None = None
    description: str | None = None
    data_type: str | None = Field(None, validation_alias=AliasChoices("data_type", "dtype"))
    nodata: int | float | str | None = None
    unit: str | None = None
    scale: float | None = None
    offset: float | None = None
    statistics: Statistics | None = None

    @model_validator(mode="before")
    @classmethod
    def _sums_are_statistics(cls, given: Any) -> Any:
        if isinstance(given, dict) and not given.get("statistics") and _SUMS & given.keys():
            return {**given, "statistics": {name: given[name] for name in _SUMS & given.keys()}}
        return given


class Source(Given):
    """What `raster.validate` found out about the source."""

    source: str | None = None
    content_hash: str | None = None
    raster_type: str | None = None
    outcome: str | None = None
    findings: list[JsonValue] = Field(default_factory=list)
    facts: dict[str, JsonValue] = Field(default_factory=dict)

    def validation(self) -> dict[str, JsonValue] | None:
        """Give its report; None when the source was not validated."""
        if self.outcome is None:
            return None
        return {"outcome": self.outcome, "findings": self.findings, "facts": self.facts}

    @property
    def acquired_at(self) -> datetime | None:
        """When the picture was taken, if the file says so; a TIFF's time has no zone, and is taken as UTC."""
        tags = self.facts.get("tags")
        text = str(tags.get("TIFFTAG_DATETIME", "") if isinstance(tags, dict) else "").strip()
        try:
            return datetime.strptime(text, _TIFF_DATETIME).replace(tzinfo=UTC)
        except ValueError:
            return None

    @property
    def crs(self) -> str | None:
        """The source's projection."""
        found = self.facts.get("crs")
        return found if isinstance(found, str) else None


class Product(Given):
    """What `raster.create_cog` or `raster.create_mosaicjson` made."""

    blob_path: str | None = None
    blob_prefix: str | None = None
    mosaic_path: str | None = None
    files: list[str] = Field(default_factory=list)
    size_bytes: int | None = None
    output_hash: str | None = None
    checksum: str | None = None
    scheme_checksum: str | None = None
    bbox: list[float] | None = Field(None, min_length=4, max_length=4)
    grid: Grid | None = None
    bands: list[Band] = Field(default_factory=list)
    compression: str | None = None
    tier: str | None = None
    tile_count: int | None = None

    @property
    def path(self) -> str:
        """The blob that stands for all of it."""
        return self.mosaic_path or self.blob_path or ""

    @property
    def is_mosaic(self) -> bool:
        """Whether it is many files."""
        return self.mosaic_path is not None

    @property
    def scheme_path(self) -> str | None:
        """The tile grid, which is promoted beside the mosaic."""
        name = next((name for name in self.files if name.endswith(".geojson")), None)
        mosaic = self.mosaic_path
        if name is None or mosaic is None:
            return None
        own = next((file for file in self.files if mosaic.endswith(f"/{file}")), None)
        return None if own is None else f"{mosaic.removesuffix(own)}{name}"

    @model_validator(mode="after")
    def _is_somewhere(self) -> "Product":
        if not self.path:
            raise ValueError("it has neither blob_path nor mosaic_path")
        if self.grid is None and self.bbox is None:
            raise ValueError("it has neither grid nor bbox")
        return self


class Version(Given):
    """Whose data it is."""

    platform_id: str | None = None
    platform_refs: dict[str, JsonValue] = Field(default_factory=dict)
    asset_id: str | None = None
    version_ordinal: int | None = None
    version_label: str | None = None
    request_id: str | None = None
    revision: int | None = None

    def properties(self) -> dict[str, JsonValue]:
        """Give the refs, and what identifies the version, as properties of an item."""
        refs = {_key(name): value for name, value in self.platform_refs.items() if value is not None}
        ours = {
            "platform_id": self.platform_id,
            "asset_id": self.asset_id,
            "version_ordinal": self.version_ordinal,
            "version_id": self.version_label,
            "version_label": self.version_label,
            "request_id": self.request_id,
            "revision": self.revision,
        }
        known = {name: value for name, value in ours.items() if value is not None}
        return {f"platform:{name}": value for name, value in sorted({**refs, **known}.items())}

    @property
    def tile_url(self) -> str | None:
        """Where the tile service shows it, once it is approved."""
        return self.service_url("tiles", "tiles/WebMercatorQuad/{z}/{x}/{y}")

    @property
    def tilejson_url(self) -> str | None:
        """Where the tile service describes it."""
        return self.service_url("tiles", "WebMercatorQuad/tilejson.json")

    def service_url(self, service: str, what: str) -> str | None:
        """Give where a service has it, once it is approved; None when it is no asset's."""
        if self.asset_id is None:
            return None
        version = "" if self.version_ordinal is None else f"?version={self.version_ordinal}"
        return f"/{service}/{self.asset_id}/{what}{version}"


class CollectionText(Given):
    """What a collection says of itself; what is not given stays as it is."""

    title: str | None = Field(None, min_length=1, max_length=500)
    description: str | None = Field(None, min_length=1, max_length=10_000)
    license: str | None = Field(None, pattern=r"^[\w.+-]+$")
    keywords: list[str] | None = Field(None, max_length=100)


class CollectionInputs(CollectionText):
    """Parameters of `raster.stac_ensure_collection`."""

    stac_collection_id: str = Identifier
    platform_id: str | None = None


class Registering(Version):
    """An output as it is to be catalogued: under which ids, and where its files stay."""

    stac_item_id: str = Identifier
    stac_collection_id: str = Identifier
    blob_prefix: str
    title: str | None = Field(None, min_length=1, max_length=500)
    datetime: AwareDatetime | None = None
    collection: CollectionText = CollectionText()


class ItemInputs(Registering):
    """Parameters of `raster.stac_register_item`."""

    files: list[str] | None = None
    source: Source = Source()
    product: Product

    @model_validator(mode="before")
    @classmethod
    def _default_names(cls, given: Any) -> Any:
        """Name a registration after the prefix of its product where it has no name of its own."""
        if not isinstance(given, dict):
            return given
        product = given.get("product")
        prefix = given.get("blob_prefix") or (product.get("blob_prefix") if isinstance(product, dict) else None)
        if not isinstance(prefix, str):
            return given
        names = {
            "blob_prefix": prefix,
            "stac_item_id": given.get("stac_item_id") or prefix.replace("/", "-"),
            "stac_collection_id": given.get("stac_collection_id") or "-".join(prefix.split("/")[:2]),
        }
        return {**given, **names}

    @property
    def staged_files(self) -> list[str]:
        """The outputs that are promoted."""
        return self.product.files if self.files is None else self.files


class TileMade(Given):
    """What `raster.process_tile` says of a tile."""

    tile_id: str = Identifier
    blob_path: str
    bounds_4326: list[float] = Field(min_length=4, max_length=4)
    shape: list[int] = Field(min_length=2, max_length=3)
    size_bytes: int = Field(ge=0)
    checksum: str | None = None
    bands: list[Band] = Field(default_factory=list)
    window: list[int] | None = Field(None, min_length=4, max_length=4)  # column, row, width, height in the whole grid


class TilesInputs(Version):
    """Parameters of `raster.stac_register_items`; tiles may come as they are, or in the lists of their batches."""

    stac_item_id: str = Field(
        min_length=1, max_length=255, description="Of the item that the tiles belong to; their ids begin with it."
    )
    stac_collection_id: str = Identifier
    tiles: list[TileMade] = Field(min_length=1, max_length=MOST_TILES)
    grid: Grid | None = None
    bands: list[Band] = Field(default_factory=list)
    source: Source = Source()
    datetime: AwareDatetime | None = None
    collection: CollectionText = CollectionText()

    @model_validator(mode="before")
    @classmethod
    def _out_of_batches(cls, given: Any) -> Any:
        return {**given, "tiles": _flat(given["tiles"])} if isinstance(given, dict) and "tiles" in given else given


def _flat(tiles: Any) -> Any:
    if not isinstance(tiles, list):
        return tiles
    found: list[Any] = []
    for each in tiles:
        inner = each.get("tiles") if isinstance(each, dict) else each
        found += _flat(inner) if isinstance(inner, list) else [each]
    return found


def _key(name: str) -> str:
    """Keep of a ref's name what every reader of a property bears."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "ref"
