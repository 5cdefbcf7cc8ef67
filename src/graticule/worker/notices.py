"""What wakes a worker."""

from collections.abc import AsyncIterator
from typing import Protocol

from graticule.repositories.listener import Heard


class Notices(Protocol):
    """Tells of queues that have tasks, and of jobs that were cancelled."""

    def heard(self) -> AsyncIterator[Heard]:
        """Give what there is to tell, as it comes."""
