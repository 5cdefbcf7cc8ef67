"""What a change of an asset does to the services, said for people: which versions enter, leave or are renewed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from graticule.core.audience import Audience
from graticule.core.models import AssetVersion, GeospatialAsset
from graticule.core.models.platform import UrlMode
from graticule.core.states import ClearanceState

NAMES: Mapping[Audience, str] = {Audience.INTERNAL: "internal", Audience.EXTERNAL: "public"}


@dataclass(frozen=True, slots=True)
class Standing:
    """An asset with its versions at one moment."""

    asset: GeospatialAsset
    versions: Mapping[int, AssetVersion]
    four_eyes: bool

    @classmethod
    def of(cls, asset: GeospatialAsset, versions: Mapping[int, AssetVersion], *, four_eyes: bool) -> Self:
        """Return a standing that does not follow later changes of `versions`."""
        return cls(asset, dict(versions), four_eyes)

    def reached(self, audience: Audience) -> dict[int, int]:
        """Return the revision of each version that the service addresses of an audience reach."""
        if self.asset.deleted_at is not None:
            return {}
        if audience is Audience.EXTERNAL and self.asset.clearance_state is not ClearanceState.PUBLIC:
            return {}
        approved = {
            ordinal: version.approved_revision
            for ordinal, version in sorted(self.versions.items())
            if version.deleted_at is None and version.approved_revision is not None
        }
        is_latest_only = self.asset.url_mode is UrlMode.LATEST_ONLY
        reached = dict([*approved.items()][-1:]) if is_latest_only else approved
        return {
            ordinal: revision
            for ordinal, revision in reached.items()
            if audience is not Audience.EXTERNAL or not self._is_withheld(self.versions[ordinal])
        }

    def _is_withheld(self, version: AssetVersion) -> bool:
        """Whether the public sees nothing of a version because one reviewer alone has approved it."""
        return self.four_eyes and version.seconded_by is None and version.exported_revision is None


def describe_effects(before: Standing, after: Standing) -> list[str]:
    """Return a sentence for each version that enters, leaves or changes in the services of an audience."""
    return [
        sentence
        for audience in (Audience.INTERNAL, Audience.EXTERNAL)
        for sentence in _describe(before.reached(audience), after.reached(audience), after, NAMES[audience])
    ]


def _describe(before: Mapping[int, int], after: Mapping[int, int], standing: Standing, services: str) -> Iterator[str]:
    for ordinal in sorted(before.keys() | after.keys()):
        name = f"Version {ordinal} ({standing.versions[ordinal].version_label})"
        if ordinal not in before:
            yield f"{name} enters the {services} services at revision {after[ordinal]}."
        elif ordinal not in after:
            yield f"{name} leaves the {services} services."
        elif before[ordinal] != after[ordinal]:
            yield f"{name} goes from revision {before[ordinal]} to {after[ordinal]} in the {services} services."
