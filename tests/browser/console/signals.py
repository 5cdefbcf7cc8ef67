"""Workflows whose tasks wait for a signal of the test, or fail without one: so that each moment can be looked at."""

from pathlib import Path
from typing import Final

HANDLERS: Final = """
import asyncio
from pathlib import Path

from graticule.handlers import HandlerContext, HandlerResult, register_handler

SIGNALS = Path(__file__).with_name("signals")


@register_handler("signal.wait")
async def wait(ctx: HandlerContext) -> HandlerResult:
    while not (SIGNALS / ctx.params["signal"]).exists():
        await asyncio.sleep(0.02)
    return HandlerResult.success({"heard": ctx.params["signal"]})


@register_handler("signal.need")
async def need(ctx: HandlerContext) -> HandlerResult:
    if not (SIGNALS / ctx.params["signal"]).exists():
        return HandlerResult.failure("The tide gauge does not answer.", retryable=False)
    return HandlerResult.success({"heard": ctx.params["signal"]})
"""

# What a form has to offer: each type of input.
SURVEY: Final = """
workflow_id: tide_survey
name: Tide survey
version: 3
description: Measures the tide at a gauge, and reports it.
inputs:
  gauge: {type: string, required: true, pattern: "^[a-z-]+$", description: The name of the gauge.}
  days: {type: integer, default: 7, minimum: 1, maximum: 31, description: How many days are measured.}
  datum: {type: string, default: mean, enum: [mean, lowest, highest]}
  smooth: {type: boolean, default: true, description: Whether waves are left out.}
nodes:
  start: {type: start, next: measure}
  measure: {handler: signal.wait, params: {signal: "{{ inputs.gauge }}"}, next: [report, archive]}
  report: {handler: echo, params: {gauge: "{{ inputs.gauge }}", days: "{{ inputs.days }}"}, next: end}
  archive: {handler: echo, params: {datum: "{{ inputs.datum }}"}, next: end}
  end: {type: end}
"""

CALIBRATION: Final = """
workflow_id: calibration
name: Calibration
version: 1
description: Asks a gauge for its readings; it may be out of order.
nodes:
  start: {type: start, next: prepare}
  prepare: {handler: echo, params: {readings: 12}, next: read_gauge}
  read_gauge: {handler: signal.need, params: {signal: repaired}, next: adjust}
  adjust: {handler: echo, params: {offset: 0.02}, next: end}
  end: {type: end}
"""


class Signals:
    """A package of handlers for PYTHONPATH, a folder for GRATICULE_WORKFLOWS, and the signals that were given."""

    def __init__(self, folder: Path) -> None:
        self.modules, self.workflows = folder / "modules", folder / "workflows"
        self._given = self.modules / "signals"
        information = self.modules / "signals_package-1.0.dist-info"
        for made in (self.workflows, self._given, information):
            made.mkdir(parents=True)
        (self.modules / "signals_package.py").write_text(HANDLERS)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: signals_package\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text("[graticule.handlers]\nsignals = signals_package\n")
        (self.workflows / "tide_survey.yaml").write_text(SURVEY)
        (self.workflows / "calibration.yaml").write_text(CALIBRATION)

    @property
    def settings(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.modules), "GRATICULE_WORKFLOWS": str(self.workflows)}

    def give(self, signal: str) -> None:
        (self._given / signal).touch()
