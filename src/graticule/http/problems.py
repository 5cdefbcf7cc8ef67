"""Every error that leaves a process by HTTP is a problem document (RFC 9457), made here and nowhere else.

`STATUSES` is the one table from the domain's errors to HTTP. An error's `detail` goes to the log only.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.core.errors import (
    ConfigurationError,
    Conflict,
    Gone,
    GraticuleError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Refused,
    SchemaOutdated,
    TooManyRequests,
    TooSlow,
    TransactionAborted,
    Unauthenticated,
    Unavailable,
    fault_message,
)
from graticule.http.requests import request_id_of
from graticule.logs import get_logger

MEDIA_TYPE: Final = "application/problem+json"
MOST_FIELD_ERRORS: Final = 20  # that an answer tells

STATUSES: Final[Mapping[type[GraticuleError], int]] = {
    InvalidInput: 422,
    Unauthenticated: 401,
    PermissionDenied: 403,
    NotFound: 404,
    Gone: 410,
    Conflict: 409,
    TooManyRequests: 429,
    SchemaOutdated: 503,
    Unavailable: 503,
    TooSlow: 504,
    TransactionAborted: 503,
    ConfigurationError: 500,
    GraticuleError: 500,
}

_HEADERS: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": 'Bearer realm="graticule", ApiKey realm="graticule"'},
    503: {"Retry-After": "5"},
}

# Later versions of Python have renamed these, and a code has to stay what it is.
_CODES: Final[Mapping[int, str]] = {
    400: "malformed_request",
    413: "content_too_large",
    414: "uri_too_long",
    416: "range_not_satisfiable",
    422: "unprocessable_content",
}

_SENTENCES: Final[Mapping[int, str]] = {
    404: "There is nothing at this address.",
    405: "This address does not take the method of the request.",
}

_log = get_logger(__name__)


def _encodable(value: object) -> object:
    """Escape halves of characters: JSON may name them, and no text can hold them."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]


class FieldError(BaseModel):
    """What is wrong with one part of a request; what was sent there is not repeated."""

    loc: list[Text | int]
    message: Text
    type: str


class Problem(BaseModel):
    """A problem document."""

    type: str = Field("about:blank", description="Names the kind of problem: `urn:graticule:problem:<code>`.")
    title: str
    status: int
    detail: Text = Field(description="What happened, for a person.")
    code: str = Field(description="What happened, for a program; it does not change between versions.")
    hint: Text | None = Field(None, description="How to mend it.")
    errors: list[FieldError] | None = None
    current: dict[str, Any] | None = Field(None, description="How things stand, when that is why it was refused.")
    request_id: str | None = Field(None, description="Finds this request in the log.")
    instance: str | None = None


class ProblemResponse(JSONResponse):
    """An answer that carries a problem document."""

    media_type = MEDIA_TYPE


def install_problem_handlers(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    for kind in (GraticuleError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(UnexpectedErrors)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe these statuses as problem documents, for the `responses` of a route."""
    return {status: _described(HTTPStatus(status).phrase) for status in statuses}


def any_problem() -> dict[int | str, dict[str, Any]]:
    """Describe every status that a route does not name as a problem document."""
    return {"default": _described("An error")}


def status_of(error: GraticuleError) -> int:
    """Look the status up along the classes of the error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def problem_of(error: Exception) -> Problem:
    """Turn any error into the document that its caller may see."""
    match error:
        case GraticuleError():
            problem = _problem(status_of(error), error.code, error.message, hint=error.hint)
            if isinstance(error, Refused) and error.current is not None:
                problem.current = dict(error.current)
            if isinstance(error, InvalidInput) and error.faults:
                problem.errors = _field_errors(error)
            return problem
        case RequestValidationError():
            return _invalid_request(error)
        case HTTPException():
            return _plain(error)
    return _problem(500, "internal_error", "Something went wrong here. The log has the details of this request.")


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that ended in an error."""
    problem = problem_of(error)
    _tell(error, problem)
    headers = {**_HEADERS.get(problem.status, {}), **_headers_of(error)}
    if problem.status in {204, 304}:
        return Response(status_code=problem.status, headers=headers)
    problem.request_id = request_id_of(request.scope)
    problem.instance = quote(request.scope["path"])
    return ProblemResponse(problem.model_dump(mode="json", exclude_none=True), problem.status, headers)


def _headers_of(error: Exception) -> Mapping[str, str]:
    """Give the headers that an error itself brings."""
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.retry_after_seconds)}
    return getattr(error, "headers", None) or {}


class UnexpectedErrors:
    """Middleware that answers what nobody foresaw; it does so inside the one that sets the request's id."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer it when that fails before an answer was begun."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def noticing(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, noticing)
        except ClientDisconnect:
            _log.info("the client went away before its request was complete")
        except Exception as error:
            response = await answer_error(Request(scope), error)
            if begun:  # half an answer is out: only cutting the connection tells the caller
                raise
            await response(scope, receive, send)


def _problem(status: int, code: str, detail: str, *, hint: str | None = None) -> Problem:
    kind = f"urn:graticule:problem:{code}"
    return Problem(type=kind, title=_title(code), status=status, detail=detail, code=code, hint=hint)


def _plain(error: HTTPException) -> Problem:
    """Describe an error of HTTP itself: no such address, a method that is not allowed."""
    status = error.status_code
    known = HTTPStatus(status) if status in set(HTTPStatus) else None
    code = _CODES.get(status) or (known.name.lower() if known else f"http_{status}")
    written = known is None or error.detail != known.phrase
    detail = str(error.detail) if written else _SENTENCES.get(status, _title(code) + ".")
    return Problem(title=_title(code), status=status, detail=detail, code=code)


def invalid_input(detail: str, faults: Sequence[Any]) -> Problem:
    """Describe input of another form than expected: its first faults, and how many more there are."""
    told = [
        FieldError(loc=list(fault["loc"]), message=fault_message(fault), type=fault["type"])
        for fault in faults[:MOST_FIELD_ERRORS]
    ]
    if left_out := len(faults) - len(told):
        detail = f"{detail} Of {len(faults)} errors, {left_out} are left out."
    problem = _problem(422, InvalidInput.code, detail)
    problem.errors = told
    return problem


def _field_errors(error: InvalidInput) -> list[FieldError]:
    faults = error.faults[:MOST_FIELD_ERRORS]
    return [FieldError(loc=[*fault.loc], message=fault.message, type=fault.type) for fault in faults]


def _invalid_request(error: RequestValidationError) -> Problem:
    problem = invalid_input("The request does not have the form that is expected here.", error.errors())
    if any(fault.type == "json_invalid" for fault in problem.errors or ()):
        malformed = _problem(400, "malformed_request", "The body is not valid JSON.")
        return malformed.model_copy(update={"errors": problem.errors})
    return problem


def _tell(error: Exception, problem: Problem) -> None:
    """Write to the log what the answer leaves out."""
    if isinstance(error, GraticuleError):
        tell = _log.error if problem.status == 500 else _log.warning if problem.status == 503 else _log.info
        unforeseen = error if problem.status == 500 else None
        tell("request refused", code=error.code, message=str(error), detail=error.detail, exc_info=unforeseen)
    elif problem.code == "internal_error":
        _log.error("request failed", exc_info=error)


def _title(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _described(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": _schema()}}}


@cache
def _schema() -> dict[str, Any]:
    """Return the schema of `Problem` in one piece: a reference would have to be registered with each app."""
    schema = Problem.model_json_schema(mode="serialization")
    fault = schema.pop("$defs")["FieldError"]
    for choice in schema["properties"]["errors"]["anyOf"]:
        if choice["type"] == "array":
            choice["items"] = fault
    return schema
