"""docs/explanation/assets.md says what the transition tables, the refusals and the choice of workflows say."""

from scripts.documentation.vocabulary import state_diagram
from tests.unit.docs.pages import blocks, code, codes, page, table

from graticule.config import Settings
from graticule.core.refusals import Refusal
from graticule.core.states import APPROVAL, CLEARANCE, PROCESSING
from graticule.services.asset_outcomes import ExternalOutputs, VersionOutputs
from graticule.services.workflow_choice import PIPELINES, PUBLISHING
from graticule.services.workflow_library import shipped_folder

PAGE = page("assets.md")


def test_the_diagrams_are_drawn_from_the_transition_tables() -> None:
    drawn = [state_diagram(PROCESSING), state_diagram(APPROVAL), state_diagram(CLEARANCE)]
    assert blocks(PAGE, "mermaid") == drawn


def test_every_refusal_is_told() -> None:
    assert [code(row[0]) for row in table(PAGE, "| code | meaning")] == [*Refusal]


def test_the_workflows_are_those_that_are_chosen_and_they_are_shipped() -> None:
    rows = [(row[0], code(row[1]), code(row[2])) for row in table(PAGE, "| data type | `pipeline`")]
    assert rows == [(kind, name, workflow) for kind, each in PIPELINES.items() for name, workflow in each.items()]
    shipped = {path.stem for path in shipped_folder().glob("*.yaml")}
    assert {workflow for _, _, workflow in rows} | {*PUBLISHING.values()} <= shipped
    assert {*PUBLISHING.values()} <= {*codes(PAGE)}


def test_every_setting_has_its_row() -> None:
    told = {*codes(page("settings.md"))}
    names = [(f"GRATICULE_{name}".upper(), name.upper()) for name in Settings.model_fields]
    assert [name for name, short in names if not {name, short} & told] == []


def test_the_outputs_are_those_that_are_kept() -> None:
    assert {*VersionOutputs.model_fields, *ExternalOutputs.model_fields} <= {*codes(PAGE)}
