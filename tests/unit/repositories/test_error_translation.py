"""The seam: which of the driver's errors becomes which of the domain's, and what a user never gets to read."""

import psycopg
import pytest
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from graticule.core.errors import (
    AlreadyExists,
    ConfigurationError,
    Conflict,
    GraticuleError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    SchemaOutdated,
    TransactionAborted,
    Unavailable,
)
from graticule.repositories.errors import domain_errors, translated

SECRET = "duplicate key (INSERT INTO t VALUES (%s)) DETAIL: Key (x)=(S3CRET) password=S3CRET"
EXPECTED: list[tuple[type[Exception], type[GraticuleError]]] = [
    (pg.UniqueViolation, AlreadyExists),
    (pg.ForeignKeyViolation, Conflict),
    (pg.CheckViolation, Conflict),
    (pg.NotNullViolation, Conflict),
    (pg.ExclusionViolation, Conflict),
    (pg.InsufficientPrivilege, PermissionDenied),
    (pg.ReadOnlySqlTransaction, PermissionDenied),
    (pg.UndefinedTable, SchemaOutdated),
    (pg.UndefinedColumn, SchemaOutdated),
    (pg.UndefinedObject, SchemaOutdated),
    (pg.InvalidSchemaName, SchemaOutdated),
    (pg.SerializationFailure, TransactionAborted),
    (pg.DeadlockDetected, TransactionAborted),
    (pg.InvalidPassword, ConfigurationError),
    (pg.InvalidAuthorizationSpecification, ConfigurationError),
    (pg.InvalidCatalogName, ConfigurationError),
    (pg.StringDataRightTruncation, InvalidInput),
    (pg.InvalidTextRepresentation, InvalidInput),
    (pg.NumericValueOutOfRange, InvalidInput),
    (psycopg.DataError, InvalidInput),
    (pg.QueryCanceled, Unavailable),
    (pg.LockNotAvailable, Unavailable),
    (pg.AdminShutdown, Unavailable),
    (pg.CrashShutdown, Unavailable),
    (pg.CannotConnectNow, Unavailable),
    (pg.TooManyConnections, Unavailable),
    (pg.IdleInTransactionSessionTimeout, Unavailable),
    (psycopg.OperationalError, Unavailable),
    (psycopg.InterfaceError, Unavailable),
    (PoolTimeout, Unavailable),
    (PoolClosed, Unavailable),
    (TooManyRequests, Unavailable),
    (pg.SyntaxError, GraticuleError),
    (psycopg.Error, GraticuleError),
]


@pytest.mark.parametrize(("driver", "domain"), EXPECTED, ids=[driver.__name__ for driver, _ in EXPECTED])
def test_each_kind_becomes_one_domain_error_without_giving_anything_away(
    driver: type[Exception], domain: type[GraticuleError]
) -> None:
    error = driver(SECRET)
    with pytest.raises(GraticuleError) as raised, domain_errors("add the job"):
        raise error
    assert type(raised.value) is domain
    assert raised.value.message.startswith("Could not add the job: ")
    assert raised.value.message.endswith(".")
    assert "S3CRET" not in str(raised.value)
    assert "INSERT" not in str(raised.value)
    assert raised.value.__cause__ is error
    assert "S3CRET" in (raised.value.detail or "")


@pytest.mark.parametrize("error", [NotFound("n"), KeyError("k"), ValueError("v")], ids=repr)
def test_what_is_not_the_drivers_passes_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, domain_errors("read"):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("driver", "hint"),
    [
        (pg.UndefinedTable, "graticule schema migrate"),
        (psycopg.OperationalError, "graticule doctor"),
        (pg.InvalidPassword, "GRATICULE_DATABASE_URL"),
    ],
)
def test_the_hint_says_how_to_mend_it(driver: type[Exception], hint: str) -> None:
    assert hint in (translated(driver("x"), "read").hint or "")


def test_nothing_is_raised_where_nothing_was() -> None:
    with domain_errors("read"):
        pass
