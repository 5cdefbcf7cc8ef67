"""A process that exports its spans to a collector, for as long as a test runs."""

from collections.abc import Callable, Iterator

import pytest
from tests.otlp_collector import Collector, collecting

from graticule.telemetry import begin_tracing, end_tracing

Begin = Callable[..., Collector]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begin to trace as the variables say; those that name the collector are there already."""
    with collecting() as collector:

        def start(process: str = "worker", **variables: str) -> Collector:
            for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}.items():
                monkeypatch.setenv(name, value)
            begin_tracing(process)
            return collector

        yield start
        end_tracing()
