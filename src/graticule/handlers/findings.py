"""How a handler says that a partner's file cannot be used."""

from pydantic import JsonValue

from graticule.core.errors import GraticuleError
from graticule.core.validation import MOST_FINDINGS, Finding, Outcome, Severity, ValidationReport

__all__ = ["Finding", "Rejected", "Severity"]


class Rejected(GraticuleError):
    """The file cannot be used, and no other attempt would change that."""

    code = "rejected"

    def __init__(self, findings: list[Finding], facts: dict[str, JsonValue] | None = None) -> None:
        first = findings[0]
        super().__init__(f"{first.what} ({first.code}, {first.where})", hint=first.how_to_fix)
        self.findings = findings[:MOST_FINDINGS]
        self.facts = facts or {}

    def report(self) -> dict[str, JsonValue]:
        """Give the validation report."""
        made = ValidationReport(outcome=Outcome.REJECT, findings=self.findings, facts=self.facts)
        return made.model_dump(mode="json")
