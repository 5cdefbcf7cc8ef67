"""A typed client of both HTTP APIs, synchronous and asynchronous.

Calls are values: `calls` has one function for each endpoint, and `Client` and `AsyncClient` send what it gives.
"""

from graticule.client import calls
from graticule.client.call import Call, Document, document, documents
from graticule.client.clients import AsyncClient, Client
from graticule.client.models import Page
from graticule.client.problems import ApiProblem, FieldError, UnexpectedAnswer
from graticule.core.errors import Unavailable
from graticule.services.jobs import Submission

__all__ = [
    "ApiProblem",
    "AsyncClient",
    "Call",
    "Client",
    "Document",
    "FieldError",
    "Page",
    "Submission",
    "Unavailable",
    "UnexpectedAnswer",
    "calls",
    "document",
    "documents",
]
