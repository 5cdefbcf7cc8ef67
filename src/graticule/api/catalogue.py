"""`/api/v1/callbacks/catalogue`: the STAC catalogue, for workers that do not reach the database. Workers only."""

from typing import Annotated

from fastapi import APIRouter, Query

from graticule.api.access import WorkerOnly
from graticule.api.services import CatalogueWriter
from graticule.http.problems import problem_responses
from graticule.services.catalogue import (
    CollectionId,
    EnsureCollection,
    Ensured,
    FoundItem,
    HoldPrefix,
    ItemId,
    OfPrefix,
    PrefixAnswer,
    RegisterItem,
    WriteItems,
    WrittenItems,
)

router = APIRouter(
    prefix="/api/v1/callbacks/catalogue",
    tags=["callbacks"],
    dependencies=[WorkerOnly],
    responses=problem_responses(401, 403, 409, 413, 422, 503),
)


@router.get("/item")
async def find_item(
    collection_id: Annotated[CollectionId, Query()], item_id: Annotated[ItemId, Query()], catalogue: CatalogueWriter
) -> FoundItem:
    """Look for an item."""
    return await catalogue.find(collection_id, item_id)


@router.post("/collection")
async def ensure_collection(asked: EnsureCollection, catalogue: CatalogueWriter) -> Ensured:
    """Let there be a collection, with what its items cover; of one that is there, only given texts are changed."""
    return await catalogue.ensure(asked)


@router.post("/items")
async def write_items(asked: WriteItems, catalogue: CatalogueWriter) -> WrittenItems:
    """Write items of a collection, in place of those with their ids; more than a request takes come in several."""
    return await catalogue.write_items(asked)


@router.post("/prefix")
async def hold_prefix(asked: HoldPrefix, catalogue: CatalogueWriter) -> PrefixAnswer:
    """Hold a prefix of the storage for a task, so that no other one puts files there; asked again, it goes on."""
    return await catalogue.hold(asked)


@router.post("/prefix/release", status_code=204)
async def release_prefix(asked: OfPrefix, catalogue: CatalogueWriter) -> None:
    """Let others have a prefix that a task holds."""
    await catalogue.release(asked)


@router.post("/registration", status_code=204)
async def register_item(asked: RegisterItem, catalogue: CatalogueWriter) -> None:
    """Write an item and its collection, both or none, while the task holds the prefix of the item's files."""
    await catalogue.register(asked)
