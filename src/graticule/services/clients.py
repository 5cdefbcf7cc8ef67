"""API clients: who has a key, and what it opens. A key is shown once, when it is made; only its hash is kept."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import Field, SecretStr, StringConstraints, field_validator, model_validator

from graticule.core.errors import AlreadyExists, InvalidInput
from graticule.core.exchange import Asked
from graticule.core.fault_points import Commit
from graticule.core.ids import ClientId
from graticule.core.models import ApiClient, Event
from graticule.core.models.engine import EventType
from graticule.core.models.fields import JsonObject, PlatformKey
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import RESERVED, STAFF
from graticule.repositories.clients import ClientRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.platforms import PlatformRepository
from graticule.services.access import key_hash, new_key

USE_NOTED_EVERY: Final = timedelta(minutes=1)

ClientKey = Annotated[ClientId, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,62}$")]
DisplayName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")
]


class NewClient(Asked):
    """A client that is to get a key."""

    client_id: ClientKey = Field(description="Its deeds are recorded under this name.", examples=["ddh-portal"])
    display_name: DisplayName = Field(examples=["The portal of the Data Distribution Hub"])
    roles: frozenset[ClientRole] = Field(min_length=1, examples=[["submitter"]])
    platform_id: PlatformKey | None = Field(
        None, description="The partner that a submitter speaks for; nobody else has one.", examples=["ddh"]
    )

    @field_validator("client_id")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if value in RESERVED:
            raise ValueError("the name is taken: something else acts under it")
        return value

    @model_validator(mode="after")
    def _platform_goes_with_submitters(self) -> Self:
        is_submitter = ClientRole.SUBMITTER in self.roles
        if is_submitter and self.platform_id is None:
            raise ValueError("a submitter needs the platform for which it speaks: platform_id")
        if self.platform_id is not None and (not is_submitter or self.roles & STAFF):
            raise ValueError("only a submitter has a platform; reviewers, operators and admins see all of them")
        return self


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A client with its new key, which nobody can show again."""

    client: ApiClient
    key: SecretStr


class ClientService:
    """Adds and changes clients. Each change is an event; what others remember of a client is told to be forgotten."""

    def __init__(self, database: Database, *, on_change: Callable[[ClientId], None] | None = None) -> None:
        self._database = database
        self._on_change = on_change

    async def all(self) -> list[ApiClient]:
        """Give all clients, by id."""
        async with self._database.connection() as connection:
            return await ClientRepository(connection).all()

    async def get(self, client_id: ClientId) -> ApiClient:
        """Give one client, or raise `NotFound`."""
        async with self._database.connection() as connection:
            return await ClientRepository(connection).get(client_id=client_id)

    async def add(self, new: NewClient, *, actor: str) -> IssuedKey:
        """Add a client, and give its key."""
        key, now = new_key(), self._database.now()
        row = ApiClient(
            client_id=new.client_id,
            display_name=new.display_name,
            key_hash=key_hash(key.get_secret_value()),
            platform_id=new.platform_id,
            roles=sorted(new.roles),
            created_at=now,
            updated_at=now,
        )
        async with self._database.transaction(Commit.CLIENTS) as connection:
            await self._check(connection, new)
            client = await ClientRepository(connection).insert(row)
            granted: JsonObject = {"roles": [*row.roles], "platform_id": new.platform_id}
            await self._tell(connection, "client.add", new.client_id, actor, granted)
        return IssuedKey(client, key)

    async def rotate(self, client_id: ClientId, *, actor: str) -> IssuedKey:
        """Give a client another key; the one before opens nothing any more."""
        key = new_key()
        hashed = key_hash(key.get_secret_value())
        async with self._database.transaction(Commit.CLIENTS) as connection:
            client = await ClientRepository(connection).set_key(client_id, hashed, self._database.now())
            await self._tell(connection, "client.rotate", client_id, actor)
        self._changed(client_id)
        return IssuedKey(client, key)

    async def disable(self, client_id: ClientId, *, actor: str) -> ApiClient:
        """Let a client's key open nothing; one that is disabled already stays so."""
        return await self._set_active(client_id, "client.disable", actor, is_active=False)

    async def enable(self, client_id: ClientId, *, actor: str) -> ApiClient:
        """Let a client's key count again; one that is active already stays so."""
        return await self._set_active(client_id, "client.enable", actor, is_active=True)

    async def note_used(self, client_ids: Collection[ClientId]) -> int:
        """Write down that clients have called, for each at most once a minute; tell for how many it was."""
        if not client_ids:
            return 0
        now = self._database.now()
        async with self._database.committing(Commit.CLIENTS) as connection:
            return await ClientRepository(connection).note_used(client_ids, now, now - USE_NOTED_EVERY)

    async def _set_active(self, client_id: ClientId, command: str, actor: str, *, is_active: bool) -> ApiClient:
        async with self._database.transaction(Commit.CLIENTS) as connection:
            clients = ClientRepository(connection)
            changed = await clients.set_active(client_id, self._database.now(), is_active=is_active)
            if changed is None:
                return await clients.get(client_id=client_id)
            await self._tell(connection, command, client_id, actor)
        self._changed(client_id)
        return changed

    async def _check(self, connection: Connection, new: NewClient) -> None:
        if await ClientRepository(connection).find(client_id=new.client_id) is not None:
            raise AlreadyExists(f"There is a client {new.client_id} already.", hint="Rotate it to get a new key.")
        if (
            new.platform_id is not None
            and await PlatformRepository(connection).find(platform_id=new.platform_id) is None
        ):
            raise InvalidInput(f"There is no platform {new.platform_id}.", hint="GET /api/v1/platforms lists them.")

    async def _tell(
        self, connection: Connection, command: str, client_id: ClientId, actor: str, more: JsonObject | None = None
    ) -> None:
        event = Event(
            event_type=EventType.COMMAND_EXECUTED,
            actor=actor,
            data={"command": command, "client_id": client_id, **(more or {})},
            created_at=self._database.now(),
        )
        await EventRepository(connection).insert(event)

    def _changed(self, client_id: ClientId) -> None:
        if self._on_change is not None:
            self._on_change(client_id)
