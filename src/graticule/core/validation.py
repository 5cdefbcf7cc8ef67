"""What is found in a partner's file: said in a way that a program and a person can act on."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json

MOST_FINDINGS: Final = 50
MOST_CHARACTERS: Final = 500  # of a text of a finding
MOST_FACT_BYTES: Final = 48 * 1024


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cut a text that a file may have made long, and keep of it what can be printed."""
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[:most])
    return printable if len(text) <= most else f"{printable[:-1]}…"


def _bounded(facts: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Leave out facts that nobody could read: a report goes into every answer about its version."""
    return facts if len(to_json(facts)) <= MOST_FACT_BYTES else {}


class Severity(StrEnum):
    """What a finding means for the file."""

    REJECT = "reject"  # it cannot be used
    FIX = "fix"  # its content is repaired
    WARNING = "warning"  # it is used as it is, but looks odd
    INFO = "info"  # what is done with it, such as a reprojection


class Outcome(StrEnum):
    """What becomes of the file in the end."""

    REJECT = "reject"
    FIX = "fix"
    OK = "ok"


class Finding(BaseModel):
    """One thing found: a code to act on, what it is, where it is, and how to mend it."""

    model_config = ConfigDict(frozen=True)

    code: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64, examples=["no_crs"])
    severity: Severity
    what: str = Field(max_length=MOST_CHARACTERS)
    where: str = Field(max_length=MOST_CHARACTERS)
    how_to_fix: str = Field(max_length=MOST_CHARACTERS)


def outcome_of(findings: Iterable[Finding]) -> Outcome:
    """Return the outcome that findings lead to; warnings and information alone leave a file as it is."""
    severities = {each.severity for each in findings}
    if Severity.REJECT in severities:
        return Outcome.REJECT
    return Outcome.FIX if Severity.FIX in severities else Outcome.OK


class ValidationReport(BaseModel):
    """What was found in a file, and what was made of it."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    findings: Annotated[list[Finding], Field(max_length=MOST_FINDINGS)] = []
    facts: Annotated[dict[str, JsonValue], AfterValidator(_bounded)] = Field(
        default_factory=dict, description="What the file is, as far as it is known."
    )

    @classmethod
    def read(cls, given: Any) -> Self | None:
        """Read a report that a handler gave; None when there is none."""
        try:
            return cls.model_validate(given)
        except ValidationError:
            return None
