"""The address by which the services are known: links lead there, whatever a proxy in between made of a request."""

from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.http.problems import answer_error
from graticule.serve.answers import header_of


class PublicAddress:
    """Middleware that lets requests seem to have come to the configured address.

    With `own_names_only`, a request for another name of the DNS is refused: a page of that name, in the browser of
    someone of the house, could otherwise read what is served here as if it were its own.
    """

    def __init__(self, app: ASGIApp, address: str, *, own_names_only: bool = False) -> None:
        parts = urlsplit(address)
        self._name = parts.hostname if own_names_only else None
        self._app = app
        self._scheme = parts.scheme
        self._host = (b"host", parts.netloc.rpartition("@")[2].encode())
        self._prefix = parts.path.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the address that callers know."""
        if scope["type"] == "http":
            if self._name is not None and not _is_own(header_of(scope, b"host") or "", self._name):
                refusal = await answer_error(Request(scope), _misdirected(self._name))
                await refusal(scope, receive, send)
                return
            headers = [self._host, *(header for header in scope["headers"] if header[0] != b"host")]
            scope = {**scope, "scheme": self._scheme, "headers": headers, **self._below(scope["path"])}
        await self._app(scope, receive, send)

    def _below(self, path: str) -> dict[str, str]:
        """Put the prefix before the path, unless the proxy has left it there."""
        is_there = path == self._prefix or path.startswith(f"{self._prefix}/")
        full = path if is_there and self._prefix else f"{self._prefix}{path}"
        return {"path": full, "root_path": self._prefix}


def _is_own(host: str, name: str) -> bool:
    """Accept the configured name, addresses of IP, and names without dots, which no page of the web can have."""
    given = host.lower() if host.startswith("[") else host.lower().partition(":")[0]
    return given == name or "." not in given or given.replace(".", "").isdecimal()


def _misdirected(name: str) -> HTTPException:
    return HTTPException(
        421, f"This service is known as {name}. A proxy in between has to send that as the header Host."
    )


class WithoutSlash:
    """An application at the very address where it is mounted, which would lead there only with a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as if it had the slash."""
        await self._app({**scope, "root_path": scope["path"], "path": f"{scope['path']}/"}, receive, send)
