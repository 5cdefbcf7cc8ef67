"""What an OpenAPI document says: its operations, requests of all kinds to them, and what holds of their answers."""

from collections.abc import Iterator
from typing import Any, Final

import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.openapi.checks import UndefinedStatusCode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance


def operations(document: dict[str, Any]) -> Iterator[Any]:
    """Give all operations of a document."""
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok)
        yield found.ok()


def sound_or_not(operation: Any) -> st.SearchStrategy[Case[Any]]:
    """Give requests as the document wants them, and such as it does not."""
    wrong: st.SearchStrategy[Case[Any]] = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    return st.one_of(operation.as_strategy(), wrong)


def status_is_documented(_context: Any, response: Any, case: Case[Any]) -> bool | None:
    """Hold an answer to the statuses that its operation names; `default` is no name."""
    documented = set(case.operation.definition.raw["responses"])
    status = str(response.status_code)
    if status not in documented and f"{status[0]}XX" not in documented:
        raise UndefinedStatusCode(
            operation=case.operation.label,
            status_code=response.status_code,
            defined_status_codes=sorted(documented),
            allowed_status_codes=[],
            message=f"{status} is not documented: {response.text[:300]}",
        )
    return None


CHECKS: Final = [not_a_server_error, status_is_documented, content_type_conformance, response_schema_conformance]
