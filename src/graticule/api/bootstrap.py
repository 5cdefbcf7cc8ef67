"""`/api/v1/bootstrap/`: the schema over HTTP. Admins only."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from graticule.api.access import AdminOnly
from graticule.http.parts import part
from graticule.http.problems import problem_responses
from graticule.schema.report import SchemaReport, SchemaStatus, TableReport
from graticule.services.bootstrap import BootstrapService

router = APIRouter(
    prefix="/api/v1/bootstrap",
    tags=["bootstrap"],
    dependencies=[AdminOnly],
    responses=problem_responses(401, 403, 409, 503),
)


class TableList(BaseModel):
    """The tables; there is no next page."""

    items: list[TableReport]
    next: None = None


Service = Annotated[BootstrapService, Depends(part("bootstrap"))]


@router.get("/status")
async def status(service: Service) -> SchemaStatus:
    """Compare the database with the models and change nothing."""
    return await service.status()


@router.get("/tables")
async def tables(service: Service) -> TableList:
    """List the tables with their row counts and sizes."""
    return TableList(items=await service.tables())


@router.get("/ddl", response_class=PlainTextResponse)
def ddl(service: Service) -> str:
    """Give the whole schema as a script for an empty database."""
    return service.ddl()


@router.post("/deploy")
async def deploy(service: Service) -> SchemaReport:
    """Make what is missing as a whole; tables that are there are left as they are."""
    return await service.deploy()


@router.post("/migrate")
async def migrate(service: Service) -> SchemaReport:
    """Add what is missing, in existing tables too; report what cannot be made safely."""
    return await service.migrate()


@router.post("/rebuild")
async def rebuild(
    service: Service, confirm: Annotated[str, Query(description="The name of the database, as a confirmation.")]
) -> SchemaReport:
    """Drop the schema with every row and make it anew; refused outside development mode."""
    return await service.rebuild(confirm)
