"""Assets, their versions, and the revisions that were superseded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from psycopg import sql

from graticule.core.asset_names import SHORTEST_PREFIX
from graticule.core.ids import AssetId, JobId, WorkflowId
from graticule.core.models import AssetRevision, AssetVersion, GeospatialAsset
from graticule.core.models.engine import JobPurpose
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES = load_queries("assets.sql")
NOTE_EXPORT = QUERIES["note_export"]  # run by the step that ends the job


@dataclass(frozen=True, slots=True)
class PastJob:
    """How long a job took, and for how large a file, where that is known."""

    seconds: float
    source_bytes: int | None = None


class AssetRepository(Repository[GeospatialAsset]):
    """Reads and writes assets."""

    model = GeospatialAsset
    subject: ClassVar = "asset"
    queries: ClassVar = QUERIES

    async def lock(self, asset_id: AssetId) -> None:
        """Let no one else change this asset until the transaction ends."""
        await self._execute("lock_asset", {"asset_id": asset_id})

    async def hold_jobs(self, asset_id: AssetId) -> None:
        """Let no job of this asset move on until the transaction ends."""
        await self._execute("hold_jobs_of_asset", {"asset_id": asset_id})

    async def announce(self, asset_id: AssetId) -> None:
        """Tell those who remember an asset that it has changed."""
        await self._execute("announce_asset", {"asset_id": asset_id})

    async def free_short_id(self, asset_id: AssetId) -> str:
        """Give the shortest beginning of an asset's id that no other asset has for its names."""
        length = SHORTEST_PREFIX
        while await self._one("short_id_of_another", {"short_id": asset_id[:length], "asset_id": asset_id}):
            length += 4
        return asset_id[:length]

    async def active_jobs(
        self, asset_id: AssetId, version_ordinal: int | None = None, purposes: Sequence[JobPurpose] | None = None
    ) -> list[JobId]:
        """Give the jobs under way of an asset or of one version, of all purposes or of some."""
        given = {"asset_id": asset_id, "version_ordinal": version_ordinal, "purposes": purposes and list(purposes)}
        with domain_errors("read the active jobs of an asset"):
            rows = await (await self._connection.execute(QUERIES["active_jobs_of_asset"], given)).fetchall()
        return [JobId(row["job_id"]) for row in rows]

    async def needs_reversal(self, asset_id: AssetId, version_ordinal: int) -> bool:
        """Tell whether copies for the public may be there that no job removes."""
        given = {"asset_id": asset_id, "version_ordinal": version_ordinal}
        row = await self._fetch_one(sql.SQL(QUERIES["needs_reversal"]), given, "read the exports of a version")
        return bool(row and row["needed"])

    async def is_being_exported(self, asset_id: AssetId, version_ordinal: int, revision: int) -> bool:
        """Tell whether a job is copying this revision for the public."""
        given = {"asset_id": asset_id, "version_ordinal": version_ordinal, "revision": revision}
        row = await self._fetch_one(sql.SQL(QUERIES["is_being_exported"]), given, "read the exports of a version")
        return bool(row and row["underway"])

    async def outdated_copies(self, asset_id: AssetId | None = None) -> list[tuple[AssetId, int]]:
        """Give versions, of one asset or of all, that the public sees in an older revision than the one in service."""
        with domain_errors("read the outdated copies"):
            found = await self._connection.execute(QUERIES["outdated_copies"], {"asset_id": asset_id})
            return [(AssetId(row["asset_id"]), row["version_ordinal"]) for row in await found.fetchall()]

    async def superseded_because(self, job_id: JobId) -> str | None:
        """Tell why a failed job of an asset must not go on; None when it may."""
        statement = sql.SQL(QUERIES["superseded_because"])
        row = await self._fetch_one(statement, {"job_id": job_id}, "read what became of a job's asset")
        return None if row is None else row["reason"]

    async def past_jobs(self, workflow_id: WorkflowId) -> list[PastJob]:
        """Return the jobs of this workflow that completed lately."""
        with domain_errors("read the history of a workflow"):
            found = await self._connection.execute(QUERIES["past_jobs"], {"workflow_id": workflow_id})
            return [PastJob(row["seconds"], row["source_bytes"]) for row in await found.fetchall()]


class AssetVersionRepository(Repository[AssetVersion]):
    """Reads and writes versions. A change gives the version as it is then, or None when its state does not allow it."""

    model = AssetVersion
    subject: ClassVar = "version"
    queries: ClassVar = QUERIES

    async def of_asset(self, asset_id: AssetId) -> list[AssetVersion]:
        """Give all versions of an asset in order, the deleted ones too."""
        return await self._all("versions_of_asset", {"asset_id": asset_id})

    async def approve(self, version: AssetVersion, actor: str, now: datetime) -> AssetVersion | None:
        """Approve a version that awaits it and is processed, if it still has this revision and these outputs."""
        seen = {"revision": version.revision, "output_hash": version.output_hash}
        return await self._one("approve_version", {**_key(version), **seen, "actor": actor, "now": now})

    async def endorse(self, version: AssetVersion, actor: str, now: datetime) -> AssetVersion | None:
        """Keep that the first of two reviewers approved a version, if it still has this revision and these outputs."""
        seen = {"revision": version.revision, "output_hash": version.output_hash}
        return await self._one("endorse_version", {**_key(version), **seen, "actor": actor, "now": now})

    async def second(self, version: AssetVersion, actor: str, now: datetime) -> AssetVersion | None:
        """Note who else has approved the revision in service for the public, if it still is that one."""
        given = {**_key(version), "revision": version.approved_revision, "actor": actor, "now": now}
        return await self._one("second_version", given)

    async def fault_of_table(self, version: AssetVersion, most_bytes: int) -> str | None:
        """Return what is wrong with the newest table of a version; the rows of a larger one are not looked at."""
        named = {"job_id": version.current_job_id, "table_name": version.table_name, "most_bytes": most_bytes}
        with domain_errors("check the table"):
            row = await (await self._connection.execute(self.queries["fault_of_table"], named)).fetchone() or {}
        return row.get("fault")

    async def reject(self, version: AssetVersion, reason: str, actor: str, now: datetime) -> AssetVersion | None:
        """Reject a version that awaits a decision and is not being processed, if it still has this revision."""
        given = {**_key(version), "revision": version.revision, "reason": reason, "actor": actor, "now": now}
        return await self._one("reject_version", given)

    async def revoke(self, version: AssetVersion, reason: str, actor: str, now: datetime) -> AssetVersion | None:
        """Take a version out of service, if this revision of it still is what is served."""
        given = {**_key(version), "revision": version.approved_revision, "reason": reason, "actor": actor, "now": now}
        return await self._one("revoke_version", given)

    async def withdraw_copies(self, version: AssetVersion, now: datetime) -> AssetVersion | None:
        """Count the copies for the public as not made; None when there are none that count."""
        return await self._one("withdraw_copies", {**_key(version), "now": now})

    async def begin_revision(
        self, version: AssetVersion, *, keeps_approval: bool, now: datetime, **changes: Any
    ) -> AssetVersion | None:
        """Begin a new revision of a version that is not being processed."""
        return await self._one(
            "begin_revision", {**_key(version), "keeps_approval": keeps_approval, "now": now, **changes}
        )

    async def retry(
        self, version: AssetVersion, estimated_completion_at: datetime | None, now: datetime
    ) -> AssetVersion | None:
        """Queue a version again that failed."""
        given = {**_key(version), "estimated_completion_at": estimated_completion_at, "now": now}
        return await self._one("retry_version", given)

    async def end_lost(self, asset_id: AssetId, error: str, told: str, now: datetime) -> list[AssetVersion]:
        """End the processing of versions whose job has ended without them."""
        given = {"asset_id": asset_id, "error": error, "told": told, "now": now}
        return await self._all("end_lost_processing", given)

    async def delete(
        self, asset_id: AssetId, version_ordinal: int | None, actor: str, now: datetime
    ) -> list[AssetVersion]:
        """Mark a version, or all of an asset, as deleted."""
        given = {"asset_id": asset_id, "version_ordinal": version_ordinal, "actor": actor, "now": now}
        return await self._all("delete_versions", given)


class AssetRevisionRepository(Repository[AssetRevision]):
    """Adds and reads superseded revisions."""

    model = AssetRevision
    subject: ClassVar = "revision"
    queries: ClassVar = QUERIES

    async def of_version(self, asset_id: AssetId, version_ordinal: int) -> list[AssetRevision]:
        """Give what a version was before, oldest first."""
        return await self._all("revisions_of_version", {"asset_id": asset_id, "version_ordinal": version_ordinal})


def _key(version: AssetVersion) -> dict[str, Any]:
    return {"asset_id": version.asset_id, "version_ordinal": version.version_ordinal}
