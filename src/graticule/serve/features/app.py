"""The application of features: an OGC API with one collection, the table of the version that a request reaches."""

from typing import Any, Final

from fastapi import FastAPI, Request

from graticule.http.problems import any_problem, install_problem_handlers
from graticule.repositories.served_tables import ServedColumn
from graticule.serve.features import collection, download, items, tiles
from graticule.serve.features.asked import RESERVED, columns_as_parameters
from graticule.serve.features.collection import column_schema
from graticule.serve.features.errors import install_database_errors
from graticule.serve.features.layer import Layers, the_layer
from graticule.serve.openapi import Document, add_description, with_server
from graticule.serve.parameters import described, refuse_unknown_parameters

_FILTERED: Final = ("items", "download", "tile", "tilejson", "map_page")


def create_features() -> FastAPI:
    """Make the application. Whoever runs it puts a pool of asyncpg on `app.state.pool`, whose
    sessions are set as `connections` has it.
    """
    app = FastAPI(title="Features", openapi_url=None, docs_url=None, redoc_url=None, responses=any_problem())
    app.state.layers = Layers()
    for router in (collection.router, items.router, download.router, tiles.descriptions, tiles.router):
        app.include_router(router)
    add_description(app, lambda: described(app), _complete_description)
    install_problem_handlers(app)
    install_database_errors(app)
    refuse_unknown_parameters(app, also=dict.fromkeys(_FILTERED, columns_as_parameters))
    return app


async def _complete_description(request: Request, document: Document) -> Document:
    """Add what is true of one asset: its address, and its properties as parameters of what they filter.

    GDAL 3.6 lets the service compare a property only if it finds a parameter of that name.
    """
    layer = await the_layer(request)
    columns = [_column_parameter(column) for column in layer.properties if column.name not in RESERVED]
    paths = {path: _with_parameters(item, columns) for path, item in document["paths"].items()}
    return await with_server(request, {**document, "paths": paths})


def _with_parameters(path: dict[str, Any], columns: list[Document]) -> dict[str, Any]:
    operation = path["get"]
    if not any(each["name"] == "filter" for each in operation["parameters"]):
        return path
    return {"get": {**operation, "parameters": [*operation["parameters"], *columns]}}


def _column_parameter(column: ServedColumn) -> Document:
    described = {
        "schema": column_schema(column),
        "description": f"Only features whose `{column.title}` equals this value.",
    }
    return {"name": column.name, "in": "query", "required": False, **described}
