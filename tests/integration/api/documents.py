"""The OpenAPI documents of both processes, made once: to make one takes a second."""

from collections.abc import Callable
from functools import cache

from fastapi import FastAPI
from tests.integration.api.running import NOWHERE

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.gateway.app import create_gateway

APPLICATIONS: dict[str, Callable[[Settings, str], FastAPI]] = {"orchestrator": create_api, "gateway": create_gateway}


@cache
def application(process: str) -> FastAPI:
    """Give an application without a database; it keeps its document, which no setting changes."""
    return APPLICATIONS[process](Settings(), NOWHERE)
