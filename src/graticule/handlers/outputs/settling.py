"""What becomes of a promotion that is over: finished when its outputs are catalogued, otherwise taken back."""

from graticule.handlers.catalogue import Catalogue
from graticule.handlers.outputs.staging import (
    finish,
    promotion_of,
    remove_scratch,
    stage_again,
    staged_sizes,
)
from graticule.storage.protocol import Storage


async def settle(storage: Storage, catalogue: Catalogue, job_id: str) -> bool:
    """Finish or take back what a job has begun to promote, by what the catalogue says now; tell whether there was any.

    Several attempts of a job can end at the same time, and a lost one long after the others. So it is looked at under
    the lock, and what another job has catalogued at the same place meanwhile is left alone.
    """
    begun = await promotion_of(storage, job_id)
    if begun is None:
        return False
    async with catalogue.holding(begun.blob_prefix) as hold:
        promotion = await promotion_of(storage, job_id)  # another one may have settled it
        if promotion is None:
            return False
        item = await hold.item(promotion.collection_id, promotion.item_id)
        if not promotion.is_over(item):
            await stage_again(storage, job_id, promotion, hold.confirm)
        elif promotion.is_in(item):
            await finish(storage, job_id, promotion, hold.confirm)
        elif not await staged_sizes(storage, job_id):  # all of it was catalogued, and superseded since
            await remove_scratch(storage, job_id)
    return True
