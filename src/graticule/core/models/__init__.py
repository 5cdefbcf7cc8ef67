"""Every table of the database, one model each."""

from graticule.core.models.engine import (
    Callback,
    Checkpoint,
    Event,
    Job,
    JobMessage,
    Node,
    Orchestrator,
    Task,
    TaskResult,
    Worker,
    Workflow,
)
from graticule.core.models.platform import (
    ApiClient,
    AssetRevision,
    AssetVersion,
    GeospatialAsset,
    LayerCatalog,
    LayerMetadata,
    Platform,
    PlatformRequest,
)
from graticule.core.models.schema import SchemaDeployment
from graticule.core.table import Row

TABLES: tuple[type[Row], ...] = (
    SchemaDeployment,
    Workflow,
    Job,
    Node,
    Task,
    TaskResult,
    Event,
    Checkpoint,
    JobMessage,
    Callback,
    Orchestrator,
    Worker,
    Platform,
    GeospatialAsset,
    AssetVersion,
    AssetRevision,
    PlatformRequest,
    ApiClient,
    LayerMetadata,
    LayerCatalog,
)

__all__ = [
    "TABLES",
    "ApiClient",
    "AssetRevision",
    "AssetVersion",
    "Callback",
    "Checkpoint",
    "Event",
    "GeospatialAsset",
    "Job",
    "JobMessage",
    "LayerCatalog",
    "LayerMetadata",
    "Node",
    "Orchestrator",
    "Platform",
    "PlatformRequest",
    "SchemaDeployment",
    "Task",
    "TaskResult",
    "Worker",
    "Workflow",
]
