"""From a source to tiles and a mosaic, by the handlers themselves."""

from typing import Any

import morecantile
import numpy as np
import orjson
import pytest
import rasterio
from cogeo_mosaic.mosaic import MosaicJSON
from rasterio.windows import Window
from tests.integration.handlers.raster.desk import JOB, Desk

from graticule.handlers.context import Signals
from graticule.handlers.raster import mosaic_making, tiling
from graticule.handlers.raster.tiling import told_bytes

SMALL: dict[str, Any] = {"tile_size": 512, "overlap": 64}
WEB = morecantile.tms.get("WebMercatorQuad")


def assert_tiles_are_parts_of(desk: Desk, whole: Any, tiles: list[Any]) -> None:
    """Compare each tile, all its overviews included, with the same window of the whole."""
    with rasterio.open(desk.staged(whole["files"][0])) as expected:
        for tile in tiles:
            with rasterio.open(desk.staged(tile["name"])) as found:
                reductions = [1, *found.overviews(1)]
                assert found.nodata == expected.nodata or (np.isnan(found.nodata) and np.isnan(expected.nodata))
                assert found.profile["dtype"] == expected.profile["dtype"]
            for level, reduction in enumerate(reductions):
                assert_same_pixels(desk, whole, tile, level, reduction)


def assert_same_pixels(desk: Desk, whole: Any, tile: Any, level: int, reduction: int) -> None:
    options = {} if level == 0 else {"overview_level": level - 1}
    with (
        rasterio.open(desk.staged(whole["files"][0]), **options) as expected,
        rasterio.open(desk.staged(tile["name"]), **options) as found,
    ):
        column, row = (number // reduction for number in tile["window"][:2])
        window = Window(column, row, found.width, found.height)
        np.testing.assert_array_equal(found.read(), expected.read(window=window))
        np.testing.assert_array_equal(found.dataset_mask(), expected.dataset_mask(window=window))


def assert_statistics_of(desk: Desk, whole: Any, bands: list[Any]) -> None:
    with rasterio.open(desk.staged(whole["files"][0])) as dataset:
        for place, band in enumerate(bands):
            values = np.ma.compressed(dataset.read(place + 1, masked=True)).astype("f8")
            counted = band["statistics"]
            assert (counted["count"], counted["min"], counted["max"]) == (values.size, values.min(), values.max())
            assert counted["mean"] == pytest.approx(values.mean(), rel=1e-12)
            assert counted["stddev"] == pytest.approx(values.std(), rel=1e-9)


@pytest.mark.parametrize("kind", ["rgb", "dem", "categorical", "antimeridian", "arctic"])
def test_tiles_are_the_whole_in_pieces(desk: Desk, kind: str) -> None:
    source = desk.source(kind, width=600, height=300)
    before = desk.file(source).read_bytes()
    whole = desk.run("raster.create_cog", source=source)
    scheme, tiles, mosaic = desk.chain(source, **SMALL)
    assert scheme["tile_count"] == len(tiles) >= 2
    for tile in tiles:
        assert len(orjson.dumps(tile)) < told_bytes(tile["tile_id"], len(tile["bands"]), scheme["blob_prefix"])
    assert mosaic["grid"] == whole["grid"] == scheme["grid"]
    assert_tiles_are_parts_of(desk, whole, tiles)
    assert_statistics_of(desk, whole, mosaic["bands"])
    assert_statistics_of(desk, whole, whole["bands"])
    named = {"name", "data_type", "nodata", "unit", "color_interpretation", "scale", "offset"}
    assert [{key: band[key] for key in named} for band in mosaic["bands"]] == [
        {key: band[key] for key in named} for band in whole["bands"]
    ]
    assert desk.file(source).read_bytes() == before


def test_overviews_of_tiles_are_those_of_the_whole(desk: Desk) -> None:
    source = desk.source("dem", width=1300, height=600)
    whole = desk.run("raster.create_cog", source=source)
    scheme, tiles, _ = desk.chain(source, tile_size=1024, overlap=63)
    assert scheme["overlap"] == 64  # tiles begin where a pixel of the overview does
    assert len(tiles) == 2
    assert_tiles_are_parts_of(desk, whole, tiles)


def test_a_scheme_is_a_map_of_the_tiles(desk: Desk) -> None:
    source = desk.source("rgb", width=600, height=300)
    scheme, tiles, _ = desk.chain(source, band_names={"1": "Red"}, raster_type="rgb", **SMALL)
    assert scheme["scheme"] == f"silver/{JOB[-8:]}/out/schemes/scene.geojson"
    assert scheme["batches"] == [["scene_tile_0_0"], ["scene_tile_1_0"]]
    written = orjson.loads(desk.storage.get(scheme["scheme"]))
    assert (written["type"], written["source_crs"], written["target_crs"]) == (
        "FeatureCollection",
        "EPSG:32620",
        "EPSG:4326",
    )
    assert (written["tile_size"], written["overlap"], written["grid_size"]) == (512, 64, {"columns": 2, "rows": 1})
    assert [band["name"] for band in written["bands"]] == ["Red", "b2", "b3"]
    for feature, tile in zip(written["features"], tiles, strict=True):
        told = feature["properties"]
        assert (told["tile_id"], told["window"], told["bounds_4326"]) == (
            tile["tile_id"],
            tile["window"],
            tile["bounds_4326"],
        )
        with rasterio.open(desk.staged(tile["name"])) as dataset:
            assert tuple(told["bounds_4326"]) == pytest.approx(tuple(dataset.bounds))
            assert (dataset.height, dataset.width) == tuple(tile["shape"])
            assert dataset.descriptions[0] == "Red"


def test_a_mosaic_names_the_tiles_of_each_square(desk: Desk) -> None:
    source = desk.source("rgb", width=600, height=300)
    _, tiles, mosaic = desk.chain(source, blob_prefix="acme/data/v1", overview_level=3, **SMALL)
    assert mosaic["mosaic_path"] == "silver/acme/data/v1/mosaics/scene.json"
    assert mosaic["files"] == [
        "cogs/scene_tile_0_0.tif",
        "cogs/scene_tile_1_0.tif",
        "mosaics/scene.json",
        "schemes/scene.geojson",
    ]
    assert mosaic["minzoom"] == mosaic["maxzoom"] - 3
    written = MosaicJSON.model_validate_json(desk.staged("mosaics/scene.json").read_bytes())
    assert (written.mosaicjson, written.minzoom, written.quadkey_zoom) == (
        "0.0.3",
        mosaic["minzoom"],
        mosaic["minzoom"],
    )
    for tile in tiles:
        west, south, east, north = tile["bounds_4326"]
        for point in [(west, south), (east, north), ((west + east) / 2, (south + north) / 2)]:
            square = WEB.quadkey(WEB.tile(*point, mosaic["minzoom"]))
            assert f"silver/acme/data/v1/{tile['name']}" in written.tiles[square]
    with rasterio.open(desk.staged(tiles[0]["name"])) as dataset:  # zoom 14 is 9.6 m, and a pixel has 10
        assert mosaic["maxzoom"] == 14
        assert dataset.res[0] * 111_320 == pytest.approx(10, rel=0.1)
    assert mosaic["size_bytes"] == sum(tile["size_bytes"] for tile in tiles)
    assert len(mosaic["output_hash"]) == 64


def test_a_mosaic_across_the_antimeridian_has_squares_on_both_sides(desk: Desk) -> None:
    _, _, mosaic = desk.chain(desk.source("antimeridian", width=600, height=300), **SMALL)
    assert mosaic["bbox"][0] > 170
    assert mosaic["bbox"][2] < -170
    written = MosaicJSON.model_validate_json(desk.staged("mosaics/scene.json").read_bytes())
    columns = {WEB.quadkey_to_tile(quadkey).x for quadkey in written.tiles}
    assert {0, 2**written.minzoom - 1} <= columns
    assert len(columns) < 10
    assert mosaic["maxzoom"] in {12, 13}  # whose pixels have 38 and 19 m; those of the source have 25


def test_a_mosaic_of_the_same_tiles_has_the_same_hash_whatever_their_order(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme, tiles, mosaic = desk.chain(desk.source("categorical", width=600, height=300), **SMALL)
    again = desk.run("raster.create_mosaicjson", scheme=scheme["scheme"], tiles=tiles[::-1])
    assert again["output_hash"] == mosaic["output_hash"]
    monkeypatch.setattr(mosaic_making, "MOST_SQUARES", 1)
    coarse = desk.run("raster.create_mosaicjson", scheme=scheme["scheme"], tiles=tiles)
    assert (coarse["maxzoom"], coarse["minzoom"] < mosaic["minzoom"]) == (mosaic["maxzoom"], True)
    assert len(MosaicJSON.model_validate_json(desk.staged("mosaics/scene.json").read_bytes()).tiles) == 1
    refused = desk.result("raster.create_mosaicjson", scheme=scheme["scheme"], tiles=tiles[1:])
    assert (refused.error_message, refused.retryable) == (
        "Of 2 tiles 1 are missing, such as 'scene_tile_0_0'.",
        False,
    )


@pytest.mark.parametrize("kind", ["rgba", "dem"])
def test_tiles_from_extracted_pieces_are_the_same(desk: Desk, kind: str) -> None:
    source = desk.source(kind, width=1200, height=300, blockxsize=256, blockysize=256, tiled=True)
    options: dict[str, Any] = {**SMALL, "resampling": "bilinear" if kind == "dem" else "nearest"}
    _, tiles, _ = desk.chain(source, **options)
    _, from_pieces, _ = desk.chain(source, extract=True, **options)
    assert [tile["checksum"] for tile in from_pieces] == [tile["checksum"] for tile in tiles]
    pieces = [blob for blob in desk.blobs() if "/tiles/" in blob]
    assert [path.rsplit("/", 1)[1] for path in pieces] == sorted(f"{tile['tile_id']}.tif" for tile in tiles)
    with rasterio.open(desk.file(pieces[0])) as piece:
        of_block = 512 * 512 * piece.count * np.dtype(piece.dtypes[0]).itemsize
    assert all(desk.file(path).stat().st_size < 3 * of_block for path in pieces)  # the source has 3 blocks


def scheme_of_six(desk: Desk) -> tuple[str, list[str]]:
    source = desk.source("categorical", width=1000, height=560)
    scheme = desk.run("raster.generate_tiling_scheme", source=source, source_etag=desk.etag(source), **SMALL)
    return scheme["scheme"], [tile_id for batch in scheme["batches"] for tile_id in batch]


class Crash(Exception):
    pass


def crash_at(tile_id: str) -> Any:
    def on_progress(told: dict[str, Any]) -> None:
        if told["message"] == tile_id:
            raise Crash

    return on_progress


def test_a_batch_goes_on_after_its_last_finished_tile(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)
    assert len(ids) == 6
    saved = desk.saved()
    with pytest.raises(Crash):
        desk.run("raster.process_tile_batch", scheme=scheme, tile_ids=ids, saved=saved, on_progress=crash_at(ids[2]))
    assert [checkpoint.phase for checkpoint in saved.all] == ["tile 1", "tile 2"]
    made = [desk.staged(f"cogs/{tile_id}.tif") for tile_id in ids]
    assert [path.exists() for path in made] == [True, True, False, False, False, False]
    before = [path.stat().st_mtime_ns for path in made[:2]]
    desk.told.clear()
    tiles = desk.run("raster.process_tile_batch", scheme=scheme, tile_ids=ids, saved=saved)
    assert [tile["tile_id"] for tile in tiles] == ids
    assert {told["message"] for told in desk.told} == set(ids[2:])
    assert [path.stat().st_mtime_ns for path in made[:2]] == before
    assert [told["done"] for told in desk.told] == sorted(told["done"] for told in desk.told)
    assert (desk.told[-1]["done"], desk.told[-1]["total"]) == (6.0, 6)
    made[0].unlink()  # an artifact that is gone: nothing of the checkpoint counts
    assert desk.run("raster.process_tile_batch", scheme=scheme, tile_ids=ids[:2], saved=saved) == tiles[:2]


def test_extraction_goes_on_after_its_last_piece(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)
    saved = desk.saved()
    with pytest.raises(Crash):
        desk.run("raster.extract_tiles", scheme=scheme, saved=saved, on_progress=crash_at(ids[3]))
    assert len(saved.all) == 4
    desk.told.clear()
    done = desk.run("raster.extract_tiles", scheme=scheme, saved=saved)
    assert done == {"pieces": f"silver/{JOB[-8:]}/tiles", "tile_count": 6}
    assert [told["message"] for told in desk.told] == ids[4:]


def test_one_tile_is_a_batch_of_one(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)
    tile = desk.run("raster.process_tile", scheme=scheme, tile_id=ids[4])
    assert [tile] == desk.run("raster.process_tile_batch", scheme=scheme, tile_ids=[ids[4]])
    unknown = desk.result("raster.process_tile", scheme=scheme, tile_id="x")
    assert (unknown.error_message, unknown.retryable) == ("The scheme has no tile 'x'.", False)


def test_a_tile_stops_when_it_is_told(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)
    signals = Signals()

    def cancel(_: dict[str, Any]) -> None:
        signals.cancelled = True

    result = desk.result("raster.process_tile_batch", scheme=scheme, tile_ids=ids, signals=signals, on_progress=cancel)
    assert (result.error_message, result.retryable) == ("cancelled", False)
    stopping = Signals(shutdown_requested=True)
    assert desk.result("raster.process_tile", scheme=scheme, tile_id=ids[0], signals=stopping).is_interrupted
    assert desk.result("raster.extract_tiles", scheme=scheme, signals=stopping).is_interrupted
    assert desk.blobs() == [scheme]  # not even the tile that it was at
    assert not [path for path in desk.root.rglob("*") if "partial" in path.name]


def test_a_source_that_changes_is_rejected(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)
    desk.source("categorical", width=1000, height=560)
    result = desk.result("raster.process_tile", scheme=scheme, tile_id=ids[0])
    assert not result.retryable
    assert result.report is not None
    assert result.report["findings"][0]["code"] == "source_changed"  # type: ignore[index,call-overload]


def test_a_source_that_changes_while_it_is_read_is_rejected(desk: Desk) -> None:
    scheme, ids = scheme_of_six(desk)

    def change(_: dict[str, Any]) -> None:
        desk.source("categorical", width=1000, height=560)

    result = desk.result("raster.process_tile", scheme=scheme, tile_id=ids[0], on_progress=change)
    assert not result.retryable
    assert "source_changed" in str(result.report)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tile_size": 1000}, "multiple of 512"),
        ({"tile_size": 512, "overlap": 512}, "half the tile size"),
        ({"target_crs": "EPSG:0"}, "EPSG:4326"),
        ({"band_names": ["a", "b"]}, "2 band_names for 1 bands"),
        ({"band_names": {"2": "a"}}, "no band '2'"),
        ({"blob_prefix": "../x"}, "blob_prefix"),
    ],
)
def test_options_that_cannot_be_are_refused(desk: Desk, options: dict[str, Any], said: str) -> None:
    result = desk.result("raster.generate_tiling_scheme", source=desk.source("dem"), **options)
    assert said in (result.error_message or "")
    assert not result.retryable
    assert desk.blobs() == []


@pytest.mark.parametrize(("limit", "said"), [("MOST_TILE_BYTES", "GiB each"), ("MAX_FAN_BYTES", "would be told")])
def test_tiles_that_nobody_could_bear_are_refused(
    desk: Desk, limit: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiling, limit, 100)
    result = desk.result("raster.generate_tiling_scheme", source=desk.source("dem"), **SMALL)
    assert said in (result.error_message or "")
    assert not result.retryable
