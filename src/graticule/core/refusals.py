"""The named reasons for which the platform's rules refuse a change: each is the `code` of a problem document (409)."""

from enum import StrEnum


class Refusal(StrEnum):
    """Why not."""

    PLATFORM_INACTIVE = "platform_inactive"  # the partner takes no new submissions
    PLATFORM_IN_USE = "platform_in_use"  # what identifies its datasets cannot change once it has some
    VERSION_UNRESOLVED = "version_unresolved"  # another version awaits a decision
    VERSION_EXISTS = "version_exists"  # the label is there, and overwrite was not asked for
    VERSION_PROCESSING = "version_processing"  # its workflow is under way
    VERSION_DELETED = "version_deleted"  # its ordinal is never used again
    VERSION_REJECTED = "version_rejected"  # overwrite it first
    VERSION_APPROVED = "version_approved"  # revoke it, if it must go
    NOT_PROCESSED = "not_processed"  # there is nothing to review yet
    OUTPUTS_CHANGED = "outputs_changed"  # they are not what the job of the revision made
    NOT_APPROVED = "not_approved"  # nothing is in service
    NOT_PUBLIC = "not_public"  # its clearance is a lower one
    NOT_FAILED = "not_failed"  # there is nothing to retry
    ASSET_DELETED = "asset_deleted"  # submit to it to revive it
    DATA_TYPE_DIFFERS = "data_type_differs"  # an asset stays a raster or a vector
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"  # the same key came with something else
    JOB_SUPERSEDED = "job_superseded"  # what a failed job would do is not what was decided since
    REVISION_CHANGED = "revision_changed"  # the reviewer looked at another revision than the one that stands there
    REVISION_REQUIRED = "revision_required"  # there are several, and the decision names none
    SECOND_PERSON_REQUIRED = "second_person_required"  # the platform wants four eyes, and these are the same two
    STALE_VERSION = "stale_version"  # someone else changed the asset meanwhile
