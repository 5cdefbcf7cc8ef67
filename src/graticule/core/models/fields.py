"""The column types and grants that many tables share."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, JsonValue

from graticule.core.ids import AssetId, JobId, NodeId, TaskId, WorkerId, WorkflowHash, WorkflowId
from graticule.core.table import Column, DatabaseRole

JsonObject = dict[str, JsonValue]
Timestamp = datetime
CreatedAt = Annotated[datetime, Column(default="now()")]
BigInt = Annotated[int, Column(type="BIGINT")]
Identity = Annotated[int | None, Column(type="BIGINT", identity=True)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]

Short = Annotated[str, Field(max_length=64)]
Name = Annotated[str, Field(max_length=128)]
Label = Annotated[str, Field(max_length=255)]
Url = Annotated[str, Field(max_length=512)]
Path = Annotated[str, Field(max_length=1024)]
ErrorText = Annotated[str, Field(max_length=2000)]

MAX_PRIORITY: Final = 10
Priority = Annotated[int, Field(ge=0, le=MAX_PRIORITY)]

JobKey = Annotated[JobId, Field(max_length=64)]
NodeKey = Annotated[NodeId, Field(max_length=128)]
TaskKey = Annotated[TaskId, Field(max_length=224)]  # {job_id}_{node_id}_{retry_count}
WorkflowKey = Annotated[WorkflowId, Field(max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]
WorkflowHashKey = Annotated[WorkflowHash, Field(max_length=64, pattern=r"^[0-9a-f]{64}$")]
WorkerKey = Annotated[WorkerId, Field(max_length=128)]
AssetKey = Annotated[AssetId, Field(max_length=32, pattern=r"^[0-9a-f]{32}$")]
PlatformKey = Annotated[str, Field(max_length=50, pattern=r"^[a-z][a-z0-9_]*$")]

READ: frozenset[str] = frozenset({"SELECT"})
APPEND: frozenset[str] = READ | {"INSERT"}
CHANGE: frozenset[str] = APPEND | {"UPDATE"}
FULL: frozenset[str] = CHANGE | {"DELETE"}


def granted(orchestrator: frozenset[str], worker: frozenset[str] = frozenset()) -> dict[DatabaseRole, frozenset[str]]:
    """Give the grants of a table: the gateway reads, and never more."""
    return {DatabaseRole.ORCHESTRATOR: orchestrator, DatabaseRole.WORKER: worker, DatabaseRole.GATEWAY: READ}
