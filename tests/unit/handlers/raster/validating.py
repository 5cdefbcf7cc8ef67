"""Runs `raster.validate` on a file, as a child process of a worker does."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers import HandlerResult, ProcessContext
from graticule.handlers.context import Signals
from graticule.handlers.raster.validation import Validate, validate
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import outcome_of

NORTH_UP = Affine(0.01, 0, 10, 0, -0.01, 50)
UNUSED: Any = None


def context(storage: BlockingStorage, params: dict[str, Any], **changes: Any) -> ProcessContext:
    given: dict[str, Any] = {
        "task_id": TaskId("t"),
        "job_id": JobId("0123456789"),
        "node_id": NodeId("n"),
        "retry_count": 0,
        "params": Validate.model_validate(params),
        "logger": get_logger("test"),
        "signals": Signals(),
        "report_progress": lambda _: None,
        "storage": storage,
        "checkpoint": UNUSED,
        **changes,
    }
    return ProcessContext(**given)


def result_of(file: Path, changes: dict[str, Any] | None = None, /, **params: Any) -> HandlerResult:
    """Validate a file that lies in a container: `root/container/name`."""
    named = {"container_name": file.parent.name, "blob_name": file.name, **params}
    with BlockingStorage(LocalStorage(file.parent.parent)) as storage:
        result = validate(context(storage, named, **(changes or {})))
    told = outcome_of(result)
    assert told.error_message == result.error_message  # else the output is not JSON
    return result


def accepted(file: Path, **params: Any) -> dict[str, Any]:
    result = result_of(file, **params)
    assert result.error_message is None, result.error_message
    assert isinstance(result.output, dict)
    return result.output


def rejected(file: Path, **params: Any) -> dict[str, dict[str, Any]]:
    """Give the findings by their codes."""
    result = result_of(file, **params)
    assert (result.retryable, result.output) == (False, None)
    assert result.report is not None
    assert result.report["outcome"] == "reject"
    found: Any = result.report["findings"]
    assert all(each["what"] and each["where"] and each["how_to_fix"] for each in found)
    assert str(file.parent) not in str(result)
    return {each["code"]: each for each in found}


def write(file: Path, data: NDArray[Any] | None = None, /, **profile: Any) -> Path:
    """Write a raster, by default one that has nothing wrong but that it is no COG."""
    data = gradient() if data is None else data
    file.parent.mkdir(parents=True, exist_ok=True)
    count, height, width = data.shape
    given = {"driver": "GTiff", "crs": "EPSG:4326", "transform": NORTH_UP, "dtype": data.dtype.name, **profile}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(file, "w", count=count, height=height, width=width, **given) as dataset:
            dataset.write(data)
    return file


def gradient(count: int = 1, height: int = 60, width: int = 80, dtype: str = "uint16") -> NDArray[Any]:
    return np.arange(count * height * width).reshape(count, height, width).astype(dtype)
