"""`/api/v1/clients`: who has a key, and what it opens. Admins only; `used` is for the gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, FastAPI, Path
from pydantic import BaseModel, Field

from graticule.api.access import AdminOnly, GatewayOnly
from graticule.core.cancellation import end_tasks
from graticule.core.errors import GraticuleError
from graticule.core.exchange import Asked
from graticule.core.ids import ClientId
from graticule.core.models import ApiClient
from graticule.core.models.fields import PlatformKey
from graticule.core.models.platform import ClientRole
from graticule.http.callers import CallerWhoAdministers
from graticule.http.paging import Page
from graticule.http.parts import part
from graticule.http.problems import problem_responses
from graticule.logs import get_logger
from graticule.services.access import AccessService
from graticule.services.clients import ClientKey, ClientService, IssuedKey, NewClient

NOTE_EVERY_SECONDS: Final = 15.0
LAST_NOTE_SECONDS: Final = 2.0  # so long may the end of the process wait for it
MOST_USED: Final = 1000

router = APIRouter(
    prefix="/api/v1/clients",
    tags=["clients"],
    dependencies=[AdminOnly],
    responses=problem_responses(401, 403, 422, 429, 503),
)
noting = APIRouter(
    prefix="/api/v1/clients",
    tags=["clients"],
    dependencies=[GatewayOnly],
    responses=problem_responses(401, 413, 422, 503),
)

ClientPath = Annotated[ClientKey, Path(description="The client.", examples=["ddh-portal"])]
_NO_SUCH_CLIENT = problem_responses(404)
_log = get_logger(__name__)


class Client(BaseModel):
    """Someone who may call, without the hash of its key."""

    client_id: ClientId = Field(examples=["ddh-portal"])
    display_name: str = Field(examples=["The portal of the Data Distribution Hub"])
    roles: list[ClientRole] = Field(examples=[["submitter"]])
    platform_id: PlatformKey | None = Field(description="The partner that it speaks for.", examples=["ddh"])
    is_active: bool
    last_used_at: datetime | None = Field(description="When it last called, to about a minute.")
    created_at: datetime
    updated_at: datetime


class ClientWithKey(Client):
    """A client and its new key, which is shown this once."""

    key: str = Field(repr=False, description="Sent as X-API-Key.", examples=["gtc_…"])


class Used(Asked):
    """The clients that a gateway has seen."""

    client_ids: list[ClientKey] = Field(max_length=MOST_USED, examples=[["ddh-portal"]])


class Noted(BaseModel):
    """For how many it was news; that a client is active is written at most once a minute."""

    noted: int


Clients = Annotated[ClientService, Depends(part("clients"))]


@router.get("")
async def list_clients(service: Clients) -> Page[Client]:
    """List all clients, by id."""
    return Page(items=[_shown(client) for client in await service.all()])


@router.post("", status_code=201, responses=problem_responses(409, 413))
async def add_client(new: NewClient, service: Clients, caller: CallerWhoAdministers) -> ClientWithKey:
    """Add a client; its key is in the answer, and can never be shown again."""
    return _with_key(await service.add(new, actor=caller.name))


@router.get("/{client_id}", responses=_NO_SUCH_CLIENT)
async def one_client(client_id: ClientPath, service: Clients) -> Client:
    """Give one client."""
    return _shown(await service.get(client_id))


@router.post("/{client_id}/rotate", responses=_NO_SUCH_CLIENT)
async def rotate_key(client_id: ClientPath, service: Clients, caller: CallerWhoAdministers) -> ClientWithKey:
    """Give a client another key; the one before opens nothing any more (at a gateway: within 5 s)."""
    return _with_key(await service.rotate(client_id, actor=caller.name))


@router.post("/{client_id}/disable", responses=_NO_SUCH_CLIENT)
async def disable_client(client_id: ClientPath, service: Clients, caller: CallerWhoAdministers) -> Client:
    """Let a client's key open nothing (at a gateway: within 5 s)."""
    return _shown(await service.disable(client_id, actor=caller.name))


@router.post("/{client_id}/enable", responses=_NO_SUCH_CLIENT)
async def enable_client(client_id: ClientPath, service: Clients, caller: CallerWhoAdministers) -> Client:
    """Let a client's key count again."""
    return _shown(await service.enable(client_id, actor=caller.name))


@noting.post("/used")
async def note_used(used: Used, service: Clients) -> Noted:
    """Note which clients a gateway has seen, which cannot write itself."""
    return Noted(noted=await service.note_used(set(used.client_ids)))


@asynccontextmanager
async def uses_noted(app: FastAPI) -> AsyncIterator[None]:
    """Write down, now and then and at the end, which clients have called this process."""
    noter = _Noter(app.state.access, app.state.clients)
    task = asyncio.create_task(noter.run())
    try:
        yield
    finally:
        await end_tasks(task)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_NOTE_SECONDS):
                await noter.note()


class _Noter:
    """Carries what one service has seen to the other; what could not be written is kept for the next time."""

    def __init__(self, access: AccessService, clients: ClientService) -> None:
        self._access = access
        self._clients = clients
        self._seen: set[ClientId] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(NOTE_EVERY_SECONDS)
            await self.note()

    async def note(self) -> None:
        self._seen |= self._access.take_used()
        try:
            await self._clients.note_used(self._seen)
        except GraticuleError as error:
            _log.warning("could not note which clients have called", reason=str(error), detail=error.detail)
        else:
            self._seen.clear()


def _shown(client: ApiClient) -> Client:
    return Client.model_validate(client.model_dump())


def _with_key(issued: IssuedKey) -> ClientWithKey:
    return ClientWithKey(**issued.client.model_dump(exclude={"key_hash"}), key=issued.key.get_secret_value())
