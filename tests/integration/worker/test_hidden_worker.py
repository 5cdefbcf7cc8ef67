"""A worker hides from its child processes before there is one."""

import ctypes

from tests.integration.worker.conftest import StartWorker

GET_DUMPABLE = 3
SET_DUMPABLE = 4


async def test_a_worker_that_works_is_hidden(start_worker: StartWorker) -> None:
    prctl = ctypes.CDLL(None).prctl
    prctl(SET_DUMPABLE, 1, 0, 0, 0)  # other tests have had workers in this process
    async with start_worker():
        assert prctl(GET_DUMPABLE, 0, 0, 0, 0) == 0
