"""The table of who sees what: every state that the versions of an asset can be in, and the right answers for it.

The right answers come from the rules alone, in the words in which they are written down, and from nothing of the
program. `running.py` writes the rows of an asset in such a state.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, cycle, product
from typing import Final

from graticule.core.audience import Audience
from graticule.core.models.platform import DataType, UrlMode
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState

QUEUED, PROCESSING, COMPLETED, FAILED = ProcessingState
PENDING, APPROVED, REJECTED, _ = ApprovalState
UNCLEARED, OUO, PUBLIC = ClearanceState
INTERNAL, EXTERNAL = Audience
LATEST_ONLY, ALL_VERSIONS = UrlMode
NO_SUCH_ORDINAL: Final = 1  # between those that are used: ordinals may have gaps
ORDINALS: Final = (0, 2)
LATEST: Final = "latest"


@dataclass(frozen=True)
class Story:
    """What became of a version, whatever became of its copies."""

    name: str
    processing: ProcessingState
    approval: ApprovalState
    made: tuple[int, ...]  # the revisions of which there are outputs
    revision: int = 1  # the newest, made or not
    approved: int | None = None  # the revision in service, if the version was not deleted
    was_approved: bool = False  # some revision was in service once
    is_revoked: bool = False
    is_deleted: bool = False

    @property
    def awaits_first_approval(self) -> bool:
        """Tell whether it is one of those of which an asset has at most one."""
        is_open = self.approval in {PENDING, REJECTED} and not self.is_deleted
        return is_open and not self.is_revoked and self.approved is None


def _in_service(name: str, **more: object) -> Story:
    """Give a version whose first revision is, or was, in service."""
    told = {"processing": COMPLETED, "approval": APPROVED, "made": (1,), "approved": 1, "was_approved": True}
    return Story(name, **{**told, **more})  # type: ignore[arg-type]


STORIES: Final = (
    Story("never processed", QUEUED, PENDING, ()),
    Story("being processed", PROCESSING, PENDING, ()),
    Story("failed", FAILED, PENDING, ()),
    Story("pending", COMPLETED, PENDING, (1,)),
    Story("rejected", COMPLETED, REJECTED, (1,)),
    Story("rejected, then overwritten", COMPLETED, PENDING, (1, 2), revision=2),
    Story("rejected, then being overwritten", PROCESSING, PENDING, (1,), revision=2),
    Story("deleted before approval", COMPLETED, PENDING, (1,), is_deleted=True),
    _in_service("approved"),
    _in_service("approved, newer pending", approval=PENDING, made=(1, 2), revision=2),
    _in_service("approved, newer rejected", approval=REJECTED, made=(1, 2), revision=2),
    _in_service("approved, being overwritten", processing=PROCESSING, approval=PENDING, revision=2),
    _in_service("approved, newer failed", processing=FAILED, approval=PENDING, revision=2),
    _in_service("approved, being reprocessed", processing=PROCESSING, revision=2),
    _in_service("approved, newer approved", made=(1, 2), revision=2, approved=2),
    _in_service("revoked", approval=REJECTED, approved=None, is_revoked=True),
    _in_service("revoked, newer pending", approval=REJECTED, made=(1, 2), revision=2, approved=None, is_revoked=True),
    _in_service("revoked, being overwritten", processing=PROCESSING, approval=PENDING, revision=2, approved=None),
    _in_service("revoked, then overwritten", approval=PENDING, made=(1, 2), revision=2, approved=None),
    _in_service("deleted after approval", is_deleted=True),
    _in_service("deleted, newer pending", approval=PENDING, made=(1, 2), revision=2, is_deleted=True),
    _in_service("deleted after revoking", approval=REJECTED, approved=None, is_revoked=True, is_deleted=True),
)
BY_NAME: Final = {story.name: story for story in STORIES}


@dataclass(frozen=True)
class Copies:
    """What the public was given of a version."""

    name: str
    exported: int | None = None  # the revision of which a copy is there
    was_exported: bool = False


NEVER: Final = Copies("never exported")
REMOVED: Final = Copies("copies removed", was_exported=True)
OF_FIRST: Final = Copies("revision 1 exported", 1, was_exported=True)
OF_SECOND: Final = Copies("revision 2 exported", 2, was_exported=True)


def copies_of(story: Story) -> Iterator[Copies]:
    """Give what can have become of the copies of a version: what was never in service was never exported."""
    yield NEVER
    if story.was_approved:
        yield from (REMOVED, OF_FIRST)
    if story.approved == 2:
        yield OF_SECOND


@dataclass(frozen=True)
class Version:
    """A version of an asset."""

    ordinal: int
    story: Story
    copies: Copies


@dataclass(frozen=True)
class Asset:
    """An asset with its versions, the oldest first."""

    number: int
    data_type: DataType
    clearance: ClearanceState
    url_mode: UrlMode
    versions: tuple[Version, ...]
    is_unpublished: bool = False

    @property
    def asset_id(self) -> str:
        return f"{self.number:032x}"

    def __str__(self) -> str:
        told = [f"{each.ordinal}: {each.story.name} ({each.copies.name})" for each in self.versions]
        fate = "unpublished, " if self.is_unpublished else ""
        return f"[{self.number}] {fate}{self.data_type}, {self.clearance}, {self.url_mode}, {', '.join(told)}"


# What is right


@dataclass(frozen=True)
class Answer:
    """The status of an answer, and whose data it shows if it shows some."""

    status: int
    ordinal: int | None = None
    revision: int | None = None


ABSENT: Final = Answer(404)
GONE: Final = Answer(410)
MALFORMED: Final = Answer(400)
UNKNOWN_CALLER: Final = Answer(401)


def is_in_service(asset: Asset, version: Version) -> bool:
    """Tell whether a revision is approved, and nothing deleted."""
    return version.story.approved is not None and not version.story.is_deleted and not asset.is_unpublished


def of_version(asset: Asset, version: Version, audience: Audience) -> Answer:
    """Say what an audience is given of one version.

    The house sees what is in service, whatever the clearance, and the public of that what is public and exported. What
    the audience could see once and cannot see any more is gone. The rest does not exist for it.
    """
    story, copies = version.story, version.copies
    in_service = is_in_service(asset, version)
    if audience is INTERNAL:
        shown = story.approved if in_service else None
        was_seen = story.was_approved
    else:
        shown = copies.exported if in_service and asset.clearance is PUBLIC else None
        was_seen = copies.was_exported
    if shown is not None:
        return Answer(200, version.ordinal, shown)
    return GONE if was_seen else ABSENT


def of_asset(asset: Asset, audience: Audience, wanted: str | None) -> Answer:
    """Say what `version=` gives: the latest is the highest that is served, and a number counts in one mode only."""
    found = {version.ordinal: of_version(asset, version, audience) for version in asset.versions}
    if wanted not in {None, LATEST}:
        return found.get(int(str(wanted)), ABSENT) if asset.url_mode is ALL_VERSIONS else ABSENT
    served = [ordinal for ordinal, answer in found.items() if answer.status == 200]
    if served:
        return found[max(served)]
    return GONE if GONE in found.values() else ABSENT


def catalogued(asset: Asset, audience: Audience) -> set[tuple[int, int]]:
    """Give the ordinals and revisions whose items the catalogue shows: the latest, or all that are served."""
    answers = [of_version(asset, version, audience) for version in asset.versions]
    if asset.url_mode is LATEST_ONLY:
        answers = [of_asset(asset, audience, LATEST)]
    return {(each.ordinal, each.revision) for each in answers if each.ordinal is not None and each.revision is not None}


def previewed(asset: Asset, ordinal: int) -> Answer:
    """Say what a reviewer sees: the newest revision that was made, of a version that was not deleted."""
    for version in asset.versions:
        is_live = not version.story.is_deleted and not asset.is_unpublished
        if version.ordinal == ordinal and is_live and version.story.made:
            return Answer(200, ordinal, max(version.story.made))
    return ABSENT


# All that there is


def single_assets(numbers: "count[int]") -> Iterator[Asset]:
    """Give every combination of an asset that has one version: of rasters all, of features half of them."""
    for story, data_type, clearance, url_mode in product(STORIES, DataType, ClearanceState, UrlMode):
        if data_type is DataType.VECTOR and url_mode is LATEST_ONLY:
            continue
        for copies in copies_of(story):
            versions = (Version(ORDINALS[0], story, copies),)
            yield Asset(next(numbers), data_type, clearance, url_mode, versions)


def unpublished_assets(numbers: "count[int]", data_types: "cycle[DataType]") -> Iterator[Asset]:
    """Give the same for assets that were public when they were unpublished, of either type by turns."""
    for story, url_mode in product(STORIES, UrlMode):
        for copies in copies_of(story):
            versions = (Version(ORDINALS[0], story, copies),)
            yield Asset(next(numbers), next(data_types), PUBLIC, url_mode, versions, is_unpublished=True)


# The last is also what an asset has left that was unpublished, and lives again.
OLDER: Final = ("approved", "revoked", "pending", "deleted after approval")
# The clearance, and whether there are copies of the older version and of the newer one.
PAIRED: Final = (
    (OUO, False, False),
    (PUBLIC, True, False),
    (PUBLIC, False, True),
    (PUBLIC, True, True),
    (OUO, True, True),
)


def paired_assets(numbers: "count[int]", data_types: "cycle[DataType]") -> Iterator[Asset]:
    """Give assets with an older version, and beside it a newer one in every state that can stand there."""
    for name, newer, url_mode, (clearance, *exported) in product(OLDER, STORIES, UrlMode, PAIRED):
        stories = (BY_NAME[name], newer)
        wanted = [*zip(stories, exported, strict=True)]
        if sum(story.awaits_first_approval for story in stories) > 1:
            continue
        if any(is_exported and not story.was_approved for story, is_exported in wanted):
            continue
        copies = [_exported(story) if is_exported else NEVER for story, is_exported in wanted]
        versions = tuple(map(Version, ORDINALS, stories, copies))
        yield Asset(next(numbers), next(data_types), clearance, url_mode, versions)


def _exported(story: Story) -> Copies:
    return OF_SECOND if story.approved == 2 else OF_FIRST


def all_assets() -> list[Asset]:
    """Give the whole table."""
    numbers, data_types = count(1), cycle(DataType)
    return [
        *single_assets(numbers),
        *unpublished_assets(numbers, data_types),
        *paired_assets(numbers, data_types),
    ]
