"""Whatever the umask of the shell is, what an installation stores is for its user alone."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pyogrio.raw
import pytest
import shapely
from tests.e2e.conftest import StartProcess
from tests.e2e.eventually import eventually
from tests.e2e.installation import Program, Up
from tests.e2e.processes import end_all, free_ports, graticule_command
from tests.e2e.site import opened_site

RunProgram = Callable[[Program], Program]


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    """Have programs begin with the umask of most shells."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def new_home(home: Path) -> Path:
    """Return a data folder in which nothing was ever stored."""
    shutil.rmtree(home / "storage", ignore_errors=True)
    return home


@pytest.fixture
def run_program(home: Path) -> Iterator[RunProgram]:
    """Keep a program, begun with the umask of this test, until the test ends."""
    kept: list[Program] = []

    def run(program: Program) -> Program:
        kept.append(program)
        return program

    yield run
    for program in kept:
        program.close()
    end_all(home)


def open_to_others(folder: Path) -> dict[str, str]:
    """Return what somebody else than the owner could use, with its mode."""
    found = {path: path.lstat().st_mode for path in (folder, *folder.rglob("*"))}
    return {str(path.relative_to(folder)): stat.filemode(mode) for path, mode in found.items() if mode & 0o077}


def test_the_storage_of_a_first_start_is_private(new_home: Path, run_program: RunProgram, tmp_path: Path) -> None:
    up = Up(new_home)
    run_program(up)
    up.until_ready()
    storage = new_home / "storage"
    assert open_to_others(storage) == {}
    bronze = storage / "bronze" / "ddh"
    bronze.mkdir(parents=True)
    points = shapely.to_wkb(shapely.points([(1.0, 2.0), (3.0, 4.0)]))
    pyogrio.raw.write(bronze / "wells.gpkg", points, [], [], geometry_type="Point", crs="EPSG:4326")
    with opened_site(up, tmp_path) as site:
        source = {"container_name": "bronze", "blob_name": "ddh/wells.gpkg"}
        site.run("vector_ingest", **source, table_name="direct_wells", geoparquet=True)
    assert [path.suffix for path in (storage / "silver").rglob("*") if path.is_file()] == [".parquet"]
    assert open_to_others(storage / "silver") == {}
    assert open_to_others(new_home / "logs").keys() <= {path.name for path in (new_home / "logs").iterdir()}
    assert stat.S_IMODE((new_home / "logs").stat().st_mode) == 0o700


def test_the_demonstration_stores_its_samples_privately(new_home: Path, run_program: RunProgram) -> None:
    demo = run_program(Program(new_home.parent, graticule_command(), "demo", GRATICULE_HOME=str(new_home)))
    bronze = new_home / "storage" / "bronze"
    eventually(lambda: bronze.exists() and any(bronze.rglob("*.gpkg")), lambda: f"samples; {demo.errors}", 60)
    assert open_to_others(new_home / "storage") == {}
    demo.end()


@pytest.mark.parametrize("process", ["worker", "orchestrator", "serve"])
def test_a_process_closes_a_storage_that_was_left_open(start_process: StartProcess, folder: Path, process: str) -> None:
    storage = folder / "storage"
    storage.mkdir(mode=0o755)
    away = f"postgresql://someone@127.0.0.1:{free_ports()}/nowhere"
    program = start_process(process, GRATICULE_DATABASE_URL=away, GRATICULE_STORAGE_ROOT=str(storage))
    program.until_status("/livez", 200)
    assert stat.S_IMODE(storage.stat().st_mode) == 0o700
