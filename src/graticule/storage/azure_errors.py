"""The one seam at which errors of Azure become the domain's. What a client says of one may hold addresses and names."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from graticule.core.errors import GraticuleError, NotFound, Unavailable

LOST_CONTAINER: Final = "ContainerNotFound"
LOST_SOURCE: Final = "CannotVerifyCopySource"  # the account that is copied to cannot read the other
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")  # in what obstore tells of an answer
_ROLES: Final = "Its identity needs a role on the storage account, or the configured key is another's."


class ContainerMissing(NotFound):
    """The container is not there, and so is none of its blobs."""


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn the errors of both clients into the domain's: what is not there is not there, all else may pass."""
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(path, error) from None
    except HttpResponseError as error:
        raise _answered(path, error) from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise _refused(path) from None
    except (AzureError, BaseError) as error:
        if LOST_CONTAINER in str(error):  # the listing has no other way to say it
            raise _missing(path, error) from None
        said = _CODE.search(str(error))
        raise Unavailable(
            f"The storage cannot serve {path!r} now: {said[1] if said else type(error).__name__}."
        ) from None


def code_of(error: HttpResponseError) -> str:
    """Give Azure's name for what happened."""
    code = getattr(error, "error_code", None) or f"status {error.status_code}"
    return str(getattr(code, "value", code))


def _answered(path: str, error: HttpResponseError) -> GraticuleError:
    code = code_of(error)
    if code != LOST_SOURCE and error.status_code == 404:
        return _missing(path, error)
    is_refused = error.status_code in {401, 403} or isinstance(error, ClientAuthenticationError)
    if code != LOST_SOURCE and is_refused:
        return _refused(path)
    return Unavailable(f"The storage cannot serve {path!r} now: {code}.")


def _missing(path: str, error: Exception) -> NotFound:
    kind = ContainerMissing if LOST_CONTAINER in str(error) else NotFound
    return kind(f"There is no file {path!r} in the storage.")


def _refused(path: str) -> Unavailable:
    return Unavailable(f"The storage does not let this process at {path!r}.", hint=_ROLES)
