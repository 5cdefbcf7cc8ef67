"""The two map pages: one for a raster, one for features."""

from html import escape
from pathlib import Path
from string import Template
from typing import Final, Literal
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse

from graticule.serve.viewer.files import require_maplibre

# The images in data: are the signs of MapLibre's buttons, which stand in its style sheet.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_PAGE: Final = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))


def raster_page(request: Request, *, tilejson_url: str, title: str) -> HTMLResponse:
    """Show the raster tiles of a TileJSON document; they have to be those of WebMercatorQuad."""
    return _page(request, "raster", tilejson_url, title)


def vector_page(request: Request, *, tilejson_url: str, title: str) -> HTMLResponse:
    """Show the vector tiles of a TileJSON document; they have to be those of WebMercatorQuad."""
    return _page(request, "vector", tilejson_url, title)


def _page(request: Request, kind: Literal["raster", "vector"], tilejson_url: str, title: str) -> HTMLResponse:
    require_maplibre()
    filled = {
        "kind": kind,
        "title": title,
        "tilejson": _without_host(tilejson_url),
        "static": f"{getattr(request.state, 'root', '')}/static",
    }
    page = _PAGE.substitute({name: escape(value) for name, value in filled.items()})
    return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


def _without_host(url: str) -> str:
    """Keep what follows the host: a page asks the host that it came from, by whatever name that was reached."""
    return urlsplit(url)._replace(scheme="", netloc="", fragment="").geturl()
