"""deploy/containers: linted, and what the images promise to whoever runs them."""

import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from scripts.setup import MAPLIBRE_FILES, ROOT
from tests.unit.deploy.containerfile import FILE, environment, last, lineage, stages, words
from tests.unit.deploy.test_bicep import settings_variables
from tests.unit.docs.pages import code, codes, page, table

from graticule.config import RunMode, secret_variables
from graticule.http.healthcheck import main as healthcheck

DOCS = page("containers.md")
IMAGES = {"graticule": "gateway", "graticule-worker": "worker", "graticule-serve": "serve"}
IGNORED = FILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()


def linted(text: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("hadolint")
    return subprocess.run([program, "--no-color", "-"], input=text, capture_output=True, text=True, check=False)


def test_the_linter_has_nothing_to_say() -> None:
    found = linted(FILE.read_text(encoding="utf-8"))
    assert (found.returncode, found.stdout) == (0, "")


def test_the_linter_would_find_what_is_wrong() -> None:
    found = linted("FROM python:latest\nRUN cd /tmp && pip install uv\n")
    assert {"DL3007", "DL3003", "DL3013"} <= set(re.findall(r"DL\d+", found.stdout))


def test_bases_are_pinned_by_version() -> None:
    said = re.findall(r"^ARG (?:PYTHON|NODE)_IMAGE=(\S+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(said) == 2
    assert all(re.search(r":\d+\.\d+\.\d+-", each) for each in said)
    bases = {stage.base for stage in stages().values()}
    assert bases - set(stages()) == {"${PYTHON_IMAGE}", "${NODE_IMAGE}"}


@pytest.mark.parametrize(("image", "process"), IMAGES.items())
def test_an_image_runs_its_process_as_nobody_in_particular(image: str, process: str) -> None:
    given = environment(image)
    assert last(image, "USER") == "10001:10001"
    assert words(last(image, "ENTRYPOINT")) == ["graticule"]
    assert last(image, "STOPSIGNAL") == "SIGTERM"
    assert given["GRATICULE_RUN_MODE"] == RunMode(process)
    assert given["GRATICULE_HOST"] == "0.0.0.0"
    assert given["PATH"].startswith("/opt/graticule/bin:")
    assert {name for name in given if name.startswith("GRATICULE_")} <= settings_variables()
    assert not set(given) & secret_variables()


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_what_is_built_elsewhere_and_nothing_that_builds(image: str) -> None:
    line = lineage(image)
    assert line[0].base == "${PYTHON_IMAGE}"
    (copied,) = [said for stage in line for said in stage.all("COPY")]
    assert re.fullmatch(rf"--from={image}-packages /opt/graticule /opt/graticule", copied)
    run = " ".join(said for stage in line for said in stage.all("RUN"))
    assert "pip uninstall --yes setuptools wheel pip" in run
    assert "ensurepip" in run
    assert not re.search(r"pip install|gcc|build-essential|npm", run)


@pytest.mark.parametrize("image", IMAGES)
def test_what_differs_with_each_build_comes_after_all_that_is_kept(image: str) -> None:
    said = [(kind, text) for stage in lineage(image) for kind, text in stage.instructions]
    first = said.index(("ARG", "VERSION"))
    assert {kind for kind, _ in said[first:]} == {"ARG", "LABEL"}
    assert "${REVISION}" in said[-1][1]


def test_nothing_is_compiled_at_each_start() -> None:
    assert environment("graticule-packages")["UV_COMPILE_BYTECODE"] == "1"
    assert "python -m compileall -q /usr/local/lib/python3.11 " in " ".join(stages()["base"].all("RUN"))


def extras(image: str) -> list[str]:
    (install,) = [said for said in stages()[f"{image}-packages"].all("RUN") if "--requirement pyproject.toml" in said]
    assert "--require-hashes --constraint requirements.lock" in install
    return re.findall(r"--extra (\w+)", install)


def test_each_image_has_the_packages_of_its_processes_as_the_page_says() -> None:
    told = {code(row[0]): codes(row[2]) for row in table(DOCS, "| image | runs | extras |")}
    assert told == {image: extras(image) for image in IMAGES}


def test_the_stage_with_node_takes_along_what_setup_does() -> None:
    copies = " ".join(stages()["console"].all("RUN"))
    assert re.findall(r"node_modules/maplibre-gl/(\S+)", copies) == list(MAPLIBRE_FILES)


def test_nothing_reaches_the_builder_but_what_the_stages_copy() -> None:
    assert IGNORED[1] == "*"
    allowed = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    copied = {
        source.rstrip("/").split("/")[0]
        for stage in stages().values()
        for said in stage.all("COPY")
        if "--from=" not in said
        for source in said.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/livez" else 503)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_the_health_check_tells_by_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = words(last("graticule", "HEALTHCHECK").partition("CMD ")[2])
    assert check == ["python", "-m", "graticule.http.healthcheck"]
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("GRATICULE_PORT", str(server.server_port))
        assert [healthcheck(), healthcheck("/readyz")] == [0, 1]
        server.shutdown()
    assert healthcheck() == 1
    assert "no answer" in capsys.readouterr().out


def test_the_health_check_is_cheap() -> None:
    """It runs every few seconds: it must not load what the process needs."""
    loaded = "import sys, graticule.http.healthcheck; print('fastapi' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
