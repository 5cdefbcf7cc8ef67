"""The console's session as HTTP carries it: cookies that no script can read, and the sign that a change is its own."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from fastapi import Request, Response

from graticule.config import Settings
from graticule.core.errors import CrossSiteRequest

SESSION_PATH: Final = "/api/session"
# A page of another site cannot send it: browsers would ask us first, and we would not let it.
CONSOLE_HEADER: Final = "X-Graticule-Console"
FROM_CONSOLE: Final = "1"
OWN_SITES: Final = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True)
class Cookie:
    """What a browser keeps for us; it is sent only below the path, as other ports of this host get cookies too."""

    name: str
    path: str
    same_site: Literal["strict", "lax"] = "strict"


SESSION_COOKIE: Final = Cookie("graticule_session", "/api")
# Lax: it has to come along when the issuer leads back here.
SIGN_IN_COOKIE: Final = Cookie("graticule_sign_in", SESSION_PATH, "lax")


def kept_cookie(request: Request, cookie: Cookie) -> str | None:
    """Give what a browser has kept for us."""
    name, _ = _scope_of(cookie, is_https=_is_https(request))
    return request.cookies.get(name) or None


def keep_cookie(request: Request, response: Response, cookie: Cookie, value: str, *, life: timedelta) -> None:
    """Let a browser keep something: sent to this host alone, and only by https where that is how we are reached."""
    is_https = _is_https(request)
    name, path = _scope_of(cookie, is_https=is_https)
    response.set_cookie(
        name,
        value,
        max_age=int(life.total_seconds()),
        path=path,
        secure=is_https,
        httponly=True,
        samesite=cookie.same_site,
    )


def drop_cookie(request: Request, response: Response, cookie: Cookie) -> None:
    """Let a browser forget what it has kept."""
    keep_cookie(request, response, cookie, "", life=timedelta(0))


def ensure_from_console(request: Request) -> None:
    """Raise `CrossSiteRequest` unless the console itself asks, and no page of another site in its name."""
    site = request.headers.get("Sec-Fetch-Site")
    if request.headers.get(CONSOLE_HEADER) == FROM_CONSOLE and (site is None or site in OWN_SITES):
        return
    raise CrossSiteRequest(
        "This change may come from a page of another site, as far as this server can tell.",
        hint=f"The console sends `{CONSOLE_HEADER}: {FROM_CONSOLE}`; programs send an API key, and no cookie.",
    )


def _scope_of(cookie: Cookie, *, is_https: bool) -> tuple[str, str]:
    """Give the name of a cookie and its path.

    By https a prefix keeps other hosts from putting one there for us. It demands the path `/`, which gives little away:
    what shares our origin can act as the console whatever the path, and services have a host name of their own.
    """
    return (f"__Host-{cookie.name}", "/") if is_https else (cookie.name, cookie.path)


def _is_https(request: Request) -> bool:
    """Tell whether browsers reach us by https, also through a proxy that says nothing of it."""
    settings: Settings = request.app.state.settings
    public = settings.public_url
    return request.url.scheme == "https" or (public is not None and public.get_secret_value().scheme == "https")
