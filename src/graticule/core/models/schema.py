"""The schema's own record."""

from typing import ClassVar

from graticule.core.models.fields import READ, CreatedAt, Identity, Name, Sha256, granted
from graticule.core.table import Index, Row, Table


class SchemaDeployment(Row):
    """Each deployment of the schema, newest last: the fingerprint tells whether it is current."""

    table: ClassVar = Table(
        name="schema_deployments",
        primary_key=("deployment_id",),
        indexes=(Index(("deployed_at DESC",)),),
        grants=granted(orchestrator=READ, worker=READ),
    )

    deployment_id: Identity = None
    fingerprint: Sha256
    program_version: Name
    deployed_by: Name
    deployed_at: CreatedAt
