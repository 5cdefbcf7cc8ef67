"""Direct commands: one logical operation each, carried out at once; to repeat one does no harm.

What takes longer than ten seconds, or needs GDAL, is a workflow and no command.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from pydantic import BaseModel, Field, model_validator

from graticule.core.errors import NotFound, PermissionDenied, Unavailable
from graticule.core.exchange import Asked, Ordinal
from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.core.models.fields import AssetKey, JsonObject
from graticule.core.permissions import Caller, Deed
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.commands import bound_transaction
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.requests import RequestRepository
from graticule.services import layer_catalog
from graticule.services.asset_changes import AssetUnderChange, loaded, no_such_asset
from graticule.services.asset_outcomes import OURS
from graticule.services.bootstrap import BootstrapService

LONGEST_SECONDS: Final = 10.0
EVERY_ASSET: Final = AssetId("")

LOST: Final = "The job ended, and the version was not told: an older release carried it out."


class OfAsset(Asked):
    """Which asset."""

    asset_id: AssetKey = Field(examples=["0123456789abcdef0123456789abcdef"])


class OfVersion(OfAsset):
    """Which version of which asset."""

    version_ordinal: Ordinal = Field(examples=[0])


class OfCache(Asked):
    """One asset, or all of them."""

    asset_id: AssetKey | None = Field(None, examples=["0123456789abcdef0123456789abcdef"])
    all: bool = False

    @model_validator(mode="after")
    def _one_or_all(self) -> Self:
        if self.all == (self.asset_id is not None):
            raise ValueError('say which asset, by asset_id, or "all": true')
        return self


class OfNothing(Asked):
    """Nothing has to be said."""


class Outcome(StrEnum):
    """What a command came to."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"  # it was so already


class CommandResult(BaseModel):
    """What a command has done."""

    command: str
    outcome: Outcome
    details: JsonObject = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """What a command works with: the transaction in which its event is written, too."""

    connection: Connection
    caller: Caller
    now: datetime
    bootstrap: BootstrapService

    async def asset(self, asset_id: AssetId) -> AssetUnderChange:
        """Give an asset that nobody else changes until the command is over."""
        assets = AssetRepository(self.connection)
        if await assets.find(asset_id=asset_id) is None:
            raise no_such_asset(asset_id)
        await assets.lock(asset_id)
        return await loaded(self.connection, asset_id, self.caller)


Done = tuple[bool, JsonObject]  # whether something was changed, and what there is to tell
Run = Callable[[Execution, Any], Awaitable[Done]]  # the second is what `parameters` of the command is


async def publish(execution: Execution, wanted: OfVersion, *, is_external: bool = False) -> Done:
    """Show a version in the catalogue as it is described now."""
    change = await execution.asset(wanted.asset_id)
    changed = await layer_catalog.show(change, wanted.version_ordinal, execution.now, is_external=is_external)
    return await _announced(execution, wanted.asset_id, changed=changed)


async def publish_external(execution: Execution, wanted: OfVersion) -> Done:
    """Show a version to everyone."""
    return await publish(execution, wanted, is_external=True)


async def unpublish(execution: Execution, wanted: OfVersion) -> Done:
    """Take a version out of the catalogue."""
    change = await execution.asset(wanted.asset_id)
    changed = await layer_catalog.hide(change, wanted.version_ordinal)
    return await _announced(execution, wanted.asset_id, changed=changed)


async def _announced(execution: Execution, asset_id: AssetId, *, changed: bool) -> Done:
    if changed:
        await AssetRepository(execution.connection).announce(asset_id)
    return changed, {}


async def reindex(execution: Execution, wanted: OfAsset) -> Done:
    """Set right what an asset says of its versions, the name that its outputs carry, and versions without their job."""
    change = await execution.asset(wanted.asset_id)
    lost = await _end_lost(execution, change)
    in_service, assets = change.in_service, AssetRepository(execution.connection)
    right = {
        "latest_approved_version_ordinal": in_service[-1].version_ordinal if in_service else None,
        "short_id": change.asset.short_id or await assets.free_short_id(AssetId(change.asset.asset_id)),
    }
    corrected = {name: value for name, value in right.items() if value != getattr(change.asset, name)}
    told: JsonObject = {name: {"from": getattr(change.asset, name), "to": value} for name, value in corrected.items()}
    if corrected or lost:
        await change.change_asset(execution.now, **corrected)
    changed, _ = await _announced(execution, wanted.asset_id, changed=bool(corrected or lost))
    return changed, {"corrected": told, "ended": [*lost]}


async def _end_lost(execution: Execution, change: AssetUnderChange) -> list[int]:
    """End what a job has left behind, so that it can be retried; give the ordinals."""
    versions, requests = AssetVersionRepository(execution.connection), RequestRepository(execution.connection)
    lost = await versions.end_lost(AssetId(change.asset.asset_id), LOST, OURS, execution.now)
    for version in lost:
        change.written(version)
        await requests.fail(version.last_request_id, OURS, execution.now)
        failed = EventType.ASSET_PROCESSING_FAILED
        await change.tell(failed, execution.now, version.version_ordinal, error=LOST, reason=OURS)
    return [version.version_ordinal for version in lost]


async def migrate(execution: Execution, _: OfNothing) -> Done:
    """Add to the schema what this release needs."""
    report = await execution.bootstrap.migrate()
    details: JsonObject = {
        "current": report.current,
        "applied": [each.object for each in report.applied],
        "pending": [each.object for each in report.pending],
        "differences": [each.object for each in report.differences],
        "notices": [*report.notices],
    }
    return bool(report.applied), details


async def invalidate(execution: Execution, wanted: OfCache) -> Done:
    """Have all processes forget what they remember of one asset, or of all."""
    if (
        wanted.asset_id is not None
        and await AssetRepository(execution.connection).find(asset_id=wanted.asset_id) is None
    ):
        raise no_such_asset(wanted.asset_id)
    return await _announced(execution, wanted.asset_id or EVERY_ASSET, changed=True)


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it takes, who may give it, and what it does."""

    run: Run
    parameters: type[Asked]
    deed: Deed = Deed.OPERATE

    @property
    def summary(self) -> str:
        """Say in a sentence what it does."""
        return (self.run.__doc__ or "").strip()


COMMANDS: Final[Mapping[str, Command]] = {
    "metadata.publish": Command(publish, OfVersion),
    "metadata.unpublish": Command(unpublish, OfVersion),
    "metadata.publish_external": Command(publish_external, OfVersion),
    "asset.reindex": Command(reindex, OfAsset),
    "schema.migrate": Command(migrate, OfNothing, Deed.ADMINISTER),
    "cache.invalidate": Command(invalidate, OfCache),
}


def command_named(name: str) -> Command:
    """Give a command."""
    try:
        return COMMANDS[name]
    except KeyError:
        raise NotFound(f"There is no command {name}.", hint=f"There are: {', '.join(COMMANDS)}.") from None


class CommandService:
    """Carries commands out, each in one transaction with its event."""

    def __init__(self, database: Database, bootstrap: BootstrapService) -> None:
        self._database = database
        self._bootstrap = bootstrap

    async def execute(self, name: str, parameters: Asked, caller: Caller) -> CommandResult:
        """Carry a command out, or raise and change nothing."""
        command = command_named(name)
        if not caller.may(command.deed):
            raise PermissionDenied(f"{caller.name} may not give the command {name}.", hint=f"It takes: {command.deed}.")
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._execute(name, command, parameters, caller)
        except TimeoutError as error:
            raise Unavailable(
                f"The command {name} took longer than {LONGEST_SECONDS:g} s.", hint="Try again when it is quiet."
            ) from error

    async def _execute(self, name: str, command: Command, parameters: Asked, caller: Caller) -> CommandResult:
        async with self._database.transaction(Commit.COMMAND) as connection:
            await bound_transaction(connection, LONGEST_SECONDS)
            execution = Execution(connection, caller, self._database.now(), self._bootstrap)
            changed, details = await command.run(execution, parameters)
            outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
            result = CommandResult(command=name, outcome=outcome, details=details)
            await EventRepository(connection).insert(_event(result, parameters, execution))
            return result


def _event(result: CommandResult, parameters: Asked, execution: Execution) -> Event:
    """Tell of a command, also of one that found nothing to do."""
    given = parameters.model_dump(mode="json", exclude_none=True)
    return Event(
        event_type=EventType.COMMAND_EXECUTED,
        asset_id=given.get("asset_id"),
        version_ordinal=given.get("version_ordinal"),
        actor=execution.caller.name,
        data={**result.model_dump(mode="json"), "parameters": given},
        created_at=execution.now,
    )
