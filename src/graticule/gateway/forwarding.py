"""Every change goes to the orchestrator by HTTP, in the name of the caller; the gateway itself writes nothing."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Self, TypeVar, cast
from urllib.parse import quote

import aiohttp
import httpx
from fastapi import Depends, FastAPI, Request, Response
from httpx_aiohttp import AiohttpTransport
from pydantic import BaseModel, JsonValue, ValidationError

from graticule.core.errors import InvalidInput, Unavailable
from graticule.core.permissions import Caller
from graticule.core.trace_context import TRACEPARENT, current_trace, current_traceparent
from graticule.http.problems import MEDIA_TYPE, Problem, ProblemResponse
from graticule.http.requests import REQUEST_ID_HEADER, request_id_of
from graticule.logs import get_logger
from graticule.services.service_tokens import HEADER
from graticule.telemetry import Kind, Span, span

CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 30.0
CONNECTIONS: Final = 100
LONGEST_STATE: Final = 512  # of a trace, which others may keep in a header
PRINTABLE: Final = r"^[ -~]*$"  # what a header can carry anywhere
SET_SERVICE_KEY: Final = "Set GRATICULE_SERVICE_KEY to the same value for the gateway and for the orchestrator."

# What a refusal may tell a partner of how things stand; whatever else it holds is ours.
PARTNERS_SEE: Final = frozenset(
    {
        "approval_state",
        "approved_revision",
        "asset_id",
        "clearance_state",
        "data_type",
        "deleted",
        "deleted_at",
        "latest_approved_version_ordinal",
        "platform_id",
        "processing_state",
        "rejection_reason",
        "request_id",
        "revision",
        "status",
        "version",
        "version_label",
        "version_ordinal",
        "versions",
    }
)

_log = get_logger(__name__)

M = TypeVar("M", bound=BaseModel)
Sign = Callable[[Caller], str]


class ForwardedProblem(Exception):
    """The orchestrator refused what was forwarded; the caller gets the same problem."""

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = dict(headers or {})


class Orchestrator:
    """A client of the orchestrator, for as long as the application runs."""

    def __init__(self, address: str, sign: Sign | None, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Make a client; `sign` makes the token that tells the orchestrator who the caller is."""
        self._address = address
        self._sign = sign
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        address = httpx.URL(self._address)
        self._client = httpx.AsyncClient(
            base_url=address.copy_with(userinfo=b""),
            auth=(address.username, address.password) if address.userinfo else None,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,  # a proxy of the environment would see the tokens
            transport=self._transport or _transport(address),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    def token(self, caller: Caller) -> str:
        """Make the token that speaks for a caller."""
        if self._sign is None:
            raise Unavailable(
                "This gateway has no service key, so it cannot forward anything to the orchestrator.",
                hint=SET_SERVICE_KEY,
            )
        return self._sign(caller)

    async def send(
        self,
        method: str,
        path: str,
        *,
        caller: Caller,
        body: BaseModel | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Forward a request and give its answer; a refusal is raised as the problem that it is."""
        content = None if body is None else _content(body)
        sent = {
            "Accept": "application/json",
            **({} if content is None else {"Content-Type": "application/json"}),
            **(headers or {}),
            HEADER: self.token(caller),
        }
        with span(f"{method} orchestrator", Kind.CLIENT) as asking:
            sent |= outgoing_trace()
            answer = await self._answer(method, path, content=content, params=params, headers=sent)
            record_answer(asking, answer)
        if answer.is_success:
            return answer
        raise _refusal(answer, caller)

    async def _answer(self, method: str, path: str, **sent: Any) -> httpx.Response:
        if self._client is None:
            raise Unavailable("The gateway is not running yet, or not any more.")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._client.request(method, path, **sent)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unavailable(
                "The orchestrator cannot be reached now; nothing was changed.", hint="Try again.", detail=repr(error)
            ) from error
        except (httpx.TransportError, TimeoutError) as error:
            raise Unavailable(
                "The orchestrator did not answer; whether the change was made is not known.",
                hint="Look at the state before you repeat it; a submission with the same Idempotency-Key is safe.",
                detail=repr(error),
            ) from error


def _transport(address: httpx.URL) -> httpx.AsyncBaseTransport:
    """Give what carries the requests: aiohttp, for httpx's own looks at all of its connections at each request."""

    def session() -> aiohttp.ClientSession:
        secure = httpx.create_ssl_context() if address.scheme == "https" else True  # else no certificates are loaded
        connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=secure)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    return AiohttpTransport(client=session, verify=False, trust_env=False)


class Forwarder:
    """Forwards on behalf of one request: its id and its trace go along."""

    def __init__(self, orchestrator: Orchestrator, request: Request) -> None:
        self._orchestrator = orchestrator
        self._along = trace_headers(request)

    async def send(
        self,
        method: str,
        path: str,
        answer: type[M],
        *,
        caller: Caller,
        body: BaseModel | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> M:
        """Forward, and give the answer as its model."""
        return parsed(await self.ask(method, path, caller=caller, body=body, params=params, headers=headers), answer)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        caller: Caller,
        body: BaseModel | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Forward, and give the answer as it came."""
        along = {**self._along, **(headers or {})}
        return await self._orchestrator.send(method, path, caller=caller, body=body, params=params, headers=along)


def trace_headers(request: Request) -> dict[str, str]:
    """Give the headers of a request that go along, beside its trace: by them it is found again in other logs."""
    state = request.headers.get("tracestate", "")
    is_known = current_trace() is not None and len(state) <= LONGEST_STATE and is_plain(state)
    found = {"tracestate": state if is_known else None, REQUEST_ID_HEADER: request_id_of(request.scope)}
    return {name: value for name, value in found.items() if value}


def outgoing_trace() -> dict[str, str]:
    """Give the header by which what another process does becomes part of the trace at hand."""
    here = current_traceparent()
    return {} if here is None else {TRACEPARENT: here}


def record_answer(asking: Span, answer: httpx.Response) -> None:
    """Note what another process has answered."""
    asking.set({"http.request.method": answer.request.method, "http.response.status_code": answer.status_code})
    if answer.is_server_error:
        asking.fail(f"status {answer.status_code}")


def is_plain(header: str) -> bool:
    """Tell whether the value of a header can be sent on: others than printable ASCII have no meaning of their own."""
    return header.isascii() and header.isprintable()


def _content(body: BaseModel) -> bytes:
    """Write a body as JSON, or raise `InvalidInput` for halves of characters, which JSON can name and not hold."""
    try:
        json.dumps(body.model_dump(exclude_unset=True), ensure_ascii=False, default=str).encode()
        return body.model_dump_json(exclude_unset=True).encode()
    except ValueError as error:
        raise InvalidInput(
            "The body holds text that is not Unicode.", hint="Send no lone surrogates.", detail=str(error)
        ) from None


def parsed(answer: httpx.Response, model: type[M]) -> M:
    """Read the orchestrator's answer; one of another form is its fault, not the caller's."""
    try:
        return model.model_validate_json(answer.content)
    except ValidationError as error:
        _log.error("the orchestrator's answer is not understood", path=answer.url.path, error=str(error))
        raise ForwardedProblem(_bad_gateway("The orchestrator's answer is not understood.")) from error


def install_forwarding(app: FastAPI) -> None:
    """Answer a refusal of the orchestrator with its own problem document."""
    app.add_exception_handler(ForwardedProblem, _answer_forwarded)


async def _answer_forwarded(request: Request, error: Exception) -> Response:
    refusal = cast("ForwardedProblem", error)
    problem = refusal.problem.model_copy(
        update={"request_id": request_id_of(request.scope), "instance": quote(request.scope["path"])}
    )
    _log.info("the orchestrator refused", status=problem.status, code=problem.code, detail=problem.detail)
    return ProblemResponse(problem.model_dump(mode="json", exclude_none=True), problem.status, refusal.headers)


def _refusal(answer: httpx.Response, caller: Caller) -> Exception:
    """Turn an answer that is not a success into what the caller may know of it."""
    problem = _problem_in(answer)
    if answer.status_code == 401:  # the caller is known here: it is our token that was not taken
        return Unavailable(
            "The orchestrator does not accept this gateway's service token.",
            hint=SET_SERVICE_KEY,
            detail=problem.detail if problem else None,
        )
    if problem is None or answer.status_code == 500:
        _log.error("the orchestrator failed", status=answer.status_code, path=answer.url.path)
        return ForwardedProblem(_bad_gateway("The orchestrator could not do it. Its log has the details."))
    if not caller.is_staff:
        problem = problem.model_copy(update={"current": for_partners(problem.current)})
    retry_after = answer.headers.get("Retry-After")
    return ForwardedProblem(problem, {} if retry_after is None else {"Retry-After": retry_after})


def _problem_in(answer: httpx.Response) -> Problem | None:
    if answer.headers.get("Content-Type", "").partition(";")[0].strip() != MEDIA_TYPE:
        return None
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError:
        return None
    return problem if problem.status == answer.status_code else None


def for_partners(value: JsonValue) -> JsonValue:
    """Keep of a document what a partner may see."""
    match value:
        case dict():
            return {name: for_partners(each) for name, each in value.items() if name in PARTNERS_SEE}
        case list():
            return [for_partners(each) for each in value]
    return value


def _bad_gateway(detail: str) -> Problem:
    code = "bad_gateway"
    return Problem(
        type=f"urn:graticule:problem:{code}", title="Bad gateway", status=502, detail=detail, code=code, hint=None
    )


async def _forwarder(request: Request) -> Forwarder:
    return Forwarder(request.app.state.orchestrator, request)


Forward = Annotated[Forwarder, Depends(_forwarder)]
