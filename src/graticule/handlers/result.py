"""How a handler ended."""

from dataclasses import dataclass
from typing import Protocol, Self, overload

from pydantic import JsonValue

from graticule.core.compatibility import NO_REASON


class _Completed(Protocol):
    """Makes the result of finished work."""

    def __call__(self, output: JsonValue = None, metrics: dict[str, JsonValue] | None = None) -> "HandlerResult": ...


class _Success:
    """On the class, makes the result of finished work; on a result, whether it is one, which earlier code asks."""

    @overload
    def __get__(self, result: None, owner: type["HandlerResult"]) -> _Completed: ...

    @overload
    def __get__(self, result: "HandlerResult", owner: type["HandlerResult"]) -> bool: ...

    def __get__(self, result: "HandlerResult | None", owner: type["HandlerResult"]) -> bool | _Completed:
        if result is None:
            return owner.completed
        return result.error_message is None and not result.is_interrupted


@dataclass(frozen=True, slots=True, init=False)
class HandlerResult:
    """What a handler gives back; one that gives back a plain JSON value has succeeded with it."""

    output: JsonValue = None
    metrics: dict[str, JsonValue] | None = None
    error_message: str | None = None
    retryable: bool = True
    report: dict[str, JsonValue] | None = None  # of what is wrong with the data, for whoever sent them
    is_interrupted: bool = False

    success = _Success()

    def __init__(  # noqa: PLR0917 - the fields in their order
        self,
        output: JsonValue = None,
        metrics: dict[str, JsonValue] | None = None,
        error_message: str | None = None,
        retryable: bool = True,
        report: dict[str, JsonValue] | None = None,
        is_interrupted: bool = False,
        *,
        success: bool | None = None,
    ) -> None:
        """Earlier handlers say `success`, which then decides; all else is as the methods below write it."""
        if success is not None:
            error_message = None if success else error_message or NO_REASON
        values = {
            "output": output,
            "metrics": metrics,
            "error_message": error_message,
            "retryable": retryable,
            "report": report,
            "is_interrupted": is_interrupted,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def completed(cls, output: JsonValue = None, metrics: dict[str, JsonValue] | None = None) -> Self:
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
        reason = message or NO_REASON
        return cls(error_message=reason, retryable=retryable, report=report, metrics=metrics)

    @classmethod
    def interrupted(cls) -> Self:
        """The worker stops (`ctx.shutdown_requested`) and what matters is saved: another one goes on from there."""
        return cls(is_interrupted=True)
