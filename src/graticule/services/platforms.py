"""The registry of partners: a new partner is a row, never a code change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from graticule.core.direct_names import is_reserved_platform
from graticule.core.errors import AlreadyExists, InvalidInput, NotFound, Refused, SourceNotFound
from graticule.core.exchange import MOST_REFS, Asked, PlatformSubmission, RefName
from graticule.core.fault_points import Commit
from graticule.core.ids import PlatformId
from graticule.core.models import Event, Platform
from graticule.core.models.engine import EventType
from graticule.core.models.fields import Label, PlatformKey
from graticule.core.partner_fields import DOMAIN_FIELDS, LABEL
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.core.sources import MAX_PATTERNS, pattern_fault
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.requests import RequestRepository
from graticule.services.submission_checks import check_source_admitted
from graticule.storage.options import StorageOptions
from graticule.storage.paths import check_partner_blob

FOUR_EYES: Final = "Nobody approves what they submitted, and two reviewers approve what the public is to see."
IDENTITY: Final = ("required_refs", "version_ref")  # what datasets and versions are told apart by

DisplayName = Annotated[
    Label, StringConstraints(strip_whitespace=True, min_length=1, max_length=255, pattern=r"^[^\x00]*$")
]
Description = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
RequiredRefs = Annotated[list[RefName], Field(min_length=1, max_length=MOST_REFS)]
OptionalRefs = Annotated[list[RefName], Field(max_length=MOST_REFS)]


def _checked_pattern(pattern: str) -> str:
    if fault := pattern_fault(pattern):
        raise ValueError(fault)
    return pattern


SourceContainers = Annotated[
    list[Annotated[str, AfterValidator(_checked_pattern)]],
    Field(
        min_length=1,
        max_length=MAX_PATTERNS,
        description="Where its files may lie: `container` or `container/prefix/`.",
        examples=[["bronze/atlas/"]],
    ),
]


class NewPlatform(Asked):
    """A partner system that is to send data."""

    platform_id: PlatformKey = Field(min_length=1, examples=["atlas"])
    display_name: DisplayName = Field(examples=["The Atlas"])
    description: Description | None = None
    required_refs: RequiredRefs = Field(
        description="The fields that identify a dataset of this partner.", examples=[["collection", "sheet"]]
    )
    optional_refs: OptionalRefs = Field(
        default_factory=list, description="Kept, but not part of the identity.", examples=[["edition"]]
    )
    version_ref: RefName = Field(
        description="The partner's field that carries the version label.", examples=["release"]
    )
    source_containers: SourceContainers | None = Field(
        None,
        description="Where its files may lie: `container` or `container/prefix/`; by default `bronze/<platform_id>/`.",
    )
    four_eyes: bool = Field(False, description=FOUR_EYES)

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> Self:
        if is_reserved_platform(self.platform_id):
            raise ValueError('platform_id: "direct" begins the names of what hand-made jobs write; choose another')
        if problem := names_problem(self.required_refs, self.optional_refs, self.version_ref):
            raise ValueError(problem)
        return self


class PlatformChange(Asked):
    """What is to be different; what is not named stays as it is."""

    display_name: DisplayName | None = Field(None, examples=["The Atlas"])
    description: Description | None = None
    required_refs: RequiredRefs | None = Field(None, description="Only while the platform has no assets.")
    optional_refs: OptionalRefs | None = Field(None, examples=[["edition", "scale"]])
    version_ref: RefName | None = Field(None, description="Only while the platform has no assets.")
    source_containers: SourceContainers | None = None
    is_active: bool | None = Field(None, description="An inactive platform takes no new submissions.")
    four_eyes: bool | None = Field(None, description=FOUR_EYES)


@dataclass(frozen=True, slots=True)
class AddedPlatform:
    """A partner in the registry; `created` is False when the very same was there already."""

    platform: Platform
    created: bool


class PlatformService:
    """Reads and changes the registry. A partner sees itself there, and no other."""

    def __init__(self, database: Database, options: StorageOptions | None = None) -> None:
        self._database = database
        self._options = options or StorageOptions()

    async def platforms(self, caller: Caller, *, with_inactive: bool = False) -> list[Platform]:
        """Give the partners by id, as far as the caller may know of them."""
        async with self._database.connection() as connection:
            found = await PlatformRepository(connection).all(with_inactive=with_inactive)
        return [platform for platform in found if caller.sees(platform.platform_id)]

    async def platform(self, platform_id: PlatformId, caller: Caller) -> Platform:
        """Give one partner, active or not."""
        if not caller.sees(platform_id):
            raise NotFound(f"There is no platform {platform_id}.")
        async with self._database.connection() as connection:
            return await PlatformRepository(connection).get(platform_id=platform_id)

    async def add(self, new: NewPlatform, caller: Caller) -> AddedPlatform:
        """Add a partner; the same one again is no error."""
        self._check_sources(new.source_containers)
        async with self._database.transaction(Commit.PLATFORMS) as connection:
            platforms, now = PlatformRepository(connection), self._database.now()
            wanted = Platform(**new.model_dump(), created_at=now, updated_at=now)
            if not await platforms.add(wanted):
                return AddedPlatform(_same(await platforms.get(platform_id=new.platform_id), wanted), created=False)
            await self._tell(connection, "platform.add", new.model_dump(mode="json"), caller)
            return AddedPlatform(await platforms.get(platform_id=new.platform_id), created=True)

    async def change(self, platform_id: PlatformId, change: PlatformChange, caller: Caller) -> Platform:
        """Change a partner; what identifies its datasets can be changed only while it has none."""
        self._check_sources(change.source_containers)
        async with self._database.transaction(Commit.PLATFORMS) as connection:
            platforms = PlatformRepository(connection)
            platform = await platforms.held(platform_id)
            asked = change.model_dump(exclude_none=True)
            different = {name: value for name, value in asked.items() if value != getattr(platform, name)}
            if not different:
                return platform
            changed = _checked(platform.model_copy(update={**different, "updated_at": self._database.now()}))
            if not different.keys().isdisjoint(IDENTITY) and await platforms.has_assets(platform_id):
                raise _in_use(platform)
            await self._tell(connection, "platform.change", {"platform_id": platform_id, "changes": different}, caller)
            return await platforms.change(changed)

    async def check_source(
        self, platform: Platform, asked: PlatformSubmission, idempotency_key: str | None = None
    ) -> None:
        """Refuse a file of another partner as if it were missing; what was accepted before has its receipt."""
        check_partner_blob(asked.container_name, asked.file_name, self._options)
        try:
            check_source_admitted(platform, asked)
        except SourceNotFound:
            if idempotency_key is None or not await self._is_known(platform, idempotency_key):
                raise

    async def _is_known(self, platform: Platform, idempotency_key: str) -> bool:
        async with self._database.connection() as connection:
            requests = RequestRepository(connection)
            found = await requests.find_by_idempotency_key(PlatformId(platform.platform_id), idempotency_key)
        return found is not None

    def _check_sources(self, patterns: Sequence[str] | None) -> None:
        for pattern in patterns or ():
            container = pattern.partition("/")[0]
            if self._options.is_ours(container):
                raise InvalidInput(
                    f"source_containers: {container!r} holds what this platform makes, and no sources.",
                    hint="Name a container of the partner, or a prefix of one, such as bronze/atlas/.",
                )

    async def _tell(self, connection: Connection, command: str, data: dict[str, Any], caller: Caller) -> None:
        event = Event(
            event_type=EventType.COMMAND_EXECUTED,
            actor=caller.name,
            data={"command": command, **data},
            created_at=self._database.now(),
        )
        await EventRepository(connection).insert(event)


def names_problem(required: Sequence[str], optional: Sequence[str], version_ref: str) -> str | None:
    """Tell what is wrong with the names of a partner's fields; None when each has one meaning."""
    names = [*required, *optional, version_ref]
    if doubles := sorted({name for name in names if names.count(name) > 1}):
        return f"{', '.join(doubles)}: each field has one meaning, and is named once"
    if taken := sorted({*names} & {*DOMAIN_FIELDS} - ({LABEL} if version_ref == LABEL else set())):
        return f"{', '.join(taken)}: every submission has a field of this name already"
    if len(required) + len(optional) > MOST_REFS:
        return f"a platform has at most {MOST_REFS} refs, the optional ones included"
    return None


def _checked(platform: Platform) -> Platform:
    if problem := names_problem(platform.required_refs, platform.optional_refs, platform.version_ref):
        raise InvalidInput(f"The platform cannot be changed so. {problem}.")
    return platform


def _same(platform: Platform, wanted: Platform) -> Platform:
    """Give a platform that is there already, if it is the one that is to be added."""
    if any(getattr(wanted, name) != getattr(platform, name) for name in NewPlatform.model_fields):
        raise AlreadyExists(
            f"There is a platform {platform.platform_id} already, and it is another one.",
            hint=f"PATCH /api/v1/platforms/{platform.platform_id} changes it.",
        )
    return platform


def _in_use(platform: Platform) -> Refused:
    return Refused(
        Refusal.PLATFORM_IN_USE,
        f"The platform {platform.platform_id} has assets; what identifies them cannot be changed any more.",
        hint="Add a platform of another name for datasets that are identified otherwise.",
        current=platform.model_dump(mode="json", include={"platform_id", *IDENTITY}),
    )
