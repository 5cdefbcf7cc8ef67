"""The addresses at which versions are served, as they are told to partners."""

from dataclasses import dataclass
from typing import Final, Self

from graticule.config import HttpAddress, Settings
from graticule.core.asset_names import PUBLIC_COLLECTION
from graticule.core.models import AssetVersion, GeospatialAsset
from graticule.core.models.platform import DataType, UrlMode
from graticule.core.states import ClearanceState

SERVICES: Final = {DataType.RASTER: "tiles", DataType.VECTOR: "features"}
VECTOR_TILES: Final = "/collections/features/tiles"  # of features, below their own address
REVISION_HEADER: Final = "Graticule-Revision"  # of a preview: the revision that made what it shows
EXTERNAL: Final = "external_"  # before the names of services for the public


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """Where the services are: those of the house, and those for the public."""

    internal: str | None = None
    external: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read the settings; a login in an address is not shown."""
        return cls(_shown(settings.serve_url), _shown(settings.external_serve_url))

    def of_version(self, asset: GeospatialAsset, version: AssetVersion) -> dict[str, str]:
        """Give the addresses that reach a version; none when it is not served, or when they would reach another."""
        if version.approved_revision is None or version.deleted_at is not None or asset.deleted_at is not None:
            return {}
        is_latest = version.version_ordinal == asset.latest_approved_version_ordinal
        if not is_latest and asset.url_mode is UrlMode.LATEST_ONLY:
            return {}
        which = "" if is_latest else f"?version={version.version_ordinal}"
        told = _at(self.internal, asset, which, version.stac_collection_id)
        if version.exported_revision is None or asset.clearance_state is not ClearanceState.PUBLIC:
            return told
        collection = version.stac_collection_id and version.stac_collection_id + PUBLIC_COLLECTION
        public = _at(self.external, asset, which, collection)
        return told | {f"{EXTERNAL}{name}": address for name, address in public.items()}


def _at(base: str | None, asset: GeospatialAsset, which: str, collection_id: str | None) -> dict[str, str]:
    if base is None:
        return {}
    service = SERVICES[asset.data_type]
    own = f"{base}/{service}/{asset.asset_id}"
    drawn = {"vector_tiles": f"{own}{VECTOR_TILES}{which}"} if asset.data_type is DataType.VECTOR else {}
    catalogued = {} if collection_id is None else {"stac": f"{base}/stac/collections/{collection_id}"}
    return {service: f"{own}{which}", **drawn, **catalogued}


def _shown(address: HttpAddress | None) -> str | None:
    return None if address is None else str(address).rstrip("/")
