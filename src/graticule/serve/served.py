"""What is served: one revision of one version of an asset, and where its data are."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from graticule.core.models.platform import DataType

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Served:
    """The revision that a request reaches. Where its data are was decided here, never by the request."""

    asset_id: str
    version_ordinal: int
    revision: int
    data_type: DataType
    title: str | None = None
    blob_path: str | None = None  # of a raster: a cloud-optimized GeoTIFF, or a mosaic of many
    table_schema: str | None = None
    table_name: str | None = None  # of features
    output_hash: str | None = None
    bbox: Box | None = None  # west, south, east, north in degrees; west > east across the antimeridian


async def _served(request: Request) -> Served:
    return cast("Served", request.state.served)


TheServed = Annotated[Served, Depends(_served)]
