"""What is checked of a submission before anything of it is written: its options, and whether its file is there."""

import asyncio
import re
from typing import Final

from graticule.core.errors import FieldFault, InvalidInput, NotFound, SourceNotFound, Unavailable
from graticule.core.exchange import PlatformSubmission
from graticule.core.models import Platform
from graticule.core.models.platform import DataType
from graticule.core.sources import default_patterns
from graticule.dag.graph import Graph
from graticule.repositories.crs import is_known_crs
from graticule.repositories.database import Database
from graticule.services.workflow_choice import check_options, option_fault
from graticule.storage.paths import check_partner_blob
from graticule.storage.protocol import Storage

SOURCE_SECONDS: Final = 5.0  # for the storage to say whether a file is there
CRS_OPTIONS: Final = ("source_crs", "target_crs")
# The codes that the handlers take; a table has the number of its CRS, which only EPSG gives.
CRS_CODES: Final = {
    DataType.RASTER: re.compile(r"[A-Za-z_]+:[0-9A-Za-z_]+", re.ASCII),
    DataType.VECTOR: re.compile(r"EPSG:[0-9]{1,6}", re.ASCII),
}
_FOLDERS: Final = (".gdb",)  # formats that are a folder of files


class SubmissionChecks:
    """Looks at submissions at the door. Workers look again: the file may go, and the registry may change."""

    def __init__(self, database: Database, storage: Storage, source_seconds: float = SOURCE_SECONDS) -> None:
        self._database = database
        self._storage = storage
        self._source_seconds = source_seconds
        self._known_crs: set[str] = set()

    async def check(self, platform: Platform, asked: PlatformSubmission, graph: Graph) -> int | None:
        """Refuse options that cannot be used, and a file that is not there; 503 when the storage does not say.

        Returns the size of the file, or None for a folder of files.
        """
        check_options(graph, asked)
        await self._check_crs(asked)
        check_source_admitted(platform, asked)
        return await self._source_bytes(platform, f"{asked.container_name}/{asked.file_name}")

    def check_form(self, asked: PlatformSubmission) -> None:
        """Refuse a file that can be no partner's."""
        check_partner_blob(asked.container_name, asked.file_name, self._storage.options)

    async def _check_crs(self, asked: PlatformSubmission) -> None:
        named = {name: asked.processing_options[name] for name in CRS_OPTIONS if name in asked.processing_options}
        codes = {name: code for name, code in named.items() if isinstance(code, str)}
        unknown = [name for name, code in codes.items() if not await self._is_known_crs(asked.data_type, code)]
        if unknown:
            what = "is not the code of a CRS that is known here"
            raise InvalidInput(
                f"processing_options: {' and '.join(unknown)} {what}.",
                hint="Write an EPSG code such as EPSG:4326; https://epsg.io finds them.",
                faults=[option_fault(name, f"It {what}.", "unknown_crs") for name in unknown],
            )

    async def _is_known_crs(self, data_type: DataType, code: str) -> bool:
        if not CRS_CODES[data_type].fullmatch(code):
            return False
        if code not in self._known_crs:
            async with self._database.connection() as connection:
                if not await is_known_crs(connection, code):
                    return False
            self._known_crs.add(code)
        return True

    async def _source_bytes(self, platform: Platform, path: str) -> int | None:
        storage = self._storage.limited_to(platform.source_containers)
        try:
            async with asyncio.timeout(self._source_seconds):
                return await _bytes_at(storage, path)
        except (NotFound, InvalidInput):  # a link out of the sources is as good as no file
            raise missing_source(platform) from None
        except TimeoutError:
            raise Unavailable(
                f"The storage has not said within {self._source_seconds:g} s whether the file is there.",
                hint="Submit it again; nothing was kept of this attempt.",
            ) from None


def check_source_admitted(platform: Platform, asked: PlatformSubmission) -> None:
    """Refuse a file that is not among the sources of its platform, as if it were missing."""
    if not platform.admits(f"{asked.container_name}/{asked.file_name}"):
        raise missing_source(platform)


def missing_source(platform: Platform) -> SourceNotFound:
    """Return the error for a file that is not there, or that another partner has."""
    message = f"There is no such file among the sources of the platform {platform.platform_id}."
    patterns = platform.source_containers or default_patterns(platform.platform_id)
    return SourceNotFound(
        message,
        hint=f"Put it there first, and spell container_name and file_name as it is called: {', '.join(patterns)}.",
        faults=[FieldFault(("body", "file_name"), message, SourceNotFound.code)],
    )


async def _bytes_at(storage: Storage, path: str) -> int | None:
    try:
        return (await storage.stat(path)).size
    except NotFound:
        if path.endswith(_FOLDERS):
            async for _ in storage.list(path):
                return None
        raise
