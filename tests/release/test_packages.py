"""What `make dist` makes: complete, and nothing but ours; the same from everywhere is seen where it is built."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from scripts.dist import uncommitted
from tests.wheel import ROOT, released, run_dist

import graticule

ASIDE = r"\]\((?!https?://)|<img|src="  # links and images that lead into the repository
OF_DEVELOPERS = {"dev", "docs"}


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_the_whole_package_and_no_more(wheel: Path) -> None:
    packed = names(wheel)
    assert {name.partition("/")[0] for name in packed} == {"graticule", f"graticule-{graticule.__version__}.dist-info"}
    assert {
        "graticule/py.typed",
        "graticule/schema/prepare.sql",
        "graticule/workflows/hello_world.yaml",
        "graticule/serve/viewer/page.html",
        "graticule/serve/viewer/static/maplibre/maplibre-gl.mjs",
        "graticule/console/static/index.html",
    } <= set(packed)
    assert not [name for name in packed if "node_modules" in name or "__pycache__" in name]


def test_the_wheel_carries_the_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = f"graticule-{graticule.__version__}.dist-info/licenses"
        assert archive.read(f"{inside}/LICENSE") == (ROOT / "LICENSE").read_bytes()
        notice = archive.read(f"{inside}/NOTICE").decode()
        named = re.findall(r"graticule/\S+", notice)
        texts = [archive.read(name).decode() for name in named]
    assert len(named) == 2
    assert all("Copyright" in text for text in texts)
    assert all(f"## {bundled} " in texts[0] for bundled in ("react", "maplibre-gl", "@xyflow/react"))


def test_the_description_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = archive.read(f"graticule-{graticule.__version__}.dist-info/METADATA").decode()
    metadata = Parser().parsestr(told)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# Graticule")
    assert not re.search(ASIDE, text)
    extras = set(metadata.get_all("Provides-Extra", []))
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == extras - OF_DEVELOPERS


def test_the_base_install_of_the_wheel_has_no_gdal(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = archive.read(f"graticule-{graticule.__version__}.dist-info/METADATA").decode()
    needed = [Requirement(line) for line in Parser().parsestr(told).get_all("Requires-Dist", [])]
    always = {each.name for each in needed if each.marker is None}
    assert "fastapi" in always
    assert not always & {"rasterio", "pyogrio", "numpy"}


def test_the_source_distribution_has_the_console_and_what_it_is_built_from(wheel: Path) -> None:
    source, _ = released()
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "src/graticule/console/static/index.html",
        "src/graticule/serve/viewer/static/maplibre/maplibre-gl.mjs",
        "console/package-lock.json",
        "console/src/main.tsx",
        "requirements.lock",
        "tests/wheel.py",
        "LICENSE",
        "CHANGELOG.md",
    } <= packed
    assert not [name for name in packed if "node_modules" in name or name.startswith((".venv", ".git/", ".graticule"))]


def test_a_checkout_without_the_console_is_not_released(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(ROOT / "console", tmp_path / "console", ignore=shutil.ignore_patterns("node_modules", "src"))
    done = run_dist(checkout=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "dist: the console was not built from these sources. Run `make setup`, which needs npm for it.\n"
    )
    assert not (tmp_path / "dist").exists()


def test_what_is_in_no_commit_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert uncommitted(tmp_path) == []
    (tmp_path / "graticule.dump").write_text("all that partners sent")
    assert uncommitted(tmp_path) == ["graticule.dump"]


def test_a_wheel_that_lacks_a_file_is_not_released(wheel: Path, tmp_path: Path) -> None:
    lacking = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(lacking, "w") as archive:
        for name in whole.namelist():
            if name != "graticule/py.typed":
                archive.writestr(name, b"")
        archive.writestr("tests/conftest.py", b"")
    check = f"from pathlib import Path; from scripts.dist import *; require_whole_package(Path({str(lacking)!r}))"
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "lacking in the wheel: ['graticule/py.typed']; too much: ['tests/conftest.py']" in done.stderr
