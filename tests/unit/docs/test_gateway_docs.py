"""docs/reference/gateway.md names every endpoint of the gateway, and shows submissions that are understood."""

import json
import re

from tests.openapi import documents
from tests.unit.docs.pages import blocks, code, page, table

from graticule.core.exchange import PlatformSubmission
from graticule.core.models.platform import Platform
from graticule.core.partner_fields import translate

PAGE = page("gateway.md")
ELSEWHERE = {"/", "/livez", "/readyz", "/health"}  # those that every process has
DDH = Platform.model_validate({**Platform.table.seeds[0], "created_at": "2026-01-01", "updated_at": "2026-01-01"})


def test_every_endpoint_is_told() -> None:
    offered = {
        f"{'ANY' if '/proxy/{' in path else method.upper()} {path}"
        for path, item in documents()["gateway"]["paths"].items()
        for method in item
        if path not in ELSEWHERE and method != "head"  # which is told with its GET
    }
    assert {code(row[0]) for row in table(PAGE, "| endpoint | who | what |")} == offered


def test_both_forms_of_a_submission_come_to_the_same() -> None:
    bodies = [json.loads(body) for body in re.findall(r"-d '(\{.*?\})'", "".join(blocks(PAGE, "console")), re.DOTALL)]
    forms = [PlatformSubmission.model_validate(translate(DDH, body)) for body in bodies if "data_type" in body]
    assert len(forms) == 2
    assert forms[0] == forms[1]
