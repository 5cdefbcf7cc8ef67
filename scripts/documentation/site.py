"""The folder from which the site is built: a copy of what mkdocs.yml and the pages need, with the made pages in it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.documentation import commands, engine, http_apis, python_apis, vocabulary

HERE: Final = Path(__file__).resolve().parent
CHECKOUT: Final = HERE.parents[1]
PACKAGES: Final = HERE / "node_modules"  # `scripts/setup.py` brings them
ASSETS: Final = {
    "docs/assets/icon.svg": CHECKOUT / "console" / "public" / "static" / "icon.svg",
    "docs/assets/mermaid.js": PACKAGES / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js",
    "docs/assets/mermaid.LICENSE.txt": PACKAGES / "@mermaid-js" / "tiny" / "LICENSE",
    "docs/assets/iframe-worker.js": PACKAGES / "iframe-worker" / "shim" / "index.js",
    "docs/assets/iframe-worker.LICENSE.txt": PACKAGES / "iframe-worker" / "LICENSE",
    "docs/assets/style.css": HERE / "theme" / "style.css",
    "theme/main.html": HERE / "theme" / "main.html",
    "mkdocs.yml": CHECKOUT / "mkdocs.yml",
}
PROJECT: Final = ("changelog", "contributing", "security", "code_of_conduct")
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def made_pages(documents: Mapping[str, http_apis.Document] | None = None) -> dict[str, str]:
    """Give the pages that are made from the code, by their places below docs/."""
    others = (commands, python_apis, engine, vocabulary)
    return http_apis.pages(documents) | {place: text for part in others for place, text in part.pages().items()}


def gather(folder: Path, documents: Mapping[str, http_apis.Document] | None = None) -> None:
    """Bring all that the site is built from into a folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    for place, text in made_pages(documents).items():
        _put(folder / "docs" / place, text.encode())
    copy_written(folder)


def copy_written(folder: Path) -> None:
    """Copy what people have written, as far as the folder does not have it as it is now."""
    places = placed()
    for source, place in places.items():
        target = folder / place
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            _put(target, relinked(source, places).encode() if source.suffix == ".md" else source.read_bytes())


def placed() -> dict[Path, str]:
    """Give all that is copied, and where it goes: pages that stand at the root of the checkout have a folder here."""
    pages = {path: str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "docs").rglob("*") if path.is_file()}
    of_project = {CHECKOUT / f"{name.upper()}.md": f"docs/project/{name}.md" for name in PROJECT}
    assets = {source: place for place, source in ASSETS.items()}
    return pages | {path: place for path, place in of_project.items() if path.exists()} | assets


def relinked(page: Path, places: Mapping[Path, str]) -> str:
    """Give the text of a page with its links to where the other pages are here; other files are only named."""
    here = Path(places[page]).parent

    def moved(link: re.Match[str]) -> str:
        text, file, anchor = link.groups(default="")
        target = (page.parent / file).resolve()
        if target in places:
            return f"[{text}]({os.path.relpath(places[target], here)}{anchor})"
        return text if target.exists() else link[0]

    return _LINK.sub(moved, page.read_text(encoding="utf-8"))


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def generator(command: str, folder: Path, *options: str) -> list[str]:
    """Give the command that builds or serves the site of a folder."""
    return [sys.executable, "-m", "zensical", command, "--config-file", str(folder / "mkdocs.yml"), *options]


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder, and give what was said; every warning is an error."""
    return subprocess.run(
        generator("build", folder, "--strict"), cwd=folder, check=False, capture_output=True, text=True
    )
