"""The errors of the database as those of HTTP: what a caller has caused is told as such, and never with SQL."""

from collections.abc import Mapping
from typing import Final

import asyncpg
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError

from graticule.core.errors import OutputUnreadable, Unavailable
from graticule.http.problems import answer_error
from graticule.logs import get_logger
from graticule.serve.features.limits import FilterError
from graticule.serve.unreadable import answer_unreadable, note_fault

_log = get_logger(__name__)

_TOO_LONG: Final = HTTPException(
    504, "The database needs too long for this. Ask for less: a smaller area, fewer features, a simpler filter."
)
_NO_ANSWER: Final = Unavailable("The database does not answer.", hint="Try again in a moment.")
_CHANGING: Final = Unavailable("The features are being replaced.", hint="Try again in a moment.")
_BAD_VALUE: Final = HTTPException(400, "A value of this request does not fit the column that it is compared with.")
_BAD_SHAPE: Final = HTTPException(422, "The geometries cannot be compared or drawn as this request asks for.")

# By the first five, three or two letters of the database's code.
_BY_CODE: Final[Mapping[str, Exception]] = {
    "57014": _TOO_LONG,
    "55P03": _TOO_LONG,  # a lock was not to be had in time
    "42P01": _CHANGING,
    "42703": _CHANGING,
    "42501": _CHANGING,
    "XX000": _BAD_SHAPE,  # PostGIS has no other code
    "22": _BAD_VALUE,
    "42": _BAD_VALUE,
    "54": _BAD_VALUE,  # a limit of the database
    "08": _NO_ANSWER,
    "53": _NO_ANSWER,
    "57": _NO_ANSWER,
}


def install_database_errors(app: FastAPI) -> None:
    """Answer the errors of the database, and of what cannot be read; called after `install_problem_handlers`."""
    app.add_exception_handler(OutputUnreadable, answer_unreadable)
    app.add_exception_handler(FilterError, _answer_filter_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_parameter)
    for kind in (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        app.add_exception_handler(kind, _answer_database_error)


async def _answer_filter_error(request: Request, error: Exception) -> Response:
    return await answer_error(request, HTTPException(400, str(error)))


async def _answer_invalid_parameter(request: Request, error: Exception) -> Response:
    """Answer 400, as OGC API Features has it."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    told = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in faults)
    return await answer_error(request, HTTPException(400, f"A parameter cannot be as it is. {told}."))


async def _answer_database_error(request: Request, error: Exception) -> Response:
    told = _told(error)
    if told is _CHANGING:
        note_fault(request)
        request.app.state.layers.forget(request.state.served)
    if told is not None:
        _log.info("the database refused a request", sqlstate=getattr(error, "sqlstate", None), detail=str(error))
    return await answer_error(request, told or error)


def _told(error: Exception) -> Exception | None:
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        return _BY_CODE.get(code) or _BY_CODE.get(code[:2])
    return _NO_ANSWER
