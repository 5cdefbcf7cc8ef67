"""Files of partners in Azure: a real worker and its child processes read them there, with an identity and no key."""

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.azure_login import identified
from tests.azurite_server import Azurite
from tests.conftest import new_database
from tests.integration.handlers.vector.ingesting import Ingestion
from tests.integration.handlers.vector.tables import Table, tables
from tests.integration.handlers.vector.test_round_trips import check
from tests.integration.handlers.vector.written import FORMATS, Format
from tests.rasters import make_raster

from graticule.storage.blocking import BlockingStorage
from graticule.storage.place import storage_of


@pytest.fixture(scope="module")
def in_azure(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingestion]:
    """Give a worker whose storage is in Azure."""
    with identified(azurite.environment), new_database() as database:
        made = Ingestion(database, tmp_path_factory.mktemp("azure"), **azurite.fresh().settings)
        yield made
        made.close()


def test_every_format_is_loaded_from_azure(in_azure: Ingestion) -> None:
    for form in FORMATS:
        load_one(in_azure, form)
    assert not (in_azure.storage / "silver").exists(), "something was written to this machine"


def load_one(ingestion: Ingestion, form: Format) -> None:
    @settings(max_examples=1, phases=[Phase.generate], derandomize=True, suppress_health_check=list(HealthCheck))
    @given(tables(form.able))
    def run(table: Table) -> None:
        file = ingestion.new_file(form.ending)
        form.write(file, table)
        check(form, table, ingestion.load(file, rows_per_chunk=2, **form.options))
        ingestion.rows.forget()

    run()


def test_a_raster_is_read_by_ranges_and_written_as_a_whole(in_azure: Ingestion) -> None:
    file = in_azure.new_file("tif")
    path = in_azure.stored(make_raster(file, "rgb"))
    job_id = in_azure.rows.new_job()
    container, _, blob = path.partition("/")
    source = in_azure.step(job_id, "raster.validate", container_name=container, blob_name=blob)
    made = in_azure.step(job_id, "raster.create_cog", source=path, source_etag=source["etag"])
    with BlockingStorage(storage_of(in_azure.settings)) as storage:
        (cog,) = [blob for blob in storage.list(storage.silver) if blob.path.endswith(".tif")]
        assert hashlib.sha256(storage.get(cog.path)).hexdigest() == made["checksum"]
