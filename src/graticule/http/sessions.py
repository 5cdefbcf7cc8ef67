"""The console's session as HTTP carries it: cookies that no script can read, and the sign that a change is its own."""

from datetime import timedelta
from typing import Final, Literal

from fastapi import Request, Response

from graticule.core.errors import CrossSiteRequest

SESSION_PATH: Final = "/api/session"
SESSION_COOKIE: Final = "graticule_session"
# A page of another site cannot send it: browsers would ask us first, and we would not let it.
CONSOLE_HEADER: Final = "X-Graticule-Console"
FROM_CONSOLE: Final = "1"
OWN_SITES: Final = frozenset({"same-origin", "none"})


def kept_cookie(request: Request, name: str) -> str | None:
    """Give what a browser has kept for us."""
    return request.cookies.get(_full_name(request, name)) or None


def keep_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str,
    *,
    life: timedelta,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """Let a browser keep something: sent to this host alone, and only by https if it came by that."""
    response.set_cookie(
        _full_name(request, name),
        value,
        max_age=int(life.total_seconds()),
        path="/",
        secure=_is_https(request),
        httponly=True,
        samesite=same_site,
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Let a browser forget what it has kept."""
    keep_cookie(request, response, name, "", life=timedelta(0))


def ensure_from_console(request: Request) -> None:
    """Raise `CrossSiteRequest` unless the console itself asks, and no page of another site in its name."""
    site = request.headers.get("Sec-Fetch-Site")
    if request.headers.get(CONSOLE_HEADER) == FROM_CONSOLE and (site is None or site in OWN_SITES):
        return
    raise CrossSiteRequest(
        "This change may come from a page of another site, as far as this server can tell.",
        hint=f"The console sends `{CONSOLE_HEADER}: {FROM_CONSOLE}`; programs send an API key, and no cookie.",
    )


def _full_name(request: Request, name: str) -> str:
    """Give the name of a cookie. By https it has a prefix, with which no other host can put one there for us."""
    return f"__Host-{name}" if _is_https(request) else name


def _is_https(request: Request) -> bool:
    return request.url.scheme == "https"
