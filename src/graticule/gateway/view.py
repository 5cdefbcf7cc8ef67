"""`/api/view/…`: staff look at the data through the gateway: what is in service, and what waits for a decision.

The internal services answer, in the caller's name. What they say of keeping an answer holds here too, so that browsers
keep the tiles of a map.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request
from starlette.datastructures import MutableHeaders
from starlette.responses import StreamingResponse

from graticule.config import Settings
from graticule.core.errors import Unavailable
from graticule.core.permissions import Caller, Deed
from graticule.core.tile_counts import COUNT_HEADERS
from graticule.gateway.proxy import SENT_BACK, Passage, PassedOn, TheProxy
from graticule.http.callers import Uncounted, ensure_allowed
from graticule.http.parts import part
from graticule.http.problems import problem_responses
from graticule.services.service_addresses import REVISION_HEADER
from graticule.services.service_tokens import TO_SERVICES, ServiceTokens

SERVE: Final = "serve"  # the target
PREFIX: Final = "/api/view"
METHODS: Final = ("GET", "HEAD")
SENT_ON: Final = (
    "accept",
    "accept-encoding",  # vector tiles stay compressed on their whole way
    "accept-language",
    "if-modified-since",
    "if-none-match",
    "range",
)
CREDENTIALS: Final = "Cookie, Authorization, X-API-Key"
SHOWN: Final = r"^((preview|tiles|features)/|stac(/|$))"

router = APIRouter(prefix=PREFIX, tags=["view"], responses=problem_responses(401, 403, 429, 503))

ViewedPath = Annotated[
    str,
    Path(
        max_length=2048,
        pattern=SHOWN,
        description="The path at the services: below `preview/`, `tiles/`, `features/` or `stac`.",
        examples=["stac/collections"],
    ),
]


def passage_to_services(settings: Settings) -> Passage:
    """Give the way to the internal services, which are told who looks; without a key they show no previews."""
    tokens = ServiceTokens.of(settings.serve_key, TO_SERVICES)
    return Passage(
        SERVE,
        PREFIX,
        SENT_ON,
        (*SENT_BACK, "cache-control", REVISION_HEADER, *COUNT_HEADERS),
        sign=None if tokens is None else tokens.sign,
        on_refusal="Set GRATICULE_SERVE_KEY to the same value for the gateway and for the services.",
        endless=False,
    )


async def _caller_who_looks(caller: Uncounted) -> Caller:
    return ensure_allowed(caller, Deed.INSPECT)


async def view(
    path: ViewedPath,
    request: Request,
    proxy: TheProxy,
    passage: Annotated[Passage, Depends(part("passage_to_services"))],
    caller: Annotated[Caller, Depends(_caller_who_looks)],
) -> PassedOn:
    """Give what the internal services answer; previews of what waits for a decision are for those who may review."""
    if not proxy.has(SERVE):
        raise Unavailable(
            "This gateway does not know where the services are.",
            hint="Name them: GRATICULE_PROXY_TARGETS=serve=http://host:8003.",
        )
    answer = await proxy.pass_on(passage, path, request, caller)
    _keep_to_caller(answer.headers)
    return answer


def _keep_to_caller(headers: MutableHeaders) -> None:
    """Let nobody else be given what one caller was shown, whatever the services say to those who need no credential."""
    headers.add_vary_header(CREDENTIALS)
    if "cache-control" in headers:
        said = (each.strip() for each in headers["cache-control"].split(","))
        others = (each for each in said if not each.lower().startswith(("public", "private", "s-maxage")))
        headers["cache-control"] = ", ".join(["private", *others])


_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "What the services answered.", "content": {"*/*": {"schema": {}}}},
    "2XX": {"description": "What the services answered."},
    "3XX": {"description": "It has not changed (304), or is elsewhere at the services."},
    **problem_responses(400, 404, 410, 414, 422, 504),
}

for _method in METHODS:
    router.add_api_route(
        "/{path:path}",
        view,
        methods=[_method],
        response_model=None,
        responses=_ANSWERS,
        operation_id=f"view_{_method.lower()}",
        summary=f"Look at the data: {_method}",
        response_class=StreamingResponse,
    )
