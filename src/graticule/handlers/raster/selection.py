"""What a submitter may say about a source, where the file leaves it open. Orchestrators import this: no GDAL here."""

from typing import Annotated

from pydantic import BaseModel, Field

Name = Annotated[str, Field(min_length=1, max_length=255)]


class SourceSelection(BaseModel):
    """Which raster of a file is meant, and what replaces what the file says of it."""

    variable: Name | None = Field(None, description="One of several rasters: a variable, table, element or page.")
    time: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="One step: its number, starting at 1, or the beginning of its ISO 8601 time."
    )
    source_crs: str | None = Field(None, pattern=r"^[A-Za-z_]+:[0-9A-Za-z_]+$", examples=["EPSG:4326"])
    nodata: int | float | None = Field(None, allow_inf_nan=False)  # whole numbers of 64 bits are no floats
    rpc_height: float | None = Field(
        None, ge=-1000, le=10_000, description="Metres above the ellipsoid, for images placed by RPCs alone."
    )

    def only_selection(self) -> "SourceSelection":
        """Return it without what a subclass adds."""
        return SourceSelection.model_validate(self.model_dump(include=set(SourceSelection.model_fields)))

    @property
    def changes_source(self) -> bool:
        """Whether anything was said, so that the file cannot be read as it is."""
        return self.only_selection() != SourceSelection()
