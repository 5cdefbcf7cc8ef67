"""Every number that a type can hold survives the whole way: from a partner's file to STAC, services and files."""

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import morecantile
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rasterio
import shapely
from affine import Affine
from numpy.typing import NDArray
from tests.e2e.conftest import FirstStart, copy_home, open_folder
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.number_cases import FLOATS, INTEGERS
from tests.rasters import write_with_nodata

from graticule.handlers.raster.nodata import exact_nodata

pytestmark = pytest.mark.timeout(300)

BANDS = 1024
PLACE = Affine(0.01, 0, 10, 0, -0.01, 50)
SCALES = [value for value in FLOATS.values() if value]
ATTRIBUTES: dict[str, list[Any]] = {
    "real": [*FLOATS.values(), math.nan, math.inf, -math.inf, None],
    "whole": [value for value in INTEGERS.values() if value < 2**63],
    "unsigned": [value for value in INTEGERS.values() if value >= 0],
}
ROWS = max(map(len, ATTRIBUTES.values()))


@dataclass(frozen=True)
class Case:
    """A raster with a nodata value, and what all but one of its pixels hold."""

    dtype: str
    nodata: float
    value: float

    @property
    def told(self) -> float | str:
        """The nodata value as JSON has it."""
        return self.nodata if math.isfinite(self.nodata) else str(float(self.nodata))


def _value_beside(dtype: str, nodata: float) -> float:
    """Give an extreme value, so that it is a statistic; GDAL takes large floats of one sign for the same."""
    limits = np.iinfo(dtype) if "int" in dtype else np.finfo(dtype)
    return (int if "int" in dtype else float)(limits.min if nodata > 0 else limits.max)


def _dtype(value: float) -> str:
    if isinstance(value, int):
        return "uint64" if value >= 2**63 else "int64"
    if not math.isfinite(value):
        return "float32"
    is_narrow = abs(value) <= float(np.finfo("float32").max) and value == float(np.float32(value))
    return "float32" if is_narrow else "float64"


NAMELESS = {"not a number": math.nan, "infinity": math.inf, "minus without end": -math.inf}
CASES: dict[str, Case] = {
    name: Case(_dtype(value), value, _value_beside(_dtype(value), value))
    for name, value in {**FLOATS, **INTEGERS, **NAMELESS}.items()
    if name not in {"smallest float64", "a third", "integral", "beyond 2^53", "zero", "blank of Surfer"}
}


@dataclass(frozen=True)
class Sent:
    """What became of a file."""

    asset_id: str
    status: dict[str, Any]


@dataclass
class Chain:
    """An installation with all files sent, processed and approved."""

    up: Up
    gateway: httpx.Client
    partner: dict[str, str]
    sent: dict[str, Sent] = field(default_factory=dict)

    def submit(self, name: str, file: Path, data_type: str, **options: Any) -> str:
        bronze = self.up.home / "storage" / "bronze" / "ddh"
        bronze.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, bronze)
        body = {
            "dataset_id": name.replace(" ", "-").replace("^", ""),
            "resource_id": "r",
            "version_id": "v1",
            "data_type": data_type,
            "container_name": "bronze",
            "file_name": f"ddh/{file.name}",
            "processing_options": options,
        }
        answer = self.gateway.post("/api/platform/submit", json=body, headers=self.partner)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["request_id"])

    def approve(self, name: str, request_id: str) -> None:
        def asked() -> dict[str, Any] | None:
            told: dict[str, Any] = self.gateway.get(f"/api/platform/status/{request_id}", headers=self.partner).json()
            return told if told["status"] in {"completed", "failed"} else None

        told = eventually(asked, lambda: f"the end of {name}; {self.up.errors}", 120)
        if told["status"] == "failed":  # the test of this file says so
            self.sent[name] = Sent(told["asset_id"], told)
            return
        decision = {"asset_id": told["asset_id"], "clearance_level": "ouo"}
        answer = self.gateway.post("/api/platform/approve", json=decision)
        assert answer.status_code == 200, answer.text
        self.sent[name] = Sent(told["asset_id"], self._status(request_id))

    def _status(self, request_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.gateway.get(f"/api/platform/status/{request_id}", headers=self.partner).json()
        return found

    def served(self, path: str, **params: Any) -> Any:
        """Ask the services; numbers are read as Python reads them, with all digits."""
        return json.loads(self.asked(path, **params).content)

    def asked(self, path: str, **params: Any) -> httpx.Response:
        answer = httpx.get(f"http://127.0.0.1:{self.up.port + 3}{path}", params=params, timeout=30, trust_env=False)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer

    def processed(self, name: str) -> Sent:
        sent = self.sent[name]
        assert sent.status["status"] == "completed", sent.status["error"]
        return sent

    def item(self, name: str) -> Any:
        (item,) = self.served(f"{httpx.URL(self.sent[name].status['service_urls']['stac']).path}/items")["features"]
        return item

    def file(self, name: str, ending: str) -> Path:
        """Give a file that was made of what was sent."""
        found = [*(self.up.home / "storage" / "silver").rglob(f"*{ending}")]
        (path,) = [each for each in found if name.replace(" ", "-").replace("^", "") in str(each)]
        return path


def _raster(path: Path, data: NDArray[Any], nodata: float | None, scales: list[float] | None = None) -> Path:
    count, height, width = data.shape
    profile = {"crs": "EPSG:4326", "transform": PLACE, "count": count, "height": height, "width": width}
    if isinstance(nodata, int):
        return write_with_nodata(path, data, nodata)
    with rasterio.open(path, "w", driver="GTiff", dtype=data.dtype, nodata=nodata, **profile) as dataset:
        dataset.write(data)
        if scales:
            dataset.scales, dataset.offsets = scales, scales[::-1]
    return path


def _case_raster(folder: Path, name: str, case: Case) -> Path:
    data = np.full((1, 6, 6), case.value, case.dtype)
    data[0, 0, 0] = case.nodata
    return _raster(folder / f"{name.replace(' ', '-').replace('^', '')}.tif", data, case.nodata)


def _scaled_raster(folder: Path) -> Path:
    data = np.stack([np.full((6, 6), value, "float64") for value in SCALES])
    data[:, 0, 0] = 0
    return _raster(folder / "scaled.tif", data, None, SCALES)


def _hyperspectral(folder: Path) -> Path:
    """Write as many bands as are accepted; each pixel holds the number of its band."""
    data = np.broadcast_to(np.arange(1, BANDS + 1, dtype="int16").reshape(-1, 1, 1), (BANDS, 20, 20))
    return _raster(folder / "hyperspectral.tif", data, None)


def _features(folder: Path) -> Path:
    kinds = {"real": pa.float64(), "whole": pa.int64(), "unsigned": pa.uint64()}
    columns = {
        name: pa.array([*values, *[None] * (ROWS - len(values))], kinds[name]) for name, values in ATTRIBUTES.items()
    }
    points = shapely.to_wkb(shapely.points([(float(row), 10.0) for row in range(ROWS)]))
    table = pa.table({**columns, "geometry": pa.array(points, pa.binary())})
    geo = {"version": "1.1.0", "primary_column": "geometry"}
    geo["columns"] = {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}}  # type: ignore[assignment]
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), folder / "attributes.parquet")
    return folder / "attributes.parquet"


@pytest.fixture(scope="module")
def chain(first_start: FirstStart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("numbers")
    with open_folder() as made:
        up = Up(copy_home(first_start.home, made / "home"), serve=True, GRATICULE_RATE_LIMIT_PER_MINUTE="6000")
        try:
            up.until_ready()
            command = Engine(up).begin("client", "add", "ddh", "--role", "submitter", "--platform", "ddh", "--json")
            assert command.wait(60) == 0, command.errors
            partner = {"X-API-Key": str(json.loads(command.output)["key"])}
            address, key = f"http://127.0.0.1:{up.port}", {"X-API-Key": up.admin_key}
            with httpx.Client(base_url=address, headers=key, timeout=60, trust_env=False) as gateway:
                chain = Chain(up, gateway, partner)
                requests = {
                    name: chain.submit(name, _case_raster(folder, name, case), "raster") for name, case in CASES.items()
                }
                requests["hyperspectral"] = chain.submit("hyperspectral", _hyperspectral(folder), "raster")
                requests["scaled"] = chain.submit("scaled", _scaled_raster(folder), "raster")
                requests["attributes"] = chain.submit("attributes", _features(folder), "vector", geoparquet=True)
                for name, request_id in requests.items():
                    chain.approve(name, request_id)
                yield chain
        finally:
            up.close()


@pytest.mark.parametrize("name", ["hyperspectral", "attributes"], ids=["raster", "vector"])
def test_an_item_names_the_request_and_the_version_that_it_was_made_of(chain: Chain, name: str) -> None:
    sent, properties = chain.processed(name), chain.item(name)["properties"]
    named = {key: properties.get(f"platform:{key}") for key in ("request_id", "version_id", "asset_id")}
    assert named == {"request_id": sent.status["request_id"], "version_id": "v1", "asset_id": sent.asset_id}


@pytest.mark.parametrize("name", CASES)
def test_nodata_and_extreme_values(chain: Chain, name: str) -> None:
    case, sent = CASES[name], chain.processed(name)
    facts = sent.status["validation"]["facts"]
    assert (facts["nodata"], facts["bands"][0]["nodata"]) == (case.told, case.told)
    data = chain.item(name)["assets"]["data"]
    for band in (data["bands"][0], data["raster:bands"][0]):
        assert (band["nodata"], band["data_type"]) == (case.told, case.dtype)
        assert (band["statistics"]["minimum"], band["statistics"]["maximum"]) == (case.value, case.value)
    with rasterio.open(chain.file(name, ".tif")) as dataset:
        np.testing.assert_equal(exact_nodata(dataset), case.nodata)
        assert dataset.read(1)[3, 3] == case.value
        assert (dataset.read_masks(1) == 0).sum() == 1
    info = chain.served(f"/tiles/{sent.asset_id}/info")
    assert (info["nodata_type"], info["nodata_value"]) == ("Nodata", case.told)
    (statistics,) = chain.served(f"/tiles/{sent.asset_id}/statistics").values()
    assert (statistics["min"], statistics["max"]) == (case.value, case.value)
    assert statistics["valid_pixels"] == 35
    assert chain.served(f"/tiles/{sent.asset_id}/point/10.035,49.965")["values"] == [case.value]
    assert chain.served(f"/tiles/{sent.asset_id}/point/10.005,49.995")["values"] == [None]


def test_scales_offsets_and_statistics(chain: Chain) -> None:
    sent, offsets = chain.processed("scaled"), SCALES[::-1]
    item = chain.item("scaled")["assets"]["data"]
    found = [(band["scale"], band["offset"]) for band in item["raster:bands"]]
    assert found == list(zip(SCALES, offsets, strict=True))
    extremes = [(min(0.0, value), max(0.0, value)) for value in SCALES]
    statistics = [band["statistics"] for band in item["raster:bands"]]
    assert [(each["minimum"], each["maximum"]) for each in statistics] == extremes
    info = chain.served(f"/tiles/{sent.asset_id}/info")
    assert (info["scales"], info["offsets"]) == (SCALES, offsets)
    told = chain.served(f"/tiles/{sent.asset_id}/statistics")
    assert [(each["min"], each["max"]) for each in told.values()] == extremes
    with rasterio.open(chain.file("scaled", ".tif")) as dataset:
        assert (list(dataset.scales), list(dataset.offsets)) == (SCALES, offsets)


def test_as_many_bands_as_are_accepted(chain: Chain) -> None:
    sent, tile = chain.processed("hyperspectral"), morecantile.tms.get("WebMercatorQuad").tile(10.1, 49.9, 11)
    bands = chain.item("hyperspectral")["assets"]["data"]["bands"]
    assert [band["statistics"]["maximum"] for band in bands] == list(range(1, BANDS + 1))
    assert chain.served(f"/tiles/{sent.asset_id}/info")["count"] == BANDS
    chosen = [1, 512, BANDS]
    assert chain.served(f"/tiles/{sent.asset_id}/point/10.1,49.9", bidx=chosen)["values"] == chosen
    assert chain.served(f"/tiles/{sent.asset_id}/point/10.1,49.9")["values"] == list(range(1, BANDS + 1))
    picture = chain.asked(f"/tiles/{sent.asset_id}/tiles/WebMercatorQuad/{tile.z}/{tile.x}/{tile.y}.png")
    assert picture.headers["content-type"] == "image/png"


def test_attributes(chain: Chain) -> None:
    sent = chain.processed("attributes")
    page = chain.served(f"/features/{sent.asset_id}/collections/features/items", limit=100)
    rows = [each["properties"] for each in sorted(page["features"], key=lambda each: each["id"])]
    for name, values in ATTRIBUTES.items():
        told = [value if isinstance(value, int) or (value and math.isfinite(value)) else None for value in values]
        assert [row[name] for row in rows[: len(values)]] == told, name
    table = pq.read_table(chain.file("attributes", ".parquet"))
    order = np.argsort(shapely.bounds(shapely.from_wkb(table["geom"].to_pylist()))[:, 0])
    for name, values in ATTRIBUTES.items():
        found = [table[name].to_pylist()[place] for place in order][: len(values)]
        np.testing.assert_equal([None if value is None else value for value in found], values)
