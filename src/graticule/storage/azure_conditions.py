"""Writes and removals in Azure that are refused when a blob is not as the caller knows it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from obstore.exceptions import AlreadyExistsError, PreconditionError

from graticule.storage.conditions import Condition

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient
    from obstore import PutMode


class AzureCondition(Condition):
    """A condition as the clients of Azure take it, and refuse it."""

    __slots__ = ()

    @property
    def mode(self) -> "PutMode":
        """Give it as obstore takes it."""
        if self.only_new:
            return "create"
        return "overwrite" if self.etag is None else {"e_tag": quoted(self.etag)}

    @property
    def options(self) -> dict[str, Any]:
        """Give it as Azure's own client takes it."""
        if self.only_new:
            return {"match_condition": MatchConditions.IfMissing}
        return {} if self.etag is None else as_it_was(self.etag)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Tell as `Conflict` that it does not hold."""
        try:
            yield
        except (AlreadyExistsError, ResourceExistsError):
            raise self.taken() from None
        except (PreconditionError, ResourceModifiedError):
            raise self.changed() from None


def as_it_was(etag: str) -> dict[str, Any]:
    """Give the options of a request that is refused when the blob has another etag."""
    return {"etag": quoted(etag), "match_condition": MatchConditions.IfNotModified}


def quoted(etag: str) -> str:
    """Give an etag as HTTP has it: we keep it without its quotes."""
    return etag if etag.startswith('"') else f'"{etag}"'


def delete_as_it_was(client: "BlobClient", etag: str) -> None:
    """Remove a blob, unless someone has written it meanwhile."""
    client.delete_blob(**as_it_was(etag))
