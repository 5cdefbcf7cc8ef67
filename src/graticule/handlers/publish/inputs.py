"""What the handlers that publish and withdraw are given."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from graticule.core.asset_names import PUBLIC_COLLECTION
from graticule.core.models.platform import DataType, TableName

# As `core.asset_names` makes it: platform, dataset, short id, version.
VersionPrefix = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/[a-z0-9_]+/[0-9a-f]{8,32}/v[0-9]+$", max_length=1000)]
AssetKey = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Given(BaseModel):
    """A part of an input."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Copy(Given):
    """A copy that was made before."""

    external_blob_path: str | None = None
    export_run_id: str | None = None


class Version(Given):
    """A version, and where its copies are: all that is made of it lies below one prefix."""

    version_ordinal: int = Field(ge=0)
    version_prefix: VersionPrefix
    stac_item_id: str | None = None
    stac_collection_id: str | None = None

    @property
    def collections(self) -> list[str]:
        """The collections that may have items of it: the one that it names, and the one of its dataset."""
        of_dataset = self.version_prefix.rpartition("/")[0].replace("/", "-").replace("_", "-")
        return list(dict.fromkeys(filter(None, (self.stac_collection_id, of_dataset))))

    @property
    def public_collections(self) -> list[str]:
        """The collections that may have items of its copies."""
        return [f"{each}{PUBLIC_COLLECTION}" for each in self.collections]


class Export(Version):
    """Parameters of `publish.export`."""

    asset_id: AssetKey
    revision: int = Field(ge=1)
    data_type: DataType
    blob_path: str | None = None
    table_name: TableName | None = None
    exported_revision: int | None = Field(None, ge=1, description="What the public reads until this is done.")
    external_blob_path: str | None = None
    copies: list[Copy] = Field(default_factory=list)

    @property
    def kept_revision(self) -> int | None:
        """The other revision whose copies stay: the public reads them until the version's row names the new ones."""
        return None if self.exported_revision == self.revision else self.exported_revision

    @property
    def prefix(self) -> str:
        """Where the blobs of the revision lie, in either zone."""
        return f"{self.version_prefix}/r{self.revision}"


class Reverse(Version):
    """Parameters of `publish.reverse`."""

    asset_id: AssetKey
    external_blob_path: str | None = None
    export_run_id: str | None = None
    copies: list[Copy] = Field(default_factory=list)


class Unpublish(Given):
    """Parameters of `publish.unpublish`."""

    asset_id: AssetKey
    versions: list[Version] = Field(min_length=1)
    copies: list[Copy] = Field(default_factory=list)
