"""The gateway as an Azure Functions app: the same application, called by the Functions host.

The host collects a whole answer before it sends it, so event streams are not passed on from here.
"""

import asyncio
import atexit
import re
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.config import RunMode, Settings
from graticule.core.errors import ConfigurationError
from graticule.gateway.app import create_gateway
from graticule.logs import configure_logging
from graticule.telemetry import begin_tracing, end_tracing

if TYPE_CHECKING:
    from azure.functions import AsgiFunctionApp

_PORT: Final = re.compile(r":\d+$")


def create_function_app(settings: Settings | None = None) -> "AsgiFunctionApp":
    """Make the app that the Functions host looks for; everybody may call it, and the gateway asks who they are."""
    settings = settings or Settings()
    functions = _azure_functions()
    database = settings.external_database
    if database is None:
        raise ConfigurationError(
            "A Functions app has no embedded database, and none is named.",
            hint="Set GRATICULE_DATABASE_URL to a login that may read.",
        )
    configure_logging(settings.log_level, settings.log_format, RunMode.GATEWAY)
    begin_tracing(RunMode.GATEWAY)
    atexit.register(end_tracing)  # the host tells nobody when it ends
    gateway = create_gateway(settings, database.get_secret_value(), streams=False)
    app: AsgiFunctionApp = functions.AsgiFunctionApp(
        app=HostedApplication(gateway), http_auth_level=functions.AuthLevel.ANONYMOUS, function_name="gateway"
    )
    return app


def _azure_functions() -> Any:
    """Import what only this entry needs."""
    try:
        import azure.functions  # noqa: PLC0415 - the extra `azure` is not part of every installation
    except ImportError as error:
        raise ConfigurationError(
            "The Azure Functions entry needs the package azure-functions.", hint="Install `graticule[azure]`."
        ) from error
    return azure.functions


class HostedApplication:
    """An application under the Functions host: started once, and told from where its callers come.

    Requests that come before the first was answered make the host begin the application's lifespan once for each of
    them; all but the first wait until that one has begun. The host names no client: the platform's front end notes
    the address of each caller last in X-Forwarded-For.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._began: asyncio.Event | None = None
        self._ended = asyncio.Event()
        self._said: Message = {"type": "lifespan.startup.failed"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, and a second lifespan not."""
        if scope["type"] == "lifespan":
            await (self._begin if self._began is None else self._join)(scope, receive, send)
        else:
            await self._app(_with_client(scope), receive, send)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self._began = asyncio.Event()

        async def receive_once() -> Message:
            """Pass over the starts that the others bring: the next message after the first is the end."""
            message = await receive()
            while began.is_set() and message["type"] == "lifespan.startup":
                message = await receive()
            return message

        async def telling(message: Message) -> None:
            if message["type"].startswith("lifespan.startup."):
                self._said = message
                began.set()
            await send(message)

        try:
            await self._app(scope, receive_once, telling)
        finally:
            began.set()
            self._ended.set()

    async def _join(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        if self._began is not None:
            await self._began.wait()
        await send(self._said)
        await self._ended.wait()


def _with_client(scope: Scope) -> Scope:
    if scope["type"] != "http" or scope.get("client") is not None:
        return scope
    address = Headers(scope=scope).get("x-forwarded-for", "").rpartition(",")[2].strip()
    host = _PORT.sub("", address) if address.count(":") == 1 or address.startswith("[") else address
    return {**scope, "client": (host.strip("[]"), 0) if host else None}
