"""What a partner may say about a source, where its format leaves it open. No GDAL here: orchestrators import it."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Name = Annotated[str, Field(min_length=1, max_length=255)]


class SourceOptions(BaseModel):
    """Which layer is meant, and how it is read."""

    layer: Name | None = None
    layers: Literal["all"] | None = None  # every layer becomes a part of one table
    source_crs: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    encoding: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    x_column: Name | None = None
    y_column: Name | None = None
    wkt_column: Name | None = None
