"""One raster becomes one COG."""

import hashlib
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.windows import Window
from rio_cogeo.cogeo import cog_validate
from tests.integration.handlers.raster.desk import Desk, pixels
from tests.rasters import write_with_nodata

from graticule.core.validation import ValidationReport
from graticule.handlers.context import Signals
from graticule.handlers.raster.nodata import exact_nodata


def test_a_cog_is_staged_and_told_of(desk: Desk) -> None:
    source = desk.source("dem", "in/Terrain 1.tif", width=600, height=300)
    made = desk.run(
        "raster.create_cog", source=source, source_etag=desk.etag(source), blob_prefix="acme/x", band_names=["Height"]
    )
    assert made["blob_path"] == "silver/acme/x/cogs/Terrain_1.tif"
    assert desk.blobs() == ["silver/89abcdef/out/cogs/Terrain_1.tif"]
    file = desk.staged("cogs/Terrain_1.tif")
    assert made["checksum"] == made["output_hash"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert made["size_bytes"] == file.stat().st_size
    assert cog_validate(file, strict=True, quiet=True) == (True, [], [])
    assert (made["tier"], made["compression"], made["storage_tier"]) == ("analysis", "deflate", "hot")
    assert (made["passed_through"], made["warnings"], made["raster_type"]) == (False, [], "dem")
    with rasterio.open(file) as dataset:
        assert dataset.descriptions == ("Height",)
        assert made["shape"] == [dataset.height, dataset.width]
        assert made["bbox"] == pytest.approx(list(dataset.bounds))
    assert desk.told[-1]["done"] == desk.told[-1]["total"]


@pytest.mark.parametrize(
    ("kind", "tier", "compression", "warns"),
    [
        ("rgb", "visualization", "jpeg", False),
        ("rgba", "visualization", "webp", True),
        ("dem", "visualization", "deflate", True),
        ("rgb", "archive", "zstd", False),
    ],
)
def test_a_tier_is_a_compression(desk: Desk, kind: str, tier: str, compression: str, warns: bool) -> None:
    made = desk.run("raster.create_cog", source=desk.source(kind), output_tier=tier)
    assert (made["compression"], bool(made["warnings"])) == (compression, warns)
    assert made["storage_tier"] == ("cool" if tier == "archive" else "hot")


def test_nodata_becomes_a_mask_where_values_are_blurred(desk: Desk) -> None:
    source = desk.source("rgb", nodata=0, width=200, height=150)
    with rasterio.open(desk.file(source), "r+") as dataset:
        dataset.write(np.zeros((3, 40, 50), "uint8"), window=Window(20, 30, 50, 40))
    exact = desk.run("raster.create_cog", source=source)
    _, wanted = pixels(desk.staged("cogs/scene.tif"))
    with rasterio.open(desk.staged("cogs/scene.tif")) as dataset:
        empty = (dataset.read() == 0).all(axis=0)
    assert empty.any()
    blurred = desk.run("raster.create_cog", source=source, output_tier="visualization", resampling="nearest")
    _, mask = pixels(desk.staged("cogs/scene.tif"))
    np.testing.assert_array_equal(mask == 0, empty)
    np.testing.assert_array_equal(mask == 0, wanted == 0)
    counts = [[band["statistics"]["count"] for band in made["bands"]] for made in (exact, blurred)]
    assert counts[0] == counts[1]


def test_auto_blends_only_what_is_displayed(desk: Desk) -> None:
    """The same pixels come out as with the method that auto stands for."""
    for kind, tier, method in (
        ("dem", "visualization", "bilinear"),
        ("dem", "analysis", "nearest"),
        ("categorical", "visualization", "nearest"),
    ):
        source = desk.source(kind, width=80, height=60)
        options = {"source": source, "output_tier": tier, "raster_type": kind}
        hashes = [desk.run("raster.create_cog", **options, resampling=each)["output_hash"] for each in ("auto", method)]
        assert hashes[0] == hashes[1], (kind, tier)


@pytest.mark.parametrize(("count", "dtype", "block"), [(326, "int16", 128), (1024, "float64", 32)])
def test_many_bands(desk: Desk, count: int, dtype: str, block: int) -> None:
    source = desk.source("dem", width=300, height=20)
    values = np.arange(count * 20 * 300).reshape(count, 20, 300).astype(dtype)
    with rasterio.open(desk.file(source)) as dataset:
        profile = {**dataset.profile, "count": count, "dtype": dtype, "nodata": None, "crs": "EPSG:4326"}
    profile |= {"transform": Affine(0.001, 0, 10, 0, -0.001, 50), "interleave": "band"}
    with rasterio.open(desk.file(source), "w", **profile) as dataset:
        dataset.write(values)
    made = desk.run("raster.create_cog", source=source)
    path = desk.staged(made["files"][0])
    assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
    with rasterio.open(path) as dataset:
        assert set(dataset.block_shapes) == {(block, block)}
        np.testing.assert_array_equal(dataset.read(), values)
    maxima = [band["statistics"]["max"] for band in made["bands"]]
    assert maxima == values.max(axis=(1, 2)).tolist()


@pytest.mark.parametrize(
    ("dtype", "nodata"),
    [("uint64", 2**64 - 1), ("uint64", 2**53 + 1), ("int64", -(2**63)), ("int64", 2**63 - 1), ("int64", -9999)],
)
@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32632"])
def test_integers_of_64_bits_are_exact(desk: Desk, dtype: str, nodata: int, crs: str) -> None:
    limits, size = np.iinfo(dtype), 40
    values = np.random.default_rng(3).integers(limits.min, limits.max, (1, size, size), dtype, endpoint=True)
    values[0, 10:20, 10:20] = nodata
    place = Affine(0.01, 0, 10, 0, -0.01, 50) if crs == "EPSG:4326" else Affine(100, 0, 5e5, 0, -100, 5e6)
    source = desk.source("dem")
    write_with_nodata(desk.file(source), values, nodata, crs=crs, transform=place)
    made = desk.run("raster.create_cog", source=source)
    with rasterio.open(desk.staged(made["files"][0])) as dataset:
        assert exact_nodata(dataset) == nodata
        data, valid = dataset.read(), dataset.read_masks(1) != 0
    assert set(data[0][valid].tolist()) <= set(values.ravel().tolist()) - {nodata}
    assert (data[0][~valid] == nodata).all()
    (band,) = made["bands"]
    exact = data[0][valid].tolist()
    found = band["statistics"]
    assert (band["nodata"], found["min"], found["max"]) == (nodata, min(exact), max(exact))
    assert found["mean"] == pytest.approx(sum(exact) / len(exact))


def test_a_source_that_fits_is_copied_as_it_is(desk: Desk) -> None:
    first = desk.run("raster.create_cog", source=desk.source("multispectral", width=600, height=300))
    ready = desk.file("bronze/ready.tif")
    ready.write_bytes(desk.staged(first["files"][0]).read_bytes())
    copied = desk.run("raster.create_cog", source="bronze/ready.tif", source_etag=desk.etag("bronze/ready.tif"))
    assert copied["passed_through"]
    assert copied["checksum"] == first["checksum"]
    assert desk.staged("cogs/ready.tif").read_bytes() == ready.read_bytes()
    assert copied["bands"] == first["bands"]


@pytest.mark.parametrize(
    "options",
    [{"band_names": ["a", "b", "c", "d"]}, {"output_tier": "archive"}, {"target_crs": "EPSG:3857"}],
)
def test_a_cog_that_is_wanted_otherwise_is_made_anew(desk: Desk, options: dict[str, Any]) -> None:
    first = desk.run("raster.create_cog", source=desk.source("multispectral"))
    desk.file("bronze/ready.tif").write_bytes(desk.staged(first["files"][0]).read_bytes())
    assert not desk.run("raster.create_cog", source="bronze/ready.tif", **options)["passed_through"]


def test_it_stops_when_it_is_told(desk: Desk) -> None:
    source = desk.source("dem", width=600, height=600)
    cancelled = desk.result("raster.create_cog", source=source, signals=Signals(cancelled=True))
    assert (cancelled.error_message, cancelled.retryable) == ("cancelled", False)
    assert desk.result("raster.create_cog", source=source, signals=Signals(shutdown_requested=True)).is_interrupted
    assert desk.blobs() == []


def test_a_source_that_cannot_be_decoded_is_rejected(desk: Desk) -> None:
    source = desk.source("rgb", width=600, height=600, compress="deflate")
    file = desk.file(source)
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2 : len(whole) // 2 + 50_000] = b"\0" * 50_000
    file.write_bytes(whole)
    result = desk.result("raster.create_cog", source=source)
    assert not result.retryable
    assert "corrupt" in str(result.report)
    assert str(desk.root) not in str(result.report) + str(result.error_message)
    assert desk.blobs() == []


def test_another_etag_is_another_source(desk: Desk) -> None:
    result = desk.result("raster.create_cog", source=desk.source("dem"), source_etag="before")
    assert "source_changed" in str(result.report)
    gone = desk.result("raster.create_cog", source="bronze/gone.tif", source_etag="before")
    assert "removed" in str(gone.error_message)


def test_too_many_bands_are_rejected_without_validation_too(desk: Desk) -> None:
    source = desk.source("rgb", width=16, height=16)
    with rasterio.open(desk.file(source)) as dataset:
        profile = {**dataset.profile, "count": 1025, "dtype": "uint8", "photometric": "MINISBLACK"}
    with rasterio.open(desk.file(source), "w", **profile) as dataset:
        dataset.write(np.ones((1025, 16, 16), "uint8"))
    refused = desk.result("raster.create_cog", source=source)
    assert (refused.retryable, desk.blobs()) == (False, [])
    report = ValidationReport.read(refused.report)
    assert report is not None
    assert report.findings[0].code == "too_many_bands"
