"""The version is said in one place, `pyproject.toml`; wherever else it must stand, it is the same."""

import re
import subprocess
import tomllib
from pathlib import Path

import graticule

ROOT = Path(__file__).resolve().parents[2]
# Images of ours, by name and tag, and what kustomize puts in place of the tags.
TAGS = re.compile(r"(?:\bgraticule[\w-]*:|\$image:|newTag:\s*[\"']?)v?(\d+\.\d+\.\d+)")


def declared() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert isinstance(project["version"], str)
    return project["version"]


def test_the_package_has_the_declared_version() -> None:
    assert graticule.__version__ == declared()


def test_the_console_has_no_version_of_its_own() -> None:
    assert '"version"' not in (ROOT / "console/package.json").read_text()


def test_the_newest_entry_of_the_changelog_is_of_this_version() -> None:
    entries = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert entries[:2] == ["Unreleased", declared()]


def test_what_is_deployed_is_of_this_version() -> None:
    files = [path for path in (*(ROOT / "deploy").rglob("*"), *(ROOT / "docs" / "how-to").iterdir()) if path.is_file()]
    found = {
        str(path.relative_to(ROOT)): set(TAGS.findall(path.read_text(encoding="utf-8", errors="ignore")))
        for path in files
    }
    tagged = {name: versions for name, versions in found.items() if versions}
    assert {"deploy/azure/main.bicepparam", "docs/how-to/containers.md", "docs/how-to/kubernetes.md"} <= set(tagged)
    assert {name: versions for name, versions in tagged.items() if versions != {declared()}} == {}


def test_no_python_file_says_a_version() -> None:
    command = ["grep", "-rlE", r"__version__\s*=\s*[\"']", "--include=*.py", str(ROOT / "src"), str(ROOT / "scripts")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
