"""Reports on partners' files stay small, whatever the files say."""

from graticule.core.validation import MOST_FACT_BYTES, Outcome, ValidationReport, shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.validation_codes import Code, finding


def test_a_text_is_cut_and_can_be_printed() -> None:
    assert shortened("a\x00\ue000é") == "a\ufffd\ufffdé"
    assert shortened("x" * 500) == "x" * 500
    assert shortened("x" * 501) == "x" * 499 + "…"
    assert shortened("abcdef", 3) == "ab…"


def test_a_finding_is_told_however_long_it_is() -> None:
    found = finding(Code.CORRUPT, "x" * 2000, "\x01" * 2000)
    assert (len(found.what), len(found.where)) == (500, 500)
    report = Rejected([found] * 200).report()
    assert isinstance(report["findings"], list)
    assert len(report["findings"]) == 50


def test_facts_that_are_too_large_are_left_out() -> None:
    small = {"a": "x" * (MOST_FACT_BYTES - 10)}
    assert ValidationReport(outcome=Outcome.OK, facts={**small}).facts == small
    read = ValidationReport.read({"outcome": "ok", "findings": [], "facts": {"a": "x" * MOST_FACT_BYTES}})
    assert read is not None
    assert read.facts == {}
