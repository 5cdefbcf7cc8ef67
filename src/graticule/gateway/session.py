"""`/api/session`: who is signed in to the console, signing in and signing out.

By a key or at an OpenID issuer; both end in a cookie that no script can read, and no credential is kept in the browser.
"""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, Secret

from graticule import __version__
from graticule.config import Settings
from graticule.core.errors import GraticuleError, NotFound, TooManyRequests, Unavailable
from graticule.core.ids import PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller, Deed
from graticule.gateway.forwarding import SET_SERVICE_KEY
from graticule.gateway.proxy import TheProxy
from graticule.gateway.services import TheSettings
from graticule.gateway.view import SERVE
from graticule.http.callers import caller_if_known, caller_of_key, count_failure, shows_session
from graticule.http.problems import problem_responses
from graticule.http.sessions import (
    CONSOLE_HEADER,
    SESSION_COOKIE,
    SESSION_PATH,
    SIGN_IN_COOKIE,
    drop_cookie,
    keep_cookie,
    kept_cookie,
)
from graticule.logs import get_logger
from graticule.services.oidc_sign_in import HOME, Failure, OpenIdSignIn, SignInFailed
from graticule.services.sessions import Sessions

CALLBACK_PATH: Final = f"{SESSION_PATH}/oidc/callback"

_log = get_logger(__name__)

router = APIRouter(prefix=SESSION_PATH, tags=["session"])


class SessionCaller(BaseModel):
    """Who is signed in, and what that person may do."""

    name: str
    roles: list[ClientRole]
    deeds: list[Deed]
    platform_id: PlatformId | None = Field(description="The partner for which it speaks; null for staff.")

    @classmethod
    def of(cls, caller: Caller) -> "SessionCaller":
        """Tell of a caller."""
        deeds = [deed for deed in Deed if caller.may(deed)]
        return cls(name=caller.name, roles=sorted(caller.roles), deeds=deeds, platform_id=caller.platform_id)


class SignInWays(BaseModel):
    """How one can sign in here."""

    api_key: bool = True
    oidc: str | None = Field(None, description="What the button says that leads to the issuer; null: there is none.")


class BaseMap(BaseModel):
    """What lies below the maps."""

    tiles: str = Field(description="The address of a tile, with {z}, {x} and {y} in it.")
    attribution: str


class SessionView(BaseModel):
    """Who is signed in, and what the console needs to know of this server."""

    caller: SessionCaller | None = Field(description="Null: nobody is signed in.")
    sign_in: SignInWays
    live: bool = Field(description="Whether event streams are passed on here.")
    services: bool = Field(description="Whether `/api/view` reaches the services.")
    base_map: BaseMap | None = Field(description="Null: draw the coastlines of the bundle.")
    version: str = __version__


class KeyOfCaller(BaseModel):
    """By what one signs in."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    api_key: Secret[Annotated[str, Field(min_length=1, max_length=512)]] = Field(examples=["gtc_…"])


async def _sessions(request: Request) -> Sessions:
    sessions: Sessions | None = request.app.state.sessions
    if sessions is None:
        raise Unavailable(
            "This gateway has no service key, so nobody can sign in to its console.", hint=SET_SERVICE_KEY
        )
    return sessions


async def _open_id(request: Request) -> OpenIdSignIn:
    found: OpenIdSignIn | None = request.app.state.open_id_sign_in
    if found is None:
        raise NotFound(
            "Nobody can sign in here at an issuer.",
            hint="That needs GRATICULE_OIDC_ISSUER, GRATICULE_OIDC_CLIENT_ID and GRATICULE_SERVICE_KEY.",
        )
    return found


async def _view_of(request: Request, settings: TheSettings, proxy: TheProxy) -> SessionView:
    """Tell of this server, before anybody is signed in."""
    tiles = settings.console_base_map
    return SessionView(
        caller=None,
        sign_in=SignInWays(oidc=None if request.app.state.open_id_sign_in is None else settings.oidc_label),
        live=request.app.state.streams,
        services=proxy.has(SERVE),
        base_map=None if tiles is None else BaseMap(tiles=tiles, attribution=settings.console_base_map_attribution),
    )


TheSessions = Annotated[Sessions, Depends(_sessions)]
TheIssuer = Annotated[OpenIdSignIn, Depends(_open_id)]
TheView = Annotated[SessionView, Depends(_view_of)]
# It is asked for before the body is read; see `CallerBeforeBody`.
FromConsole = Annotated[
    Literal["1"], Header(alias=CONSOLE_HEADER, description="Says that it is the console that asks.")
]


@router.get("", responses=problem_responses(429, 503))
async def session(request: Request, response: Response, view: TheView) -> SessionView:
    """Tell who is signed in, if anybody, and how one can be; a session that has ended is forgotten."""
    caller = await caller_if_known(request)
    if caller is not None:
        return _of(view, caller)
    if await shows_session(request):
        drop_cookie(request, response, SESSION_COOKIE)
    return view


@router.post("", responses=problem_responses(401, 403, 429, 503))
async def sign_in(
    given: KeyOfCaller,
    request: Request,
    response: Response,
    *,
    sessions: TheSessions,
    view: TheView,
    from_console: FromConsole,
) -> SessionView:
    """Sign in by a key."""
    key = given.api_key.get_secret_value()
    caller = await caller_of_key(request, key)
    keep_cookie(request, response, SESSION_COOKIE, sessions.begun_by_key(key), life=sessions.life)
    _log.info("signed in", caller=caller.name, by="key")
    return _of(view, caller)


@router.delete("", status_code=204, responses=problem_responses(403))
async def sign_out(request: Request, response: Response, from_console: FromConsole) -> None:
    """Sign out: the browser forgets the session, and the tiles and documents that it has kept."""
    drop_cookie(request, response, SESSION_COOKIE)
    response.headers["Clear-Site-Data"] = '"cache"'
    _log.info("signed out", caller=await _name_if_known(request))


_LEADS_ON: Final[dict[int | str, dict[str, Any]]] = {303: {"description": "Leads on."}, **problem_responses(404)}


@router.get("/oidc", status_code=303, response_class=RedirectResponse, responses=_LEADS_ON)
async def begin_at_issuer(
    request: Request,
    issuer: TheIssuer,
    settings: TheSettings,
    to: Annotated[str, Query(description="The page of the console that is wanted afterwards.")] = HOME,
) -> RedirectResponse:
    """Lead to the issuer, to sign in there."""
    try:
        way = await issuer.begin(_own_address(request, settings) + CALLBACK_PATH, to)
    except SignInFailed as failure:
        return _led_back(failure)
    answer = RedirectResponse(way.address, 303)
    keep_cookie(request, answer, SIGN_IN_COOKIE, way.kept, life=issuer.life)
    return answer


@router.get("/oidc/callback", status_code=303, response_class=RedirectResponse, responses=_LEADS_ON)
async def come_back_from_issuer(
    request: Request,
    issuer: TheIssuer,
    sessions: TheSessions,
    *,
    code: str = "",
    state: str = "",
    error: Annotated[str, Query(description="Why the issuer signs nobody in.")] = "",
) -> RedirectResponse:
    """Sign in whom the issuer knows, and lead to the page that was wanted; or to the first one, with the reason."""
    try:
        found = await issuer.finish(kept_cookie(request, SIGN_IN_COOKIE), state=state, code=code, error=error)
    except SignInFailed as failure:
        answer = _led_back(await _counted(request, failure))
    else:
        answer = RedirectResponse(found.to, 303)
        keep_cookie(request, answer, SESSION_COOKIE, sessions.begun_by_issuer(found.caller), life=sessions.life)
        _log.info("signed in", caller=found.caller.name, by="issuer")
    drop_cookie(request, answer, SIGN_IN_COOKIE)
    return answer


def _of(view: SessionView, caller: Caller) -> SessionView:
    return view.model_copy(update={"caller": SessionCaller.of(caller)})


async def _name_if_known(request: Request) -> str | None:
    """Give who signs out, for the log; whoever it is, signing out succeeds."""
    try:
        caller = await caller_if_known(request)
    except GraticuleError:
        return None
    return None if caller is None else caller.name


async def _counted(request: Request, failure: SignInFailed) -> SignInFailed:
    """Count what was refused, as wrong keys are. Who signs in is never counted, so nobody can lock others out."""
    if failure.reason is Failure.REFUSED:
        try:
            await count_failure(request)
        except TooManyRequests as refusal:
            return SignInFailed(Failure.UNAVAILABLE, refusal.message)
    return failure


def _led_back(failure: SignInFailed) -> RedirectResponse:
    _log.info("nobody was signed in", reason=failure.reason, detail=failure.detail)
    return RedirectResponse(f"{HOME}?sign_in={failure.reason}", 303)


def _own_address(request: Request, settings: Settings) -> str:
    """Give where the issuer leads back to, which it has to know: our address, or that of the request."""
    address = settings.public_url
    return str(request.base_url if address is None else address.get_secret_value()).rstrip("/")
