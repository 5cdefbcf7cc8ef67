"""Names that earlier artefacts of the platform family use, and what they are called here.

Only spellings live here: publishers and workers written for those artefacts send them, and the models translate them
before anything is checked. `docs/how-to/coming-from-rmhdagmaster.md` lists them for readers.
"""

from collections.abc import Container, Mapping
from typing import Any, Final

JOB_FIELDS: Final = {"inputs": "input_params"}
RESULT_PATH: Final = "/api/v1/callbacks/task-result"  # earlier settings name it in full, not the server alone
NO_REASON: Final = "the handler gave no reason"


def translate_fields(data: Any, aliases: Mapping[str, str]) -> Any:
    """Return the document under today's names; one that says the same thing twice is refused."""
    if not isinstance(data, Mapping) or not aliases.keys() & data.keys():
        return data
    for alias, name in aliases.items():
        if alias in data and name in data:
            raise ValueError(f"`{alias}` is another name of `{name}`: send only one of them")
    return {aliases.get(key, key): value for key, value in data.items()}


def translate_result(data: Any) -> Any:
    """Return a result with a `status`, where an earlier worker says `success` and leaves the reason out."""
    if not isinstance(data, Mapping) or "success" not in data:
        return data
    success = data["success"]
    if success is not True and success is not False:
        raise ValueError("`success` must be true or false")
    if "status" in data:
        raise ValueError("`success` is another form of `status`: send only one of them")
    rest = {key: value for key, value in data.items() if key != "success"}
    if success:
        return rest | {"status": "completed", "error_message": None}
    return rest | {"status": "failed", "error_message": data.get("error_message") or NO_REASON}


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
