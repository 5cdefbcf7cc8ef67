"""What a server answered instead: a problem document (RFC 9457) becomes an error with all that it tells."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from graticule.client.call import Call
from graticule.core.errors import GraticuleError, Unavailable

T = TypeVar("T")


class FieldError(BaseModel):
    """What is wrong with one part of what was sent."""

    loc: list[str | int]
    message: str
    type: str = ""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.loc))}: {self.message}"


class ApiProblem(GraticuleError):
    """The server refused, and said why; `code` is for programs and does not change between versions."""

    code = "api_problem"

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        errors: Sequence[FieldError] = (),
        current: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.status = status
        self.code = code or type(self).code
        self.errors = list(errors)
        self.current = current
        self.retry_after = retry_after


class UnexpectedAnswer(ApiProblem):
    """What answered does not speak as Graticule does."""

    code = "unexpected_answer"


class _Told(BaseModel):
    """The part of a problem document that is for the caller."""

    detail: str
    code: str | None = None
    hint: str | None = None
    errors: list[FieldError] | None = None
    current: dict[str, Any] | None = None


def unreachable(address: str, error: Exception) -> Unavailable:
    """Give the error for a server that does not answer."""
    return Unavailable(f"Nothing answers at {address}.", detail=repr(error))


def problem_of(response: httpx.Response, address: str) -> ApiProblem:
    """Give the error for an answer that is none."""
    status = response.status_code
    try:
        told = _Told.model_validate_json(response.content)
    except ValidationError:
        return UnexpectedAnswer(
            status, f"{address} answered with {status} and no reason.", retry_after=retry_after(response)
        )
    return ApiProblem(
        status,
        told.detail,
        code=told.code,
        hint=told.hint,
        errors=told.errors or (),
        current=told.current,
        retry_after=retry_after(response),
    )


def read_answer(call: Call[T], response: httpx.Response, address: str) -> T:
    """Give what an answer says; one of another form than was asked for is told as such."""
    try:
        return call.answer(response)
    except ValidationError as error:
        status = response.status_code
        message = f"{address} answered with {status} and something that is not expected here."
        raise UnexpectedAnswer(status, message, detail=repr(error)) from error


def retry_after(response: httpx.Response) -> float | None:
    """Give the seconds after which the server wants to be asked again, if it says so."""
    told = response.headers.get("Retry-After", "")
    if told.isascii() and told.isdecimal():
        return float(told)
    try:
        moment = parsedate_to_datetime(told)
    except ValueError:
        return None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (known - datetime.now(UTC)).total_seconds())
