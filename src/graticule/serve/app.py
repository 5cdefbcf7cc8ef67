"""The application of `graticule serve`: tiles, features, the catalogue and previews, for one audience."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI, Request
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from graticule import __version__
from graticule.config import HttpAddress, Settings
from graticule.core.audience import Audience
from graticule.core.errors import ConfigurationError
from graticule.core.models.platform import DataType
from graticule.core.tile_counts import COUNT_HEADERS
from graticule.http.application import create_application
from graticule.http.database import PoolMetrics
from graticule.http.probes import CheckResult
from graticule.http.rate_limits import RateLimits
from graticule.repositories.database import Database
from graticule.serve.addresses import PublicAddress, WithoutSlash
from graticule.serve.answers import AnswerCache
from graticule.serve.features.app import create_features
from graticule.serve.features.connections import SESSION_SETTINGS as FEATURE_SETTINGS
from graticule.serve.gate import Keeping, PreviewGate, ServiceGate
from graticule.serve.limits import Bounded, Capacity, QueryLimit, default_concurrency
from graticule.serve.pools import opened_pool
from graticule.serve.resolution import Resolver
from graticule.serve.revalidation import Revalidated
from graticule.serve.stac.app import create_stac
from graticule.serve.stac.connections import SESSION_SETTINGS as STAC_SETTINGS
from graticule.serve.stac.connections import prepare_connection
from graticule.serve.tiles.app import create_tiles
from graticule.serve.tiles.gdal import set_up_process
from graticule.serve.unreadable import UnreadableOutputs
from graticule.serve.viewer import static_files
from graticule.serve.zone import Zone
from graticule.services.access import AccessService
from graticule.services.service_tokens import TO_SERVICES, ServiceTokens

MAX_BODY_BYTES: Final = 1024 * 1024
EXPOSED: Final = ["ETag", "Link", "Content-Bbox", "Content-Crs", "X-Request-ID", "Retry-After", *COUNT_HEADERS]


def create_serve(settings: Settings, database_url: str, audience: Audience) -> FastAPI:
    """Make the application for an audience, on a database of which it only reads what that audience may see."""
    set_up_process()
    database = Database(
        database_url,
        audience.role,
        pool_size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_seconds,
        name="graticule-serve",
    )
    serving = _Serving(settings, database_url, audience, database)
    app = create_application(
        process="serve",
        title=f"Graticule {audience} services",
        checks={"database": serving.check},
        lifespan=serving.lifespan,
        max_body_bytes=MAX_BODY_BYTES,
        health_details=False,
    )
    PoolMetrics(app.state.registry, database)
    serving.install(app)
    return app


class _Serving:
    """What the application is made of."""

    def __init__(self, settings: Settings, url: str, audience: Audience, database: Database) -> None:
        self._settings = settings
        self._url = url
        self._audience = audience
        self._database = database
        self._resolver = Resolver(database, audience)
        self._tiles = create_tiles(Zone.of(settings, audience))
        self._features = create_features()
        self._stac = create_stac(audience)

    async def check(self) -> CheckResult:
        """Tell whether the database shows what is served."""
        await self._resolver.check()
        return CheckResult(ok=True, detail={"audience": self._audience.value})

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Hold what the applications read from."""
        async with self._database, self._resolver.told_of_changes(self._url), AsyncExitStack() as pools:
            self._features.state.pool = await pools.enter_async_context(self._pool("features", FEATURE_SETTINGS))
            self._stac.state.readpool = await pools.enter_async_context(self._pool("stac", STAC_SETTINGS))
            yield

    def _pool(self, name: str, settings: dict[str, str]) -> Any:
        return opened_pool(
            self._url,
            self._audience,
            size=self._settings.database_pool_size,
            name=f"graticule-serve-{name}",
            settings=settings,
            prepare=prepare_connection,
        )

    def install(self, app: FastAPI) -> None:
        """Mount everything where it is served."""
        apps = {DataType.RASTER: self._bounded(self._tiles), DataType.VECTOR: self._bounded(self._features)}
        keeping = Keeping(AnswerCache(self._settings.serve_cache_mb * 2**20), self._cache_control())
        unreadable = UnreadableOutputs(app.state.registry)
        unreadable.watch(self._tiles, DataType.RASTER)
        unreadable.watch(self._features, DataType.VECTOR)
        app.add_api_route("/", landing, summary="The services", response_model=None)
        app.mount("/static", static_files())
        app.mount("/tiles", ServiceGate(self._resolver, keeping, DataType.RASTER, apps[DataType.RASTER]))
        app.mount("/features", ServiceGate(self._resolver, keeping, DataType.VECTOR, apps[DataType.VECTOR]))
        stac = Revalidated(self._bounded(self._stac), self._cache_control())
        app.router.routes.append(Route("/stac", WithoutSlash(stac), include_in_schema=False))
        app.mount("/stac", stac)
        if self._audience is Audience.INTERNAL:
            tokens = ServiceTokens.of(self._settings.serve_key, TO_SERVICES)
            app.state.access = AccessService(self._database, self._settings, service_tokens=tokens)
            app.state.service_tokens = tokens
            app.state.rate_limits = RateLimits(self._settings.rate_limit_per_minute)
            app.mount("/preview", PreviewGate(self._resolver, Keeping(keeping.cache, "private, no-cache"), apps))
        app.user_middleware.append(Middleware(QueryLimit))  # the innermost: the others see its answers
        self._add_middleware(app)

    def _bounded(self, app: ASGIApp) -> ASGIApp:
        """Bound an application for itself: who waits for pictures keeps nobody from the catalogue."""
        places = self._settings.serve_concurrency or default_concurrency()
        return Bounded(app, Capacity(places), self._settings.serve_timeout_seconds)

    def _cache_control(self) -> str:
        """Let others keep what they were given: for the set time, or only to ask whether it still holds."""
        whose = "public" if self._audience is Audience.EXTERNAL else "private"
        seconds = self._settings.serve_max_age_seconds
        return f"{whose}, max-age={seconds}" if seconds else f"{whose}, no-cache"

    def _add_middleware(self, app: FastAPI) -> None:
        origins = [origin.strip() for origin in self._settings.serve_cors_origins.split(",") if origin.strip()]
        is_internal = self._audience is Audience.INTERNAL
        if is_internal and "*" in origins:
            raise ConfigurationError(
                "GRATICULE_SERVE_CORS_ORIGINS is `*`: any web site could read what is for official use only.",
                hint="Name the sites that may, or serve the audience external.",
            )
        if origins:
            app.add_middleware(
                CORSMiddleware,
                allow_origins=origins,
                allow_methods=["GET", "HEAD", "POST"],
                allow_headers=["*"],
                expose_headers=EXPOSED,
            )
        address = self._address()
        if address is not None:
            app.add_middleware(PublicAddress, address=str(address.get_secret_value()), own_names_only=is_internal)

    def _address(self) -> HttpAddress | None:
        is_internal = self._audience is Audience.INTERNAL
        return self._settings.serve_url if is_internal else self._settings.external_serve_url


async def landing(request: Request) -> dict[str, Any]:
    """Tell what is served here, and where."""
    base = str(request.base_url).rstrip("/")
    return {
        "title": request.app.title,
        "version": __version__,
        "links": {
            "tiles": f"{base}/tiles/{{asset_id}}",
            "features": f"{base}/features/{{asset_id}}",
            "stac": f"{base}/stac",
            "readiness": f"{base}/readyz",
        },
    }
