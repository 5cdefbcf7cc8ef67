"""What a handler gave back, or raised, as something that can be reported."""

import json
import traceback
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from graticule.core import json_codec
from graticule.core.errors import InvalidInput, fault_message
from graticule.core.states import ResultStatus
from graticule.handlers.compatibility import translate_return
from graticule.handlers.result import HandlerResult
from graticule.logs import redact_text

MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
MAX_MESSAGE_LENGTH: Final = 4000
MAX_REPORT_BYTES: Final = 64 * 1024
ADVICE_ON_PACKAGES: Final = "Install it beside the worker; graticule[worker] brings what Graticule's own handlers need."
# What orjson would write in its own way, and no other reader of JSON would expect.
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended. Output (of one that failed: its report) and metrics are JSON."""

    status: ResultStatus
    output: bytes | None = None
    error_message: str | None = None
    retryable: bool = True
    metrics: str | None = None
    is_interrupted: bool = False  # the handler made way for a worker that stops


class NotJson(Exception):
    """A value has no form in JSON that every process could read."""


def failed(message: str, *, retryable: bool = True, metrics: str | None = None) -> Outcome:
    """Give the outcome of an attempt that failed; libraries name what they could not open, with its signature."""
    told = redact_text(shortened(message))  # in this order: a message may have any length
    return Outcome(ResultStatus.FAILED, error_message=told, retryable=retryable, metrics=metrics)


def outcome_of(value: HandlerResult | JsonValue) -> Outcome:
    """Give the outcome of what a handler has returned."""
    value = translate_return(value)
    result = value if isinstance(value, HandlerResult) else HandlerResult(output=value)
    try:
        return _outcome(result)
    except NotJson as error:
        return failed(f"The handler returned a value that is not JSON: {error}.", retryable=False)


def _outcome(result: HandlerResult) -> Outcome:
    if result.is_interrupted:
        return Outcome(ResultStatus.CANCELLED, is_interrupted=True)
    metrics = None if result.metrics is None else document(result.metrics).decode()
    if result.error_message is not None:
        told = failed(str(result.error_message), retryable=result.retryable, metrics=metrics)
        return told if result.report is None else replace(told, output=_report(result.report))
    output = document(result.output)
    if len(output) > MAX_OUTPUT_BYTES:
        size = len(output) / 1024 / 1024
        return failed(
            f"The output has {size:.1f} MiB and may have {MAX_OUTPUT_BYTES // 1024 // 1024}; "
            "store it as a file and return its path.",
            retryable=False,
        )
    return Outcome(ResultStatus.COMPLETED, output=output, metrics=metrics)


def _report(report: dict[str, JsonValue]) -> bytes:
    text = document({"report": report})
    if len(text) > MAX_REPORT_BYTES:
        raise NotJson(f"its report has more than {MAX_REPORT_BYTES:,} bytes")
    return text


def outcome_of_error(error: BaseException) -> Outcome:
    """Give the outcome of what a handler has raised."""
    if isinstance(error, MemoryError):
        return failed("The handler ran out of memory (MemoryError).")
    if isinstance(error, RecursionError):
        return failed("The handler called itself too deeply (RecursionError).")
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return failed(f"The handler tried to end its process ({type(error).__name__}).")
    if isinstance(error, ModuleNotFoundError):  # another worker may have it
        return failed(f"{type(error).__name__}: {_told(error)}. {ADVICE_ON_PACKAGES}")
    if isinstance(error, InvalidInput):  # what can never be accepted is not tried again
        return failed(str(error), retryable=False)
    return failed(f"{type(error).__name__}: {_told(error)}".rstrip(": "))


def trace_of(error: BaseException) -> str:
    """Give the end of an error's traceback, for the log; the message of an error can be of any length."""
    try:
        text = "".join(traceback.format_exception(error, limit=-20))
    except Exception:
        text = f"<the traceback of {type(error).__name__} cannot be shown>"
    return text[-MAX_MESSAGE_LENGTH * 2 :]


def validated(model: type[BaseModel] | None, params: dict[str, JsonValue]) -> Any:
    """Give the parameters as the handler wants them; `InvalidParams` when they do not fit its model."""
    if model is None:
        return params
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise InvalidParams(error) from None


class InvalidParams(Exception):
    """The parameters do not fit the handler's model."""

    def __init__(self, error: ValidationError) -> None:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'params'}: {fault_message(item)}"
            for item in error.errors(include_url=False, include_input=False, include_context=False)[:20]
        )
        super().__init__(f"The parameters do not fit the handler: {problems}.")


def document(value: object) -> bytes:
    """Write a value as JSON, or raise `NotJson`."""
    try:
        text = json_codec.encode(value, option=_STRICT)
        if b"null" in text:
            json.dumps(value, allow_nan=False)  # orjson writes null where a number is none
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(_told(error)[:200]) from None
    if b"\\u0000" in text and _has_nul(value):
        raise NotJson("a text contains the character NUL, which PostgreSQL cannot store")
    return text


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(map(_has_nul, value))


def shortened(text: str) -> str:
    """Give a text that any log and any row can hold."""
    kept = text[:MAX_MESSAGE_LENGTH].replace("\0", "\\0").encode("utf-8", "replace").decode()
    left = len(text) - MAX_MESSAGE_LENGTH
    return f"{kept} … ({left} characters more)" if left > 0 else kept


def _told(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<its message cannot be shown>"
