"""How a handler ended."""

from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """What a handler gives back; one that gives back a plain JSON value has succeeded with it."""

    output: JsonValue = None
    metrics: dict[str, JsonValue] | None = None
    error_message: str | None = None
    retryable: bool = True
    report: dict[str, JsonValue] | None = None  # of what is wrong with the data, for whoever sent them
    is_interrupted: bool = False

    @classmethod
    def success(cls, output: JsonValue = None, metrics: dict[str, JsonValue] | None = None) -> Self:
        """The work is done; `output` is what later nodes see."""
        return cls(output=output, metrics=metrics)

    @classmethod
    def failure(
        cls,
        message: str,
        *,
        retryable: bool = True,
        report: dict[str, JsonValue] | None = None,
        metrics: dict[str, JsonValue] | None = None,
    ) -> Self:
        """This attempt failed; `retryable=False` when no other could succeed.

        `report` tells in a form for programs what is wrong with the data; a partner sees it.
        """
        reason = message or "the handler gave no reason"
        return cls(error_message=reason, retryable=retryable, report=report, metrics=metrics)

    @classmethod
    def interrupted(cls) -> Self:
        """The worker stops (`ctx.shutdown_requested`) and what matters is saved: another one goes on from there."""
        return cls(is_interrupted=True)
