"""What `graticule verify` finds in an output: faults, and contents that nothing can be compared with."""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from graticule.storage.protocol import BlobInfo

MAX_FAULTS: Final = 100  # of one output; a mosaic may have lost thousands of tiles


class FaultCode(StrEnum):
    """What is wrong."""

    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"  # it is longer or shorter than the catalog says
    FILE_CONTENT = "file_content"  # it has another hash than the catalog says
    FILE_REWRITTEN = "file_rewritten"  # it was written again since it was last hashed
    TABLE_MISSING = "table_missing"
    TABLE_REPLACED = "table_replaced"  # another job has made the table
    TABLE_OWNER = "table_owner"  # it belongs to somebody who could change its rows
    TABLE_EXTENDED = "table_extended"  # somebody has added to it what is no row, such as an index on an expression
    TABLE_CONTENT = "table_content"  # its rows are not those that were loaded
    ITEM_MISSING = "item_missing"
    ITEM_TARGET = "item_target"  # it describes another file than the one that is served
    ITEM_CONTENT = "item_content"  # it is not the one that was registered


# Only a look at the contents finds these, and so only such a look finds that they are gone.
OF_CONTENTS: Final = frozenset({FaultCode.FILE_CONTENT, FaultCode.TABLE_CONTENT})


class Fault(BaseModel):
    """One thing that is wrong with an output, and where."""

    model_config = ConfigDict(frozen=True)

    code: FaultCode
    place: str
    message: str


class Findings:
    """What was found in one output so far; memory does not grow with the number of faults."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._left_out = 0
        self._mark = hashlib.sha256()
        self.has_files = False
        self.unhashed: list[str] = []  # what has no recorded hash

    def add(self, code: FaultCode, place: str, message: str) -> None:
        """Note a fault."""
        self.extend([Fault(code=code, place=place, message=message)])

    def extend(self, faults: Iterable[Fault]) -> None:
        """Note several faults."""
        for fault in faults:
            if len(self._faults) < MAX_FAULTS:
                self._faults.append(fault)
            else:
                self._left_out += 1

    def see(self, blob: BlobInfo) -> None:
        """Note that a file is there, and in which edition."""
        self.has_files = True
        self._mark.update(f"{blob.path} {blob.etag}\n".encode())

    @property
    def mark(self) -> str | None:
        """What is the same until one of the files is written again; None when there are no files."""
        return self._mark.hexdigest() if self.has_files else None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults; where there are too many, the last one says how many more there are."""
        if not self._left_out:
            return tuple(self._faults)
        last = self._faults[-1]
        more = f"{last.message} So it is with {self._left_out:,} more."
        return (*self._faults[:-1], last.model_copy(update={"message": more}))
