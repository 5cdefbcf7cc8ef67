"""Each service reads the files of its own container, whatever a row or a mosaic names."""

from pathlib import Path

import pytest

from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.core.errors import NotFound
from graticule.serve.zone import Zone


@pytest.mark.parametrize(("audience", "own"), [(Audience.INTERNAL, "silver"), (Audience.EXTERNAL, "external")])
async def test_a_service_reads_its_own_container_alone(tmp_path: Path, audience: Audience, own: str) -> None:
    for container in ("bronze", "silver", "external"):
        file = tmp_path / "storage" / container / "a" / "x.tif"
        file.parent.mkdir(parents=True)
        file.write_bytes(container.encode())
    zone = Zone.of(Settings(home=tmp_path), audience)
    assert await zone.get(f"{own}/a/x.tif") == own.encode()
    for path in {"bronze/a/x.tif", "silver/a/x.tif", "external/a/x.tif"} - {f"{own}/a/x.tif"}:
        with pytest.raises(NotFound):
            zone.readable(path)
        with pytest.raises(NotFound):
            await zone.get(path)
        with pytest.raises(NotFound):
            await zone.stat(path)
