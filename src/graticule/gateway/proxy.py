"""`/api/proxy/…`: operators reach the configured processes behind the gateway, and nothing else. Operators only.

What goes through is a choice, never a remainder: of a request's and of an answer's headers only those named are passed
on. The caller's credentials stay here; where a target believes us, a service token speaks for the caller.
"""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import quote

import httpx
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from graticule.core.cancellation import end_tasks
from graticule.core.errors import GraticuleError, InvalidInput, NotFound, Unavailable
from graticule.core.permissions import Caller
from graticule.gateway.forwarding import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    CONNECTIONS,
    SET_SERVICE_KEY,
    Orchestrator,
    Sign,
    is_plain,
    outgoing_trace,
    record_answer,
    trace_headers,
)
from graticule.http.callers import CallerWhoOperates
from graticule.http.parts import part
from graticule.http.problems import problem_responses
from graticule.http.sse import MEDIA_TYPE as EVENT_STREAM
from graticule.logs import get_logger
from graticule.services.service_tokens import HEADER
from graticule.telemetry import Kind, span

ORCHESTRATOR: Final = "orchestrator"
PREFIX: Final = "/api/proxy"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PROBE_SECONDS: Final = 2.0

SENT_ON: Final = (
    "accept",
    "accept-language",
    "content-type",
    "content-encoding",
    "content-length",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "idempotency-key",
    "last-event-id",
    "range",
)
SENT_BACK: Final = (
    "accept-ranges",
    "allow",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
    "etag",
    "last-modified",
    "retry-after",
    "vary",
)
# A page of another process must not act as one of ours; and nginx would hold the events of a stream back.
ADDED: Final[Mapping[str, str]] = {"Content-Security-Policy": "sandbox", "X-Accel-Buffering": "no"}

_TRICKS: Final = re.compile(rb"%(?:2f|5c|25|00)", re.IGNORECASE)
_NEVER_IN_A_PATH: Final = re.compile(r"[\x00-\x1f\x7f\\%]")

_log = get_logger(__name__)


class TargetHealth(BaseModel):
    """Whether a target answers."""

    ok: bool
    duration_ms: float
    status: int | None = Field(None, description="What its liveness probe answered.")
    reason: str | None = None


class ProxyHealth(BaseModel):
    """Whether the configured targets answer; where they are is not told."""

    status: Literal["healthy", "unhealthy"]
    targets: dict[str, TargetHealth]


@dataclass(frozen=True, slots=True)
class Passage:
    """The way from a route of ours to a target: what goes along, and where the answers seem to come from."""

    target: str
    root: str  # our address of all that the target has
    sent_on: tuple[str, ...] = SENT_ON
    sent_back: tuple[str, ...] = SENT_BACK
    sign: Sign | None = None  # makes the token that speaks for the caller
    on_refusal: str | None = None  # the hint for whoever runs us when the target does not believe our word
    endless: bool = True  # an answer that was asked for as a stream of events may pause for as long as it likes


@dataclass(frozen=True, slots=True)
class _Process:
    """A process behind the gateway: where it is, and the address by which it knows itself, if that is another."""

    address: httpx.URL
    known_as: httpx.URL | None = None

    @property
    def host(self) -> dict[str, str]:
        """Give the header that names it; it may refuse requests for other names."""
        return {} if self.known_as is None else {"host": self.known_as.netloc.decode("ascii")}

    @property
    def roots(self) -> tuple[httpx.URL, ...]:
        """Give the addresses below which its links lead."""
        return (self.address,) if self.known_as is None else (self.known_as, self.address)


class Proxy:
    """Passes requests on to the configured targets, for as long as the application runs."""

    def __init__(
        self,
        targets: Mapping[str, str],
        orchestrator: Orchestrator,
        *,
        known_as: Mapping[str, str] | None = None,
        streams: bool = True,
    ) -> None:
        """Make a proxy; without `streams` it refuses event streams, for servers that collect a whole answer.

        `known_as` has the addresses of those targets that know themselves by another one than we reach them at.
        """
        known = {name: httpx.URL(address) for name, address in (known_as or {}).items()}
        self._targets = {
            name: _Process(httpx.URL(address.rstrip("/")), known.get(name)) for name, address in targets.items()
        }
        self._orchestrator = orchestrator
        self._open = AsyncExitStack()
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._probing: httpx.AsyncClient | None = None
        self._streams = streams

    async def __aenter__(self) -> Self:
        """Open connections of their own for each target and for probes: who crowds one keeps nobody from the others."""
        by_https = any(each.address.scheme == "https" for each in self._targets.values())
        verify = httpx.create_ssl_context() if by_https else False  # else no certificates are loaded
        for name in self._targets:
            self._clients[name] = await self._open.enter_async_context(_client(verify))
        self._probing = await self._open.enter_async_context(_client(verify))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._clients.clear()
        self._probing = None
        await self._open.aclose()

    def has(self, target: str) -> bool:
        """Tell whether a target is configured."""
        return target in self._targets

    def passage(self, target: str) -> Passage:
        """Give the way by which operators reach a target; only the orchestrator is told who they are."""
        root = f"{PREFIX}/{target}"
        if target != ORCHESTRATOR:
            return Passage(target, root)
        return Passage(target, root, sign=self._orchestrator.token, on_refusal=SET_SERVICE_KEY)

    async def pass_on(self, passage: Passage, path: str, request: Request, caller: Caller) -> "PassedOn":
        """Send a request on, and give the answer as it comes in."""
        process = self._targets.get(passage.target)
        if process is None:
            raise NotFound(
                f"There is no target '{passage.target[:64]}'.", hint="`GET /api/proxy/health` lists the targets."
            )
        listens = passage.endless and EVENT_STREAM in request.headers.get("accept", "")
        client = _running(self._clients.get(passage.target))
        sent = client.build_request(
            request.method,
            _address(process.address, path, request),
            headers={**_headers_on(passage, request, caller), **process.host},
            content=request.stream() if _has_body(request) else None,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=None if listens else ANSWER_SECONDS),
        )
        answer = await self._answer(client, passage, sent)
        return PassedOn(answer, passage, process, request.app.state.stopping)

    async def _answer(self, client: httpx.AsyncClient, passage: Passage, sent: httpx.Request) -> httpx.Response:
        try:
            with span(f"{sent.method} {passage.target}", Kind.CLIENT) as asking:
                sent.headers.update(outgoing_trace())
                answer = await client.send(sent, stream=True)
                record_answer(asking, answer)
        except httpx.TransportError as error:
            raise Unavailable(
                f"The target '{passage.target}' does not answer.", hint="Try again.", detail=repr(error)
            ) from error
        if refusal := self._refusal(passage, answer):
            await answer.aclose()
            raise refusal
        return answer

    def _refusal(self, passage: Passage, answer: httpx.Response) -> GraticuleError | None:
        """Say why an answer is not passed on."""
        if answer.status_code == 401 and passage.on_refusal is not None:  # the caller is known here: it is about us
            return Unavailable(
                f"The target '{passage.target}' does not accept this gateway's service token.", hint=passage.on_refusal
            )
        if _is_event_stream(answer) and not self._streams:
            return InvalidInput("Event streams are not passed on here.", hint="Ask for the events in pages.")
        return None

    async def health(self) -> ProxyHealth:
        """Ask all targets at once whether they are alive."""
        found = await asyncio.gather(*(self._probe(each) for each in self._targets.values()))
        status: Literal["healthy", "unhealthy"] = "healthy" if all(each.ok for each in found) else "unhealthy"
        return ProxyHealth(status=status, targets=dict(zip(self._targets, found, strict=True)))

    async def _probe(self, process: _Process) -> TargetHealth:
        client, probe = _running(self._probing), f"{process.address}/livez"
        began = time.perf_counter()
        status, reason = None, None
        try:
            async with asyncio.timeout(PROBE_SECONDS), client.stream("GET", probe, headers=process.host) as answer:
                status = answer.status_code
        except TimeoutError:
            reason = f"no answer within {PROBE_SECONDS:g} s"
        except httpx.TransportError as error:
            _log.info("a target does not answer", error=repr(error))
            reason = "cannot be reached"
        milliseconds = round((time.perf_counter() - began) * 1000, 1)
        return TargetHealth(ok=status == 200, duration_ms=milliseconds, status=status, reason=reason)


def _client(verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20),
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # what one caller is given is no other's
        verify=verify,
    )


def _running(client: httpx.AsyncClient | None) -> httpx.AsyncClient:
    if client is None:
        raise Unavailable("The gateway is not running yet, or not any more.")
    return client


class PassedOn(StreamingResponse):
    """A target's answer on its way to the caller; it ends when either goes, or when the gateway stops."""

    def __init__(self, answer: httpx.Response, passage: Passage, process: _Process, stopping: asyncio.Event) -> None:
        chunks = answer.aiter_raw()
        body = _until_stopped(chunks, stopping) if _is_event_stream(answer) else chunks
        super().__init__(body, answer.status_code, _headers_back(answer, passage, process))
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the answer on, and let go of the target in any case."""
        try:
            await super().__call__(scope, receive, send)
        except httpx.TransportError as error:  # half an answer is out: only cutting the connection tells the caller
            _log.warning("a target broke off", error=repr(error))
            raise
        finally:
            await self._answer.aclose()


def _is_event_stream(answer: httpx.Response) -> bool:
    return str(answer.headers.get("content-type", "")).startswith(EVENT_STREAM)


async def _until_stopped(chunks: Any, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    stop: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
    following: asyncio.Future[Any] | None = None
    try:
        while not stop.done():
            following = asyncio.ensure_future(anext(chunks))
            await asyncio.wait({stop, following}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                yield following.result()
    except StopAsyncIteration:
        return
    finally:
        await end_tasks(stop, *filter(None, [following]))


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _address(base: httpx.URL, path: str, request: Request) -> httpx.URL:
    """Give the address at the target; the path leads downwards from the target's own, whatever is written in it."""
    if _TRICKS.search(request.scope.get("raw_path") or b"") or _NEVER_IN_A_PATH.search(path):
        raise InvalidInput("This path is not passed on.", hint="Write it without encoded separators and '%'.")
    parts = path.split("/")
    if any(part in {".", ".."} for part in parts) or "" in parts[:-1]:
        raise InvalidInput("This path is not passed on.", hint="Write it without empty parts, '.' and '..'.")
    query: bytes = request.scope.get("query_string", b"")
    written = "/".join(quote(part, safe="@:$,+=!*()~") for part in parts).encode()
    begin = base.raw_path.partition(b"?")[0].rstrip(b"/")
    try:
        return base.copy_with(raw_path=begin + b"/" + written + (b"?" + query if query else b""))
    except (httpx.InvalidURL, UnicodeDecodeError):
        raise InvalidInput("This address is not passed on.", hint="Shorten it, and percent-encode the query.") from None


def _headers_on(passage: Passage, request: Request, caller: Caller) -> dict[str, str]:
    asked = {name: request.headers[name] for name in passage.sent_on if name in request.headers}
    if strange := [name for name, value in asked.items() if not is_plain(value)]:
        raise InvalidInput(f"The header {strange[0]} is not passed on.", hint="Write it in printable ASCII.")
    spoken = {} if passage.sign is None else {HEADER: passage.sign(caller)}
    ours = {"user-agent": "graticule-gateway", **trace_headers(request), **spoken}
    return {"accept-encoding": "identity", **asked, **ours}


def _headers_back(answer: httpx.Response, passage: Passage, process: _Process) -> dict[str, str]:
    location = _location(answer, passage, process)
    answer.headers.encoding = "latin-1"  # as they will be encoded again
    kept = {name: answer.headers[name] for name in passage.sent_back if name in answer.headers}
    return {**kept, **ADDED, **({} if location is None else {"Location": location})}


def _location(answer: httpx.Response, passage: Passage, process: _Process) -> str | None:
    """Give where a target leads to, as it is reached from here; None when that is not within the target."""
    if "location" not in answer.headers:
        return None
    try:
        there = answer.url.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    for address in process.roots:
        root = address.path.rstrip("/") + "/"
        if _origin(there) == _origin(address) and there.path.startswith(root):
            return f"{passage.root}/{there.raw_path.decode('ascii').removeprefix(quote(root))}"
    return None


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


TheProxy = Annotated[Proxy, Depends(part("proxy"))]
Target = Annotated[str, Path(max_length=64, description="The name of a configured target.", examples=[ORCHESTRATOR])]
TargetPath = Annotated[str, Path(max_length=2048, description="The path at the target.", examples=["api/v1/queues"])]

router = APIRouter(prefix=PREFIX, tags=["proxy"], responses=problem_responses(401, 403, 429, 503))


@router.get("/health")
async def proxy_health(proxy: TheProxy, caller: CallerWhoOperates) -> ProxyHealth:
    """Tell whether the configured targets answer."""
    return await proxy.health()


async def pass_on(
    target: Target, path: TargetPath, request: Request, proxy: TheProxy, caller: CallerWhoOperates
) -> PassedOn:
    """Forward a request to a configured target, and give its answer."""
    return await proxy.pass_on(proxy.passage(target), path, request, caller)


_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "What the target answered.", "content": {"*/*": {"schema": {}}}},
    "2XX": {"description": "What the target answered."},
    "3XX": {"description": "The target leads elsewhere; `Location` is an address of this proxy, or left out."},
    **problem_responses(404, 413, 422),
}

for _method in METHODS:
    router.add_api_route(
        "/{target}/{path:path}",
        pass_on,
        methods=[_method],
        response_model=None,
        responses=_ANSWERS,
        operation_id=f"proxy_{_method.lower()}",
        summary=f"Forward a {_method} request",
        response_class=StreamingResponse,
    )
