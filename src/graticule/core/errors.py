"""The domain's errors: one class for each way in which a request can be refused or fail.

An error keeps three things apart: `message` and `hint` are for the user (what happened, how to
mend it), `detail` is for the log only and never leaves the process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


class GraticuleError(Exception):
    """Base of every error that Graticule raises on purpose."""

    code: str = "internal_error"

    def __init__(self, message: str, *, hint: str | None = None, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class ConfigurationError(GraticuleError):
    """The machine or the settings do not allow what was asked."""

    code = "configuration_error"


@dataclass(frozen=True, slots=True)
class FieldFault:
    """What is wrong with one field of a request; `loc` leads to it, as in `("body", "file_name")`."""

    loc: tuple[str | int, ...]
    message: str
    type: str


def fault_message(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, without what Pydantic writes before the words of a validator of ours."""
    return str(fault["msg"]).removeprefix("Value error, ")


class InvalidInput(GraticuleError):
    """The caller sent something that can never be accepted as it is; `faults` name the fields, where they are known."""

    code = "invalid_input"

    def __init__(
        self, message: str, *, hint: str | None = None, detail: str | None = None, faults: Sequence[FieldFault] = ()
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.faults = tuple(faults)


class SourceNotFound(InvalidInput):
    """There is no such file among the sources of the partner: it is missing, or it is another's."""

    code = "source_not_found"


class OutputRefused(InvalidInput):
    """A job wants to write what belongs to a version of an asset, and the version does not name that job."""

    code = "output_refused"


class Unauthenticated(GraticuleError):
    """No credential, or one that is not known."""

    code = "unauthenticated"


class PermissionDenied(GraticuleError):
    """The caller is known and may not do this."""

    code = "permission_denied"


class CrossSiteRequest(PermissionDenied):
    """A browser that is signed in was led here by a page of someone else, as far as can be told."""

    code = "csrf"


class NotFound(GraticuleError):
    """What the caller named does not exist (or not for this caller)."""

    code = "not_found"


class Gone(GraticuleError):
    """What the caller named was there, and was withdrawn."""

    code = "gone"


class Conflict(GraticuleError):
    """The request is sound, and the present state does not allow it."""

    code = "conflict"


class AlreadyExists(Conflict):
    """A row with this identity is there already."""

    code = "already_exists"


class Refused(Conflict):
    """A rule of the platform forbids it; `code` names the rule, and `current` tells how things stand."""

    def __init__(
        self, code: str, message: str, *, hint: str | None = None, current: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.current = current


class IllegalTransition(Conflict):
    """The transition table has no such step from the present state."""

    code = "illegal_transition"


class StaleVersion(Conflict):
    """Someone else changed the row since it was read, or took the job."""

    code = "stale_version"


class SchemaOutdated(Conflict):
    """The database does not have the schema that this version of the program needs."""

    code = "schema_outdated"


class TooManyRequests(GraticuleError):
    """The caller asks more often than it may."""

    code = "too_many_requests"

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message, hint=f"Try again in {retry_after_seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class TransactionAborted(GraticuleError):
    """The database gave up this transaction (deadlock, serialization); the same step may be repeated."""

    code = "transaction_aborted"


class TooSlow(GraticuleError):
    """The work took longer than one request may take."""

    code = "too_slow"


class Unavailable(GraticuleError):
    """Something that is needed cannot be reached now; the same request may succeed later."""

    code = "unavailable"


class OutputUnreadable(Unavailable):
    """A file or table of a version that is served is missing or damaged."""

    code = "output_unreadable"


PASSING: Final = (Unavailable, TransactionAborted, SchemaOutdated)
"""What is no fault of what was asked: the same may succeed later. A migration may still be to come."""
