"""The map pages take nothing from anywhere else, and say of the asset no more than its title."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from graticule.core.errors import Unavailable
from graticule.http.problems import install_problem_handlers
from graticule.serve.viewer import pages, raster_page, static_files, vector_page
from graticule.serve.viewer.files import FOLDER, MAPLIBRE, require_maplibre

HOSTILE = "\"'><script>alert(1)</script>&amp; $title"
TILEJSON = 'https://maps.example.org:8443/maps/tiles/a/tilejson.json?version=2&rescale="0,9"'

Page = Callable[..., HTMLResponse]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text within each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag = self.found[-1][0] if self.found else ""
        self.text[tag] = self.text.get(tag, "") + data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


async def get(app: FastAPI, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        return await client.get(path, **options)


def site(page: Page, root: str | None = "/maps", title: str = HOSTILE) -> FastAPI:
    app = FastAPI()
    install_problem_handlers(app)
    app.mount("/static", static_files())

    @app.get("/tiles/a/map.html")
    def the_page(request: Request) -> HTMLResponse:
        if root is not None:
            request.state.root = root
        return page(request, tilejson_url=TILEJSON, title=title)

    return app


@pytest.mark.parametrize(("page", "kind"), [(raster_page, "raster"), (vector_page, "vector")])
async def test_a_page_names_its_tiles_and_shows_its_title_as_text(page: Page, kind: str) -> None:
    answer = await get(site(page), "/tiles/a/map.html")
    elements = Elements(answer.text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    (shown,) = elements.attributes("main")
    # Without the host: the page asks the one that it came from.
    assert shown["data-tilejson"] == '/maps/tiles/a/tilejson.json?version=2&rescale="0,9"'
    assert shown["data-kind"] == kind
    assert elements.text["title"].strip() == HOSTILE
    assert elements.text["span"].strip() == HOSTILE


@pytest.mark.parametrize(("root", "static"), [("/maps", "/maps/static/"), ("", "/static/"), (None, "/static/")])
async def test_a_page_loads_only_files_of_this_process(root: str | None, static: str) -> None:
    answer = await get(site(raster_page, root), "/tiles/a/map.html")
    elements = Elements(answer.text)
    (script,) = elements.attributes("script")
    sheets = [link["href"] for link in elements.attributes("link") if link["rel"] == "stylesheet"]
    assert script["src"] == f"{static}map.js"
    assert sheets == [f"{static}maplibre/maplibre-gl.css", f"{static}map.css"]
    assert elements.text["script"].strip() == ""  # nothing inline
    assert elements.attributes("style") == []
    assert not any(name.startswith("on") or name == "style" for _, given in elements.found for name in given)


async def test_the_policy_allows_this_host_and_no_inline_code() -> None:
    answer = await get(site(raster_page), "/tiles/a/map.html")
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy.pop("img-src") == "'self' data:"
    assert {sources for name, sources in policy.items()} == {"'none'", "'self'"}
    assert {name for name, sources in policy.items() if sources == "'self'"} == {
        *("script-src", "worker-src", "style-src", "connect-src")
    }


@pytest.mark.parametrize("name", [*MAPLIBRE, "LICENSE.txt"])
async def test_maplibre_is_served_from_the_package(name: str) -> None:
    answer = await get(site(raster_page), f"/static/maplibre/{name}")
    assert answer.status_code == 200
    assert answer.content == (FOLDER / "maplibre" / name).read_bytes()
    kind = {".mjs": "/javascript", ".css": "/css", ".txt": "/plain"}[Path(name).suffix]
    assert kind in answer.headers["content-type"]  # otherwise a browser refuses it


async def test_a_browser_asks_about_the_files_that_it_keeps() -> None:
    app = site(raster_page)
    first = await get(app, "/static/map.js")
    again = await get(app, "/static/map.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["nothing.js", "../pages.py", "%2e%2e/pages.py", "..%2fpages.py", "", "maplibre"])
async def test_nothing_else_is_served(path: str) -> None:
    answer = await get(site(raster_page), f"/static/{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


async def test_a_page_whose_map_could_not_be_drawn_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "require_maplibre", lambda: require_maplibre(tmp_path))
    answer = await get(site(raster_page), "/tiles/a/map.html")
    assert answer.status_code == 503
    assert "MapLibre" in answer.json()["detail"]
    assert "make setup" in answer.json()["hint"]


@pytest.mark.parametrize("missing", MAPLIBRE)
def test_every_file_of_maplibre_is_needed(tmp_path: Path, missing: str) -> None:
    (tmp_path / "maplibre").mkdir()
    for name in MAPLIBRE:
        (tmp_path / "maplibre" / name).touch()
    require_maplibre(tmp_path)
    (tmp_path / "maplibre" / missing).unlink()
    with pytest.raises(Unavailable):
        require_maplibre(tmp_path)
