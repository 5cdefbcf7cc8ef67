"""Names that earlier artefacts of the platform family use, and what they are called here.

Only spellings live here: publishers and workers written for those artefacts send them, and the models translate them
before anything is checked. `docs/how-to/coming-from-rmhdagmaster.md` lists them for readers.
"""

import re
from collections.abc import Container, Mapping
from typing import Any, Final

JOB_FIELDS: Final = {"inputs": "input_params"}
RESULT_FIELDS: Final = {"result": "output"}
_OUTPUTS: Final = frozenset({*RESULT_FIELDS, *RESULT_FIELDS.values()})  # null where there is none
RESULT_PATH: Final = "/api/v1/callbacks/task-result"  # earlier settings name it in full, not the server alone
NO_REASON: Final = "the handler gave no reason"
_WORKFLOW_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


def translate_fields(data: Any, aliases: Mapping[str, str]) -> Any:
    """Return the document under today's names; one that says the same thing twice is refused."""
    if not isinstance(data, Mapping) or not aliases.keys() & data.keys():
        return data
    translated: dict[Any, Any] = {}
    for alias in (key for key in data if key in aliases):
        name = aliases[alias]
        if name in data or name in translated:
            raise ValueError(f"`{alias}` is another name of `{name}`: send only one of them")
        translated[name] = data[alias]
    return {key: value for key, value in data.items() if key not in aliases} | translated


def translate_job(data: Any) -> Any:
    """Return a job that someone asks for under today's names.

    A gateway of an earlier release names its request and the asset that it made. The request becomes the correlation
    id. The asset is left out: a job for an asset begins with a submission, and no message can claim what an asset has.
    """
    if isinstance(data, Mapping) and "job_type" in data and "workflow_id" not in data:
        raise ValueError(_explain_staged_message(data["job_type"]))
    data = translate_fields(data, JOB_FIELDS)
    if not isinstance(data, Mapping) or "request_id" not in data:
        return data
    rest = {key: value for key, value in data.items() if key not in {"request_id", "asset_id"}}
    return rest if rest.get("correlation_id") is not None else rest | {"correlation_id": data["request_id"]}


def _explain_staged_message(job_type: Any) -> str:
    """Say what to do with a message that led a job from stage to stage, as no message does any more."""
    is_id = isinstance(job_type, str) and _WORKFLOW_ID.fullmatch(job_type)
    return (
        "This is a message of the staged API: it has a `job_type` and no `workflow_id`. An orchestrator leads a job"
        f" through all its stages. Submit the job as POST /api/jobs/submit/{job_type if is_id else '{workflow}'},"
        " with the `parameters` of the message as the body."
    )


def translate_result(data: Any) -> Any:
    """Return a result with a `status` and an `output`, in whichever words an earlier worker or handler says it.

    Those say `success` or `status`, `result` for `output`, and may leave out why they failed.
    """
    if not isinstance(data, Mapping):
        return data
    said = {key: value for key, value in data.items() if value is not None or key not in _OUTPUTS}
    data = _translate_status(translate_fields(said, RESULT_FIELDS))
    if data.get("status") != "failed" or data.get("error_message"):
        return data
    return {**data, "error_message": NO_REASON}


def _translate_status(data: dict[str, Any]) -> dict[str, Any]:
    if "success" not in data:
        return data
    success = data["success"]
    if success is not True and success is not False:
        raise ValueError("`success` must be true or false")
    if "status" in data:
        raise ValueError("`success` is another form of `status`: send only one of them")
    rest = {key: value for key, value in data.items() if key != "success"}
    return rest | ({"status": "completed", "error_message": None} if success else {"status": "failed"})


def translate_inputs(
    declared: Container[str], given: Mapping[str, Any], default_container: str | None
) -> dict[str, Any]:
    """Return the inputs of a job as workflows take them: bands by number, and a container where there is a default."""
    inputs = dict(given)
    names = inputs.get("band_names")
    if "band_names" in declared and isinstance(names, list):
        inputs["band_names"] = {str(number): name for number, name in enumerate(names, start=1)}
    if default_container and "container_name" in declared and inputs.get("container_name") is None:
        inputs["container_name"] = default_container
    return inputs
