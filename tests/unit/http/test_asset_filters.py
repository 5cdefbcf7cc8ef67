"""The filters of lists of assets as they stand in an address."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.http.asset_filters import WantedAssets
from graticule.http.problems import install_problem_handlers
from graticule.repositories.asset_views import Area, AssetFilter

read: list[AssetFilter] = []


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()
    install_problem_handlers(app)

    @app.get("/assets")
    def assets(wanted: WantedAssets) -> None:
        read.append(wanted)

    read.clear()
    with TestClient(app) as opened:
        yield opened


def test_every_filter_can_be_asked_for(client: TestClient) -> None:
    asked = {
        "platform": "ddh",
        "refs": '{"dataset_id": "0038272", "layer_index": 0}',
        "data_type": "raster",
        "clearance_state": "public",
        "approval_state": "approved",
        "processing_state": "failed",
        "q": "alpine la",
        "bbox": "170.5,-10,-170,10",
        "deleted": "true",
    }
    assert client.get("/assets", params=asked).status_code == 200
    assert read == [
        AssetFilter(
            platform_id="ddh",  # type: ignore[arg-type]
            refs={"dataset_id": "0038272", "layer_index": 0},
            data_type=DataType.RASTER,
            clearance_state=ClearanceState.PUBLIC,
            approval_state=ApprovalState.APPROVED,
            processing_state=ProcessingState.FAILED,
            text="alpine la",
            bbox=Area(170.5, -10, -170, 10),
            with_deleted=True,
        )
    ]


def test_nothing_asked_is_everything_that_is_not_deleted(client: TestClient) -> None:
    assert client.get("/assets").status_code == 200
    assert read == [AssetFilter()]


@pytest.mark.parametrize(
    "asked",
    [
        {"platform": "D"},
        {"refs": "x"},
        {"refs": "[]"},
        {"refs": "{}"},
        {"refs": '{"a": 1.5}'},
        {"refs": '{"a": "' + "x" * 600 + '"}'},
        {"data_type": "x"},
        {"q": ""},
        {"q": "a\0b"},
        {"bbox": "1,2,3"},
        {"bbox": "nan,1,1,1"},
        {"bbox": "1e9,1,1,1"},
        {"bbox": "181,0,1,1"},
        {"bbox": "0,10,1,9"},
        {"bbox": "0,-91,1,9"},
        {"deleted": "x"},
    ],
    ids=str,
)
def test_what_is_no_filter_is_refused(client: TestClient, asked: dict[str, Any]) -> None:
    assert client.get("/assets", params=asked).status_code == 422
    assert read == []
