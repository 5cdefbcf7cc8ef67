"""Checks every output in service: its table, its files and its item, for each audience that is served it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from graticule.core.audience import Audience
from graticule.core.errors import GraticuleError, NotFound
from graticule.core.ids import AssetId
from graticule.core.models import OutputCheck
from graticule.core.models.platform import DataType
from graticule.core.table import DatabaseRole
from graticule.handlers.outputs.described_files import DescribedFile, files_of_item
from graticule.repositories.database import Database
from graticule.repositories.served_outputs import OutputCheckRepository, ServedOutput, ServedOutputs, TableDescription
from graticule.services.output_faults import OF_CONTENTS, Fault, FaultCode, Findings
from graticule.services.output_files import OutputFiles, prefix_of_tiles
from graticule.storage.protocol import Storage

MAX_ERRORS_IN_A_ROW: Final = 5  # then the storage is away rather than one file


@dataclass(frozen=True, slots=True)
class VerifiedOutput:
    """What was found in one output."""

    output: ServedOutput
    faults: tuple[Fault, ...] = ()
    unhashed: tuple[str, ...] = ()  # only their existence was checked
    error: str | None = None  # why it could not be checked


class OutputVerification:
    """One run over the outputs of an asset, or of all."""

    def __init__(
        self, database: Database, storage: Storage, *, is_quick: bool, on_read: Callable[[int], None] = lambda _: None
    ) -> None:
        """`is_quick` leaves out the contents; `on_read` hears how many bytes of files were read."""
        self._database, self._storage = database, storage
        self._is_quick, self._on_read = is_quick, on_read

    async def count(self, asset_id: str | None = None) -> int:
        """Count the outputs of a run; an asset that has none is `NotFound`."""
        async with self._database.connection() as connection:
            found = await ServedOutputs(connection).count(asset_id)
        if asset_id is not None and not found:
            raise NotFound(
                f"No version of an asset {asset_id} is in service.", hint="List assets with: graticule asset list"
            )
        return found

    async def run(self, asset_id: str | None = None) -> AsyncIterator[VerifiedOutput]:
        """Check one output after the other, and keep what is found; the run ends when nothing can be read any more."""
        errors_in_a_row, after = 0, None
        while page := await self._page(asset_id, after):
            for output in page:
                try:
                    found = await self._verify(output)
                    errors_in_a_row = 0
                except GraticuleError as error:
                    errors_in_a_row += 1
                    if errors_in_a_row == MAX_ERRORS_IN_A_ROW:
                        raise
                    found = VerifiedOutput(output, error=error.message)
                yield found
            after = page[-1]
        if asset_id is None:
            async with self._database.connection() as connection:
                await OutputCheckRepository(connection).forget_withdrawn()

    async def _page(self, asset_id: str | None, after: ServedOutput | None) -> list[ServedOutput]:
        async with self._database.connection() as connection:
            return await ServedOutputs(connection).page(asset_id, after)

    async def _verify(self, output: ServedOutput) -> VerifiedOutput:
        async with self._database.connection() as connection:
            outputs = ServedOutputs(connection)
            findings = Findings()
            if output.table_name is not None:
                await self._check_table(outputs, output, findings)
            await self._check_files(outputs, output, findings)
            if findings.faults and await outputs.find(output) != output:
                return VerifiedOutput(output)  # it was replaced or withdrawn while it was looked at
            checks = OutputCheckRepository(connection)
            await checks.record(self._settle(output, findings, await checks.last(output)))
        return VerifiedOutput(output, findings.faults, tuple(findings.unhashed))

    async def _check_table(self, outputs: ServedOutputs, output: ServedOutput, findings: Findings) -> None:
        name = f"{output.table_schema}.{output.table_name}"
        table = await outputs.describe_table(output)
        if table is None:
            findings.add(FaultCode.TABLE_MISSING, name, f"The table {name} is missing.")
        elif not _is_of(output, table):
            findings.add(
                FaultCode.TABLE_REPLACED, name, f"The table {name} is not the one of revision {output.revision}."
            )
        elif table.owner != DatabaseRole.OWNER:
            message = f"The table {name} belongs to {table.owner} and not to {DatabaseRole.OWNER}."
            findings.add(FaultCode.TABLE_OWNER, name, message)
        elif table.content_hash is None:
            findings.unhashed.append(name)
        elif table.objection is not None:
            findings.add(FaultCode.TABLE_EXTENDED, name, f"The table {name} is more than rows: {table.objection}.")
        elif not self._is_quick and await outputs.hash_table(output) != table.content_hash:
            findings.add(FaultCode.TABLE_CONTENT, name, f"The rows of the table {name} are not those that were loaded.")

    async def _check_files(self, outputs: ServedOutputs, output: ServedOutput, findings: Findings) -> None:
        expected = await self._described(outputs, output, findings)
        if output.blob_path is not None:
            expected.setdefault(output.blob_path, DescribedFile(output.blob_path))
        files = OutputFiles(self._storage, findings, is_quick=self._is_quick, on_read=self._on_read)
        for path in sorted(expected):
            is_intact = await files.check(expected[path])
            if is_intact and path == output.blob_path and _is_mosaic(output):
                hashes = {} if self._is_quick else await self._hashes_of_tiles(outputs, output, path)
                await files.check_tiles(path, hashes, output.output_hash)

    async def _described(
        self, outputs: ServedOutputs, output: ServedOutput, findings: Findings
    ) -> dict[str, DescribedFile]:
        """Return the files that the item of an output describes; it must describe the one that is served."""
        if output.item_id is None or output.collection_id is None:
            return {}
        name = f"{output.collection_id}/{output.item_id}"
        item = await outputs.item(output)
        if item.content is None:
            findings.add(FaultCode.ITEM_MISSING, name, f"The item {name} is missing from the catalog.")
            return {}
        if output.item_hash is None:
            findings.unhashed.append(f"the item {name}")
        elif item.hash != output.item_hash:
            findings.add(FaultCode.ITEM_CONTENT, name, f"The item {name} is not the one that was registered.")
        files = files_of_item(item.content, f"{self._container(output)}/")
        if output.blob_path is not None and output.blob_path not in files:
            message = f"The item {name} does not describe {output.blob_path}, which is served."
            findings.add(FaultCode.ITEM_TARGET, name, message)
        return files

    async def _hashes_of_tiles(self, outputs: ServedOutputs, output: ServedOutput, path: str) -> dict[str, str]:
        """Return the hashes that the catalog has of a mosaic's tiles; copies have those of their originals."""
        prefix, container = prefix_of_tiles(path), f"{self._container(output)}/"
        if prefix is None or output.collection_id is None:
            return {}
        own = f"{self._storage.options.silver}/"
        item_id = f"{output.item_id}-r{output.revision}"
        names = (output.collection_id.removesuffix("-public"), output.item_id, item_id)
        found = await outputs.hashes_of_tiles([f"{name}-tiles" for name in names], own + prefix.removeprefix(container))
        return {container + path.removeprefix(own): sha256 for path, sha256 in found.items()}

    def _container(self, output: ServedOutput) -> str:
        options = self._storage.options
        return options.silver if output.audience is Audience.INTERNAL else options.external

    def _settle(self, output: ServedOutput, findings: Findings, last: OutputCheck | None) -> OutputCheck:
        """Return what is kept of a check. A quick one cannot take back what a look at the contents has found."""
        now, mark = self._database.now(), findings.mark
        hashed_at: datetime | None = now
        files_mark = None if any(map(_is_of_file, findings.faults)) else mark
        if self._is_quick:
            hashed_at, files_mark = (last.hashed_at, last.files_mark) if last else (None, None)
            places = {fault.place for fault in findings.faults}
            known = [Fault.model_validate(fault) for fault in last.faults] if last else []
            findings.extend(each for each in known if each.code in OF_CONTENTS and each.place not in places)
            if files_mark not in {None, mark} and not any(map(_is_of_file, findings.faults)):
                place = output.blob_path or str(output.item_id)
                findings.add(FaultCode.FILE_REWRITTEN, place, _rewritten(place))
        return OutputCheck(
            asset_id=AssetId(output.asset_id),
            version_ordinal=output.version_ordinal,
            audience=output.audience,
            revision=output.revision,
            checked_at=now,
            hashed_at=hashed_at,
            files_mark=files_mark,
            faults=[fault.model_dump(mode="json") for fault in findings.faults],
        )


def _is_mosaic(output: ServedOutput) -> bool:
    return output.data_type is DataType.RASTER and str(output.blob_path).endswith(".json")


def _is_of(output: ServedOutput, table: TableDescription) -> bool:
    """Whether a table says that it was made for this revision."""
    if output.audience is Audience.INTERNAL:
        made_by = "Made by job " if output.job_id is None else f"Made by job {output.job_id}:"
        return (table.comment or "").startswith(made_by)
    asset = f"Public copy of asset {output.asset_id}, version {output.version_ordinal}"
    return (table.comment or "").startswith(f"{asset}, revision {output.revision},")


def _is_of_file(fault: Fault) -> bool:
    return fault.code.value.startswith("file_")


def _rewritten(place: str) -> str:
    return f"Files of {place} were written again since they were last hashed."


def fix_of(output: ServedOutput, fault: Fault) -> str:
    """Return the command that fixes a fault, after what its message asks for."""
    if fault.code in {FaultCode.FILE_REWRITTEN, FaultCode.TABLE_EXTENDED}:
        return f"graticule verify --asset {output.asset_id}"
    if fault.code is FaultCode.TABLE_OWNER:
        return "graticule schema migrate"
    version = f"{output.asset_id} --version {output.version_ordinal}"
    return f'graticule asset reprocess {version} --reason "damaged output"'
