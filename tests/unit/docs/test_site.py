"""The documentation is built as a site, without a warning, and needs nothing of any other host."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml
from scripts.documentation.commands import commands
from scripts.documentation.http_apis import APIS, operations
from scripts.documentation.site import build, gather
from tests.openapi import documents
from tests.unit.docs.pages import DOCS
from typer.main import get_command

from graticule.cli.main import app
from graticule.core.models.engine import EventType
from graticule.core.refusals import Refusal
from graticule.handlers.registry import handlers
from graticule.services.workflow_library import shipped_folder

TAG = re.compile(r"<([a-z][a-z0-9]*)\s([^>]*)>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
LOADED = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "object": "data"}
ONLY_NAMED = ("canonical", "alternate", "next", "prev")
ROOT = "http://site/"


@dataclass(frozen=True)
class Page:
    """What a built page has: anchors, links, and what a browser loads with it."""

    anchors: frozenset[str]
    links: frozenset[str]
    loaded: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Take a page apart; a whole parser would take ten times as long for so many."""
        tags = [(tag, dict(ATTRIBUTE.findall(rest))) for tag, rest in TAG.findall(path.read_text(encoding="utf-8"))]
        return cls(
            frozenset(given[name] for _, given in tags for name in ("id", "name") if name in given),
            frozenset(unescape(given["href"]) for tag, given in tags if tag == "a" and "href" in given),
            frozenset(
                given[LOADED[tag]]
                for tag, given in tags
                if LOADED.get(tag) in given and given.get("rel") not in ONLY_NAMED
            ),
        )


@dataclass
class Site:
    """The site as it was built."""

    folder: Path
    built: "subprocess.CompletedProcess[str]"

    @cached_property
    def pages(self) -> dict[str, Page]:
        """All pages, by their addresses."""
        found = {}
        for path in self.folder.rglob("*.html"):
            found[f"{ROOT}{path.relative_to(self.folder)}"] = Page.read(path)
        return found

    def text(self, place: str) -> str:
        """Give the source of a page without its marks."""
        source = (self.folder / place).read_text(encoding="utf-8")
        return unescape(re.sub(r"<[^>]+>", "", source))

    def file(self, address: str) -> Path:
        """Give the file at an address."""
        found = self.folder / unquote(urlsplit(address).path).lstrip("/")
        return found / "index.html" if found.is_dir() else found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("documentation")
    gather(folder, documents())
    return Site(folder / "site", build(folder))


def test_it_is_built_without_a_warning(site: Site) -> None:
    said = re.sub(r"\x1b\[[\d;]*m", "", site.built.stdout + site.built.stderr)
    assert site.built.returncode == 0, said
    assert "warning" not in said.lower()


def test_every_page_is_in_the_navigation(site: Site) -> None:
    class Loader(yaml.SafeLoader):
        """Reads what names Python objects as nothing."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    config = yaml.load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    made = {str(path.relative_to(site.folder).with_suffix(".md")) for path in site.folder.rglob("*.html")} - {"404.md"}
    assert set(entries(config["nav"])) == made
    assert written <= made


def entries(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
            yield from entries(each)


def test_every_link_leads_somewhere(site: Site) -> None:
    lost = set()
    for address, page in site.pages.items():
        for link in page.links:
            target = urlsplit(urljoin(address, link))
            if f"{target.scheme}://{target.netloc}/" == ROOT and not leads(site, target.geturl()):
                lost.add((address.removeprefix(ROOT), link))
    assert lost == set()


def leads(site: Site, target: str) -> bool:
    place, _, anchor = target.partition("#")
    page = site.pages.get(f"{ROOT}{site.file(place).relative_to(site.folder)}")
    return site.file(place).is_file() and (not anchor or page is None or unquote(anchor) in page.anchors)


def test_nothing_is_loaded_from_elsewhere_and_all_that_is_loaded_is_there(site: Site) -> None:
    loaded = {urljoin(address, each) for address, page in site.pages.items() for each in page.loaded}
    assert [each for each in loaded if not each.startswith((ROOT, "data:"))] == []
    assert [each for each in loaded if each.startswith(ROOT) and not site.file(each).is_file()] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.folder.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", styles) == []


def test_pages_with_diagrams_have_what_draws_them(site: Site) -> None:
    drawn = {address for address in site.pages if 'class="mermaid"' in site.file(address).read_text(encoding="utf-8")}
    assert f"{ROOT}reference/states.html" in drawn
    drawing = {address for address, page in site.pages.items() if "mermaid.js" in " ".join(page.loaded)}
    assert drawing == drawn


def test_it_can_be_searched(site: Site) -> None:
    index = json.loads((site.folder / "search.json").read_text(encoding="utf-8"))
    found = {item["location"].partition("#")[0] for item in index["items"]}
    assert {"how-to/jobs.html", "reference/http/gateway.html", "reference/errors.html"} <= found


@pytest.mark.parametrize("name", APIS)
def test_every_operation_is_told(site: Site, name: str) -> None:
    told, prefix = site.text(f"reference/http/{name}.html"), APIS[name].prefix
    known = [f"{method.upper()} {prefix}{path}".rstrip("/") for path, method, _ in operations(documents()[name])]
    assert known
    assert [each for each in known if each not in told] == []


def test_every_command_and_option_is_told(site: Site) -> None:
    told = site.text("reference/command_options.html")
    for names, command in commands(get_command(app)):
        assert " ".join(names) in told
        options = [name for each in command.params if each.param_type_name == "option" for name in each.opts]
        assert [name for name in options if name not in told] == []


def test_every_handler_workflow_refusal_and_event_is_told(site: Site) -> None:
    for page, names in (
        ("handler_list", [name for name, each in handlers().items() if each.module.startswith("graticule.")]),
        ("workflow_list", [path.stem for path in shipped_folder().glob("*.yaml")]),
        ("errors", [*Refusal]),
        ("events", [*EventType]),
    ):
        told = site.text(f"reference/{page}.html")
        assert [name for name in names if name not in told] == [], page
