"""The queues of a namespace as they should be: made where they are missing, changed where they differ."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus.management import QueueProperties, ServiceBusAdministrationClient

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.identity import azure_credential
from graticule.messaging.servicebus.namespace import authorities, connection_string_told, namespace_host


@dataclass(frozen=True, slots=True)
class QueueRules:
    """How a queue treats its messages."""

    lock_seconds: int
    max_deliveries: int
    message_seconds: int

    def properties(self) -> dict[str, Any]:
        """Give them as the broker names them."""
        return {
            "lock_duration": timedelta(seconds=self.lock_seconds),
            "max_delivery_count": self.max_deliveries,
            "default_message_time_to_live": timedelta(seconds=self.message_seconds),
        }


class Outcome(StrEnum):
    """What was done with a queue."""

    MADE = "made"
    CHANGED = "changed"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class EnsuredQueue:
    """A queue that is now as it should be."""

    name: str
    outcome: Outcome
    drops_duplicates: bool  # a task that is tried again within the broker's window would be lost to it


class Administration:
    """Sees to the queues of the namespace of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._client = _client(settings)

    def ensure(self, names: Iterable[str], rules: QueueRules) -> Iterator[EnsuredQueue]:
        """See to each queue in turn, and tell what was done."""
        for name in names:
            with _told(name):
                yield self._ensured(name, rules.properties())

    def _ensured(self, name: str, wanted: dict[str, Any]) -> EnsuredQueue:
        found = self._found(name)
        if found is None:
            try:
                self._client.create_queue(name, **wanted)
            except ResourceExistsError:  # someone was faster
                return self._ensured(name, wanted)
            return EnsuredQueue(name, Outcome.MADE, drops_duplicates=False)
        drops = bool(found.requires_duplicate_detection)
        if all(getattr(found, key) == value for key, value in wanted.items()):
            return EnsuredQueue(name, Outcome.KEPT, drops)
        for key, value in wanted.items():
            setattr(found, key, value)
        self._client.update_queue(found)
        return EnsuredQueue(name, Outcome.CHANGED, drops)

    def _found(self, name: str) -> QueueProperties | None:
        try:
            return self._client.get_queue(name)
        except ResourceNotFoundError:
            return None


def _client(settings: Settings) -> ServiceBusAdministrationClient:
    options: dict[str, Any] = {"connection_verify": authorities() or True}
    given = settings.service_bus_connection_string
    if given is None:
        return ServiceBusAdministrationClient(namespace_host(settings), azure_credential(), **options)
    with connection_string_told():
        return ServiceBusAdministrationClient.from_connection_string(given.get_secret_value(), **options)


@contextmanager
def _told(queue: str) -> Iterator[None]:
    """Turn the client's errors into the domain's; their texts may hold what was sent."""
    try:
        yield
    except ClientAuthenticationError:
        raise ConfigurationError(
            f"Service Bus does not let us see to the queue {queue!r}.",
            hint="Managing queues needs the right Manage: a key that has it, or the role Service Bus Data Owner.",
        ) from None
    except HttpResponseError as error:
        if error.status_code is None or error.status_code >= 500 or error.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise Unavailable(f"Service Bus could not see to the queue {queue!r} now.") from None
        raise ConfigurationError(
            f"Service Bus refuses the queue {queue!r} with the status {error.status_code}.",
            hint="Check its name, and whether the tier of the namespace allows these rules.",
        ) from None
    except AzureError as error:
        raise Unavailable(f"Service Bus could not see to the queue {queue!r}: {type(error).__name__}.") from None
