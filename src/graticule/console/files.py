"""The files of the console: one page, which finds out by itself what its address stands for, and what it loads."""

from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.core.errors import Unavailable

FOLDER: Final = Path(__file__).parent / "static"

# The first parts of addresses that are no pages of the console, whatever else is found there.
NO_PAGES: Final = frozenset({"api", "storage", "static", "livez", "readyz", "health", "metrics", "openapi.json"})
FOR_EVER: Final = "public, max-age=31536000, immutable"
ASK_FIRST: Final = "no-cache"

HASHED: Final = "hashed/"  # where the build puts what has its hash in its name


class Console:
    """The console as it was built into a folder."""

    def __init__(self, folder: Path = FOLDER, base_map: str | None = None) -> None:
        """Take the bundle of a folder; its page may load the tiles of a base map from elsewhere."""
        self._page = folder / "index.html"
        self._files = StaticFiles(directory=folder / "static", check_dir=False)
        self._policy = content_security_policy(base_map)

    def page(self) -> FileResponse:
        """Give the page; it names its files by their hashes, so a browser has to ask for it each time."""
        if not self._page.is_file():
            raise Unavailable(
                "This installation has no console: its files are missing.",
                hint="In a checkout, run `make setup`; otherwise install a wheel that was built after it.",
            )
        headers = {"Content-Security-Policy": self._policy, "Cache-Control": ASK_FIRST, "Vary": "Accept"}
        return FileResponse(self._page, media_type="text/html", headers=headers)

    async def file(self, path: str, scope: Scope) -> Response:
        """Give a file that the page loads; what has its hash in its name never changes under it."""
        response = await self._files.get_response(path, scope)
        if _takes_gzip(scope):
            response = self._compressed(path, scope) or response
        response.headers["Cache-Control"] = FOR_EVER if path.startswith(HASHED) else ASK_FIRST
        response.headers["Vary"] = "Accept-Encoding"
        return response

    def _compressed(self, path: str, scope: Scope) -> Response | None:
        """Give the copy of a file that the build has compressed, if there is one."""
        copy, found = self._files.lookup_path(f"{path}.gz")
        if found is None:
            return None
        response = self._files.file_response(copy, found, scope)  # its type is that of the file
        response.headers["Content-Encoding"] = "gzip"
        return response


def _takes_gzip(scope: Scope) -> bool:
    return "gzip" in Headers(scope=scope).get("Accept-Encoding", "").replace(" ", "").split(",")


def content_security_policy(base_map: str | None) -> str:
    """Let the page load what is ours and nothing else, but for the tiles of a base map.

    The images in data: are the signs of MapLibre's buttons, which stand in its style sheet.
    """
    elsewhere = "" if base_map is None else f" {_origin(base_map)}"
    return (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; font-src 'self'; "
        f"img-src 'self' data:{elsewhere}; connect-src 'self'{elsewhere}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def wants_page(request: Request) -> bool:
    """Tell whether a browser asks for a page: programs take anything, or name what they want."""
    accepted = request.headers.get("Accept", "").split(",")
    return any(each.partition(";")[0].strip().lower() == "text/html" for each in accepted)


def install_console(app: FastAPI, console: Console) -> None:
    """Give out the console's files, and its page wherever there is nothing else."""
    app.state.console = console
    app.include_router(router)
    app.router.default = PageOtherwise(console, app.router.default)


class PageOtherwise:
    """Answers what no route does: pages of the console have addresses that only the console knows."""

    def __init__(self, console: Console, otherwise: ASGIApp) -> None:
        self._console = console
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the page to browsers, and to all others what they would get without."""
        if scope["type"] == "http" and _is_page(Request(scope)):
            await self._console.page()(scope, receive, send)
        else:
            await self._otherwise(scope, receive, send)


router = APIRouter(include_in_schema=False)


@router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
async def console_file(path: str, request: Request) -> Response:
    """Give a file that the console's page loads."""
    return await cast("Console", request.app.state.console).file(path, request.scope)


def _is_page(request: Request) -> bool:
    first = request.scope["path"].lstrip("/").partition("/")[0]
    return request.method in {"GET", "HEAD"} and first not in NO_PAGES and wants_page(request)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
