"""What a child process may tell its worker, checked field by field: it works on partners' bytes and is not trusted."""

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, ValidationError

from graticule.core import json_codec
from graticule.core.states import ResultStatus
from graticule.telemetry.recording import MOST_ATTRIBUTES, RecordedSpan
from graticule.telemetry.spans import LONGEST_NAME, LONGEST_VALUE
from graticule.worker.frames import BrokenFrame
from graticule.worker.outcome import MAX_MESSAGE_LENGTH, NotJson, Outcome, document

LONGEST_WORD: Final = 500  # of what a handler tells of its progress
MOST_ARTIFACTS: Final = 10_000
_REST: Final = 100  # characters in which a message that was cut tells so


def _of_some_span(span_id: str) -> str:
    if not int(span_id, 16):
        raise ValueError("zeros name no span")
    return span_id


SpanId = Annotated[str, Field(pattern="^[0-9a-f]{16}$"), AfterValidator(_of_some_span)]
Word = Annotated[str, Field(max_length=LONGEST_VALUE)]
Number = Annotated[int | FiniteFloat, Field(union_mode="left_to_right")]


class _Told(BaseModel):
    """Something that was told: no other fields, and no other types than these."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def of(cls, told: Any) -> Self:
        """Check it; `BrokenFrame` when it is something else."""
        try:
            return cls.model_validate(told)
        except ValidationError:
            raise BrokenFrame from None


class Progress(_Told):
    """How far a handler is, as `ctx.progress` tells it."""

    done: Number | None  # None is what JSON has of a number that is none
    total: Number | None = None
    percent: Number | None = None
    eta_seconds: Number | None = None
    message: str | None = Field(None, max_length=LONGEST_WORD)


class ProgressFrame(_Told):
    """The same on its way."""

    kind: str
    task_id: str
    progress: Progress

    def plain(self) -> dict[str, JsonValue]:
        """Give what the handler has told, and no more."""
        return self.progress.model_dump(exclude_unset=True)


class ResultFrame(_Told):
    """How an attempt ended."""

    kind: str
    task_id: str
    status: ResultStatus = Field(strict=False)  # by its name
    has_output: bool
    error_message: str | None = Field(max_length=MAX_MESSAGE_LENGTH + _REST)
    retryable: bool
    metrics: str | None
    is_interrupted: bool
    progress: Progress | None
    is_worn: bool

    def last_progress(self) -> dict[str, JsonValue] | None:
        """Give what the handler told at last, if that was not told before."""
        return None if self.progress is None else self.progress.model_dump(exclude_unset=True)

    def outcome(self, body: bytes) -> Outcome:
        """Give the outcome; the body is its output."""
        if self.status is ResultStatus.RUNNING:
            raise BrokenFrame
        return Outcome(
            status=self.status,
            output=_text(body) if self.has_output else None,
            error_message=self.error_message,
            retryable=self.retryable,
            metrics=self.metrics,
            is_interrupted=self.is_interrupted,
        )


class SpanFrame(_Told):
    """A span that has ended in the child, below that of the attempt."""

    kind: str
    task_id: str
    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    span_id: SpanId
    parent_id: SpanId
    start_ns: int = Field(gt=0, lt=2**63)
    end_ns: int = Field(gt=0, lt=2**63)
    error: str | None = Field(max_length=LONGEST_VALUE)
    attributes: dict[Annotated[str, Field(max_length=LONGEST_NAME)], bool | Number | Word] = Field(
        max_length=MOST_ATTRIBUTES
    )

    def recorded(self) -> RecordedSpan:
        """Give the span."""
        return RecordedSpan(**self.model_dump(exclude={"kind", "task_id"}))


class SavedPhase(_Told):
    """The checkpoint that a handler saves; how long its parts may be is looked at where it is kept."""

    phase: str
    data: dict[str, Any]
    artifacts: list[str] = Field(max_length=MOST_ARTIFACTS)


def json_object(body: bytes) -> dict[str, Any]:
    """Give the object that a body is: one that can be stored, too."""
    try:
        found = json_codec.decode(body)
        document(found)
    except (ValueError, NotJson):
        raise BrokenFrame from None
    if not isinstance(found, dict):
        raise BrokenFrame
    return found


def _text(body: bytes) -> bytes:
    """Give a body back that is text; whether that is JSON is told by who stores or reads it."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise BrokenFrame from None
    return body
