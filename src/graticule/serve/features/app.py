"""The application of features: an OGC API with one collection, the table of the version that a request reaches."""

from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response

from graticule.http.problems import any_problem, install_problem_handlers
from graticule.serve.features import collection, items, tiles
from graticule.serve.features.asked import columns_as_parameters
from graticule.serve.features.errors import install_database_errors
from graticule.serve.features.formats import json_response
from graticule.serve.features.layer import Layers
from graticule.serve.links import OPENAPI, Addresses
from graticule.serve.parameters import described, refuse_unknown_parameters

_FILTERED: Final = ("items", "tile", "tilejson", "map_page")


def create_features() -> FastAPI:
    """Make the application. Whoever runs it puts a pool of asyncpg on `app.state.pool`, whose
    sessions are set as `connections` has it.
    """
    app = FastAPI(title="Features", openapi_url=None, docs_url=None, redoc_url=None, responses=any_problem())
    app.state.layers = Layers()
    for router in (collection.router, items.router, tiles.descriptions, tiles.router):
        app.include_router(router)
    app.add_api_route("/openapi.json", openapi, include_in_schema=False, response_class=Response)
    install_problem_handlers(app)
    install_database_errors(app)
    refuse_unknown_parameters(app, also=dict.fromkeys(_FILTERED, columns_as_parameters))
    return app


async def openapi(request: Request) -> Response:
    """Describe this API; its server is the asset that was asked for, and no other."""
    return json_response({**described(request.app), "servers": [{"url": Addresses(request).root}]}, OPENAPI)
