"""The application of the STAC API, which the service mounts at `/stac`."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import cache
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from stac_fastapi.api.app import StacApi
from stac_fastapi.pgstac.config import Settings
from stac_fastapi.types.errors import InvalidQueryParameter, NotFoundError
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.core.audience import Audience
from graticule.http.problems import ProblemResponse, answer_error, install_problem_handlers, problem_of
from graticule.http.requests import request_id_of
from graticule.serve.openapi import Document, add_description, with_server
from graticule.serve.parameters import refuse_unknown_parameters
from graticule.serve.stac.client import DESCRIBED_AT, CatalogueClient
from graticule.serve.stac.connections import connection_of
from graticule.serve.stac.extensions import CORE, offered_extensions
from graticule.serve.stac.searches import LIMIT_DESCRIBED, MOST_ITEMS, USUAL_LIMIT

TITLE: Final = "Graticule"
DESCRIPTION: Final = "The catalogue of geospatial data in service."
STAC_VERSION: Final = "1.1.0"  # of the items, too


class _Settings(Settings):  # type: ignore[misc]  # the library is untyped
    """The library's settings, as they stand here: it would also look for them in the environment."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **_: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what is given, and nothing else."""
        return (init_settings,)


class _Api(StacApi):
    """The library's routes, without its probes: the process has its own."""

    def add_health_check(self) -> None:
        """Add none."""


class _OwnAddresses:
    """Middleware that lets the application know its own place, wherever it is mounted.

    Starlette gives a mounted application the addresses of the one around it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forget the application around this one, and find the landing page without a slash, too."""
        own = {name: value for name, value in scope.items() if name not in {"app_root_path", "router"}}
        if own.get("root_path") and own["path"] == own["root_path"]:
            own["path"] += "/"
        await self.app(own, receive, send)


def create_stac(audience: Audience) -> FastAPI:
    """Make the STAC API for an audience; the pool of its connections is to be set as `app.state.readpool`."""
    app = FastAPI(
        title=TITLE,
        description=DESCRIPTION,
        version=version("graticule"),
        openapi_url=DESCRIBED_AT,
        docs_url=None,
        redoc_url=None,
    )
    offered = offered_extensions()
    search_model = offered.search_model()
    _Api(
        app=app,
        settings=_Settings(
            stac_fastapi_title=TITLE, stac_fastapi_description=DESCRIPTION, stac_fastapi_version=app.version
        ),
        client=CatalogueClient(audience=audience, search_model=search_model, core_classes=CORE),
        extensions=offered.all,
        exceptions={},
        middlewares=[],
        stac_version=STAC_VERSION,
        response_class=JSONResponse,
        search_post_request_model=search_model,
        **offered.parameters(),
    )
    app.state.get_connection = connection_of
    _describe(app)
    _answer_errors(app)
    app.add_middleware(_OwnAddresses)
    refuse_unknown_parameters(app)
    return app


def _describe(app: FastAPI) -> None:
    """Describe the application in place of the library, which says that it is in the form of OpenAPI 3.0."""
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != DESCRIBED_AT]
    add_description(app, cache(lambda: _with_limits(app.openapi())), with_server, path=DESCRIBED_AT)


def _with_limits(document: Document) -> Document:
    """Say in a description how many items a page holds at most; the library says another number in words."""
    made = deepcopy(document)
    for operation in (each for path in made["paths"].values() for each in path.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "limit":
                parameter["description"] = LIMIT_DESCRIBED
                parameter["schema"] = {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": USUAL_LIMIT}
    return made


def _answer_errors(app: FastAPI) -> None:
    install_problem_handlers(app)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(NotFoundError, _answering(404))
    app.add_exception_handler(InvalidQueryParameter, _answering(400))


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """Answer as the STAC API wants it: whatever is wrong with a request, it is a bad one."""
    problem = problem_of(error)
    problem.status, problem.instance = 400, quote(request.scope["path"])
    problem.request_id = request_id_of(request.scope)
    return ProblemResponse(problem.model_dump(mode="json", exclude_none=True), problem.status)


def _answering(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return await answer_error(request, HTTPException(status, str(error)))

    return answer
