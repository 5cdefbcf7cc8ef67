"""Pipelines as earlier releases of the platform family declare them, under the names that the stages form has today.

Such a declaration numbers its stages and says how many there are. Both must agree with the order of the list, which is
what runs; afterwards they say nothing more.
"""

from typing import Final

from graticule.dag.compiling.fields import Fields
from graticule.dag.compiling.yaml_source import YamlList, YamlMap, YamlValue
from graticule.dag.problems import Problems

_PIPELINE: Final = {"job_type": "workflow_id"}
_STAGE: Final = {"stage_name": "name", "number": "stage_number"}
_NUMBERED: Final = frozenset({"stage_name", "stage_number", "number", "depends_on_stage"})


def translate_pipeline(document: YamlMap, problems: Problems) -> None:
    """Rename what is called otherwise, in place, and note what contradicts itself."""
    stages = document.get("stages")
    if not isinstance(stages, YamlList):
        return
    fields = Fields(document, problems, None)
    if "job_type" in document and "job_id" not in document:
        _put(document, "job_id", "params")  # its jobs are known by their parameters
    _rename(fields, _PIPELINE)
    if fields.has("total_stages") and fields.raw("total_stages") != len(stages):
        fields.error("wrong_value", f"'total_stages' must be {len(stages)}: so many stages are listed.", "total_stages")
    _drop(document, "total_stages")
    for place, stage in enumerate(stages, start=1):
        if isinstance(stage, YamlMap) and _NUMBERED & stage.keys():
            _translate_stage(stage, place, problems)


def _translate_stage(stage: YamlMap, place: int, problems: Problems) -> None:
    fields = Fields(stage, problems, None, f"stages[{place - 1}]")
    _rename(fields, _STAGE)
    if fields.has("stage_number") and fields.raw("stage_number") != place:
        fields.error("wrong_value", f"'stage_number' must be {place}: stages run as they are listed.", "stage_number")
    if fields.has("depends_on_stage"):
        if place == 1:
            fields.error("wrong_value", "The first stage depends on no other.", "depends_on_stage")
        else:
            fields.whole("depends_on_stage", 1, place - 1)
    _drop(stage, "stage_number", "depends_on_stage")
    if "source" not in stage:
        _drop(stage, "max_parallel_tasks")  # of one task, it limits nothing
    elif "parallelism" not in stage:
        _put(stage, "parallelism", "fan_out")


def _rename(fields: Fields, names: dict[str, str]) -> None:
    source = fields.source
    for earlier, name in names.items():
        if earlier in source and name in source:
            fields.error("wrong_value", f"'{earlier}' is another name of '{name}': write only one of them.", earlier)
        elif earlier in source:
            source[name], source.lines[name] = source[earlier], source.lines[earlier]
        _drop(source, earlier)


def _put(source: YamlMap, name: str, value: YamlValue) -> None:
    source[name], source.lines[name] = value, source.line


def _drop(source: YamlMap, *names: str) -> None:
    for name in names:
        source.pop(name, None)
        source.lines.pop(name, None)
