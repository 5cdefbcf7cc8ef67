"""What a worker offers on its port."""

from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from graticule.config import Settings
from graticule.worker.app import create_worker


@pytest.mark.parametrize("url", [None, "postgresql://worker@127.0.0.1:1/nowhere"], ids=["by HTTP", "by the database"])
def test_a_worker_offers_probes_and_metrics_alone(tmp_path: Path, url: str | None) -> None:
    app = create_worker(Settings(home=tmp_path, transport="servicebus"), url)
    offered = {route.path: route.methods for route in app.routes if isinstance(route, APIRoute)}
    assert offered == {path: {"GET"} for path in ("/livez", "/readyz", "/health", "/metrics")}
    others = {getattr(route, "path", None) for route in app.routes if not isinstance(route, APIRoute)}
    assert others <= {"/openapi.json"}
