"""Types of their own for identifiers, so that mixing two of them up is a type error."""

from typing import NewType

WorkflowId = NewType("WorkflowId", str)
WorkflowHash = NewType("WorkflowHash", str)
JobId = NewType("JobId", str)
NodeId = NewType("NodeId", str)
TaskId = NewType("TaskId", str)
OwnerId = NewType("OwnerId", str)
WorkerId = NewType("WorkerId", str)

PlatformId = NewType("PlatformId", str)
AssetId = NewType("AssetId", str)
ClientId = NewType("ClientId", str)
