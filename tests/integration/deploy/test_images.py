"""The steps that install an image, run as they stand; and processes that can write to the places of the page alone."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb
from tests.conftest import HOME_VARIABLE, TestDatabase
from tests.e2e.eventually import eventually
from tests.integration.deploy.container import DATA, as_root, command, files_left, require_root, running, volume
from tests.rasters import make_raster
from tests.unit.deploy.containerfile import Stage, environment, last, stages, words
from tests.unit.docs.pages import code, page, table
from tests.wheel import ROOT

IMAGE = "graticule"
PLACES = {code(row[0]): row[1] for row in table(page("containers.md"), "| place | who | what for |")}
# What was downloaded once is as good as new; and what is compiled already need not be compiled again.
NOT_HERE = {"UV_COMPILE_BYTECODE", "UV_NO_CACHE"}
PACKAGES = Path(psycopg.__file__).parents[1]
LOOK = """
import json, importlib.util, os, sys
def written(place):
    try:
        open(os.path.join(place, "x"), "w").close()
    except OSError as error:
        return error.strerror
    return "written"
absent = ("rasterio", "numpy", "pyogrio", "osgeo", "pyproj", "pip", "hatchling", "pytest")
present = ("graticule", "azure.identity", "opentelemetry.sdk", "psycopg_binary")
print(json.dumps({
    "found": [name for name in absent if importlib.util.find_spec(name)],
    "lacking": [name for name in present if not importlib.util.find_spec(name)],
    "user": [os.getuid(), os.getgid(), os.getpid()],
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")],
    "written": {place: written(place) for place in sys.argv[1:]},
}))
"""


@pytest.fixture(scope="module")
def opt() -> Iterator[Path]:
    """Give the folder /opt of the slim image, made by the steps of its stages, all but that which brings uv."""
    require_root()
    folder = Path(tempfile.mkdtemp(dir=os.environ[HOME_VARIABLE]))  # in memory, where that is: there are many files
    folder.chmod(0o755)
    (folder / "build").mkdir()
    copy(stages()["build"], folder / "build")
    for name in ("wheel", f"{IMAGE}-packages"):
        copy(stages()[name], folder / "build")
        for step in stages()[name].all("RUN"):
            done = run_step(step, folder)
            assert done.returncode == 0, f"{step}\n{done.stderr}"
    lend_compiled(folder / "graticule" / "lib" / PACKAGES.parts[-2] / "site-packages")
    yield folder
    shutil.rmtree(folder)


def copy(stage: Stage, build: Path) -> None:
    """Copy what a stage copies of the repository; what comes of other stages is there, the console among it."""
    for said in stage.all("COPY"):
        for source in [] if "--from=" in said else said.split()[:-1]:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, build / source, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, build)


def run_step(step: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step with what is on this machine already, and only if that is not enough with what has to be fetched."""
    given = {name: value for name, value in environment(f"{IMAGE}-packages").items() if name not in NOT_HERE}
    # An image has one Python; here there may be others, in places that the user of a container cannot enter.
    python = str(Path(sys.executable).resolve())
    told = {**os.environ, **given, "UV_PYTHON": python, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = as_root(step, folder, {**told, "UV_OFFLINE": "1"})
    if done.returncode != 0:
        shutil.rmtree(folder / "graticule", ignore_errors=True)
        done = as_root(step, folder, told)
    return done


def lend_compiled(installed: Path) -> None:
    """Let Python find the compiled files of the same versions; those of other ones it passes over."""
    for folder, _, _ in os.walk(installed):
        compiled = PACKAGES / Path(folder).relative_to(installed) / "__pycache__"
        if compiled.is_dir():
            Path(folder, "__pycache__").symlink_to(compiled)


def image_environment(**further: str) -> dict[str, str]:
    """Give the variables of the image, and these."""
    given = environment(IMAGE)
    return {**given, "PATH": given["PATH"].replace("$PATH", "/usr/bin:/bin"), **further}


def database_variables(database: TestDatabase, role: str) -> dict[str, str]:
    """Tell a process where its database is, as the manifests do."""
    parts = conninfo_to_dict(database.url(role))
    parts["host"] = "127.0.0.1"  # the socket is in a folder of whoever runs the tests
    names = {"host": "HOST", "port": "PORT", "dbname": "DB", "user": "USER", "password": "PASSWORD"}
    return {f"GRATICULE_POSTGRES_{name}": str(parts[part]) for part, name in names.items()}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def until_ready(port: int) -> None:
    """Wait until a process says that it is ready, or fail with what keeps it."""
    address = f"http://127.0.0.1:{port}/readyz"
    eventually(lambda: httpx.get(address).status_code == 200, lambda: httpx.get(address).text)


def test_uv_is_taken_in_the_version_of_the_lock_with_its_hashes(tmp_path: Path) -> None:
    (step,) = stages()["build"].all("RUN")
    taken, installed = step.split("&&")
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    subprocess.run(["sh", "-euc", taken], cwd=tmp_path, check=True)
    lines = (tmp_path / "uv.lock").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"uv==[\d.]+ \\", lines[0])
    assert len(lines) > 5
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines[1:])
    assert "--require-hashes --requirement uv.lock" in installed


def test_the_slim_image_has_what_it_needs_no_gdal_and_nothing_to_change(opt: Path, tmp_path: Path) -> None:
    places = [*PLACES, DATA, "/opt/graticule", "/etc", "/var/log", "/dev/shm"]
    writable = {"/tmp": volume(tmp_path / "tmp"), f"{DATA}/storage": volume(tmp_path / "storage")}
    volume(tmp_path / "storage" / "external")
    looked = command(["python", "-c", LOOK, *places], tmp_path, opt=opt, writable=writable)
    done = subprocess.run(looked, env=image_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["found"], found["lacking"]) == ([], [])
    assert (found["user"], found["capabilities"]) == ([10001, 10001, 1], ["0000000000000000"])
    refused = {place for place, outcome in found["written"].items() if outcome != "written"}
    assert refused == set(places) - set(PLACES)


def test_the_gateway_of_the_image_gets_ready_and_ends_by_sigterm(
    opt: Path, tmp_path: Path, database: TestDatabase
) -> None:
    port = free_port()
    keys = dict.fromkeys(("GRATICULE_ADMIN_KEY", "GRATICULE_SERVICE_KEY", "GRATICULE_SERVE_KEY"), "k" * 40)
    told = image_environment(GRATICULE_PORT=str(port), **database_variables(database, "graticule_gateway"), **keys)
    tmp = volume(tmp_path / "tmp")

    def contained(*run: str) -> list[str]:
        return command(list(run), tmp_path, opt=opt, writable={"/tmp": tmp})

    with running(contained(*words(last(IMAGE, "ENTRYPOINT"))), told) as gateway:
        gateway.told("serving")
        until_ready(port)
        check = words(last(IMAGE, "HEALTHCHECK").partition("CMD ")[2])
        healthy = subprocess.run(contained(*check, "/readyz"), env=told, capture_output=True, text=True, check=False)
        assert (healthy.returncode, healthy.stderr) == (0, "")
        assert "<!doctype html>" in httpx.get(f"http://127.0.0.1:{port}/", headers={"Accept": "text/html"}).text
        assert gateway.terminate() == 0
    assert "Traceback" not in gateway.log
    assert files_left(tmp) == []


TASK = """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params)
    VALUES ('task', 'job', 'node', 'container-tasks', 'raster.create_cog', %s)
"""


def test_a_worker_makes_a_cog_where_it_can_write_to_its_places_alone(tmp_path: Path, database: TestDatabase) -> None:
    require_root()
    storage, tmp = volume(tmp_path / "storage"), volume(tmp_path / "tmp")
    (storage / "bronze").mkdir(mode=0o755)
    make_raster(storage / "bronze" / "dem.tif", "dem").chmod(0o644)
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # a task of no job
        connection.execute(TASK, [Jsonb({"source": "bronze/dem.tif", "blob_prefix": "acme/dem"})])
        told = {
            **image_environment(GRATICULE_PORT=str(free_port())),
            **database_variables(database, "graticule_worker"),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",  # what the image would have is in this environment
            "GRATICULE_LOG_LEVEL": "INFO",
        }
        run = ["graticule", "worker", "--queues", "container-tasks", "--concurrency", "1"]
        contained = command(run, tmp_path, writable={"/tmp": tmp, f"{DATA}/storage": storage})
        with running(contained, told) as worker:
            worker.told("serving")
            status, error = eventually(lambda: _ended(connection), lambda: f"a result\n{worker.log}")
            assert status == "completed", f"{error}\n{worker.log}"
            assert worker.terminate() == 0
    assert [each.name for each in storage.rglob("*.tif")] == ["dem.tif", "dem.tif"]
    assert files_left(tmp) == []


def _ended(connection: psycopg.Connection) -> tuple[str, str | None] | None:
    statement = "SELECT status::text, error_message FROM dagapp.dag_task_results WHERE status <> 'running'"
    return connection.execute(statement).fetchone()
