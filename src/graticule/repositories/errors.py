"""The one seam from the driver's errors to the domain's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from graticule.core.errors import (
    AlreadyExists,
    ConfigurationError,
    Conflict,
    GraticuleError,
    InvalidInput,
    OutputRefused,
    PermissionDenied,
    SchemaOutdated,
    TransactionAborted,
    Unavailable,
)

# The first class that fits decides: the special ones stand before the general.
TRANSLATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[GraticuleError], str], ...] = (
    (pg.UniqueViolation, AlreadyExists, "it exists already"),
    (pg.ForeignKeyViolation, Conflict, "something that it refers to does not exist, or still refers to it"),
    (
        (pg.CheckViolation, pg.NotNullViolation, pg.ExclusionViolation),
        Conflict,
        "a rule of the database forbids it",
    ),
    (
        (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction),
        PermissionDenied,
        "the database role may not do that",
    ),
    (
        (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedObject, pg.UndefinedFunction, pg.InvalidSchemaName),
        SchemaOutdated,
        "the schema is not up to date",
    ),
    (
        (pg.SerializationFailure, pg.DeadlockDetected),
        TransactionAborted,
        "it collided with another transaction",
    ),
    ((pg.InvalidPassword, pg.InvalidAuthorizationSpecification), ConfigurationError, "the login was refused"),
    (pg.InvalidCatalogName, ConfigurationError, "there is no such database"),
    (pg.DependentObjectsStillExist, Conflict, "something else in the database, such as a view, depends on it"),
    (psycopg.DataError, InvalidInput, "a value does not fit"),
    ((pg.ProgramLimitExceeded, pg.StatementTooComplex), InvalidInput, "it is too large"),
    ((pg.QueryCanceled, pg.LockNotAvailable), Unavailable, "it took too long"),
    (pg.FeatureNotSupported, Unavailable, "the schema was changed meanwhile"),
    ((PoolTimeout, PoolClosed, TooManyRequests), Unavailable, "no connection was free in time"),
    (pg.DiskFull, Unavailable, "the database has no room left on its disk"),
    (pg.OutOfMemory, Unavailable, "the database has no memory left"),
    (pg.TooManyConnections, Unavailable, "the database has too many connections"),
    ((psycopg.OperationalError, pg.IdleInTransactionSessionTimeout), Unavailable, "the database cannot be reached"),
    (psycopg.InterfaceError, Unavailable, "the connection was lost"),
)
OUTPUT_REFUSED: Final = "GR001"  # by which our own functions refuse a write, in words for the reader
# A connection that is refused has no code: libpq hands over only the server's text, which may be in another language.
REFUSED_LOGINS: tuple[tuple[str, type[Exception]], ...] = (
    ("authentication failed", pg.InvalidPassword),
    ('role "', pg.InvalidAuthorizationSpecification),
    ('database "', pg.InvalidCatalogName),
    ("too many clients", pg.TooManyConnections),
    ("remaining connection slots", pg.TooManyConnections),
)
HINTS: dict[type[GraticuleError], str] = {
    SchemaOutdated: "Run `graticule schema migrate`.",
    PermissionDenied: "Use a login that may; the schema's commands take GRATICULE_OWNER_DATABASE_URL.",
    Unavailable: "Try again; `graticule doctor` checks the database.",
    ConfigurationError: "Check GRATICULE_DATABASE_URL.",
}
# What only the operators of the server can mend.
MENDED_BY: dict[type[Exception], str] = {
    pg.DependentObjectsStillExist: "Drop what depends on it, or make that of a copy; then try again.",
    pg.DiskFull: "Make room there, or give the server a larger disk; then try again.",
    pg.OutOfMemory: "Give the server more memory, or lower its work_mem and maintenance_work_mem; then try again.",
    pg.TooManyConnections: "Raise the server's max_connections, or lower GRATICULE_DATABASE_POOL_SIZE; then try again.",
}


@contextmanager
def domain_errors(action: str) -> Iterator[None]:
    """Turn what the driver raises inside into a domain error; `action` completes "Could not …"."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests) as error:
        raise translated(error, action) from error


def translated(error: Exception, action: str) -> GraticuleError:
    """Give the domain's error for one of the driver's."""
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, psycopg.Error) and error.diag.sqlstate == OUTPUT_REFUSED:
        return OutputRefused(error.diag.message_primary or detail, hint=error.diag.message_hint)
    error = _told_apart(error)
    for kinds, domain, reason in TRANSLATIONS:
        if isinstance(error, kinds):
            hint = MENDED_BY.get(type(error)) or HINTS.get(domain)
            return domain(f"Could not {action}: {reason}.", hint=hint, detail=detail)
    return GraticuleError(f"Could not {action}: the database answered with an error.", detail=detail)


def _told_apart(error: Exception) -> Exception:
    if type(error) is psycopg.OperationalError and "FATAL:" in str(error):
        return next((kind(str(error)) for text, kind in REFUSED_LOGINS if text in str(error)), error)
    return error
