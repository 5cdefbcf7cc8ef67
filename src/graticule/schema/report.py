"""What the schema's commands answer, on the command line and over HTTP alike."""

from datetime import datetime

from pydantic import BaseModel, Field


class Reported(BaseModel):
    """An object that was changed, is to be changed, or differs."""

    object: str
    detail: str
    by_hand: str | None = Field(None, description="The SQL that would remove the difference, for you to judge.")


class SchemaReport(BaseModel):
    """What a deployment or migration did."""

    database: str
    fingerprint: str
    current: bool
    applied: list[Reported]
    pending: list[Reported]
    differences: list[Reported]
    notices: list[str]


class SchemaStatus(BaseModel):
    """How the database stands to the models."""

    database: str
    server_version: str
    postgis_version: str | None
    pgstac_version: str | None
    pgstac_wanted: str
    deployed: bool
    current: bool
    fingerprint: str
    deployed_fingerprint: str | None
    deployed_at: datetime | None
    pending: list[Reported]
    differences: list[Reported]


class TableReport(BaseModel):
    """One table: what it holds and how much of it."""

    name: str
    comment: str | None
    rows: int
    rows_estimated: bool
    bytes: int
    indexes: int
