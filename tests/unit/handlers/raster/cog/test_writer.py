"""COGs as readers see them: pixels, overviews, masks and layout."""

import hashlib
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.enums import ColorInterp
from tests.unit.handlers.raster.cog.rasters import (
    DEFLATE,
    RGB,
    Array,
    ArraySource,
    assert_cog,
    gdal_overviews,
    level,
    mask,
    noise,
    profile_for,
    validated,
    write,
)

from graticule.handlers.raster.cog import header, writer
from graticule.handlers.raster.cog.encoding import Encoding
from graticule.handlers.raster.cog.pyramid import level_sizes, reduced
from graticule.handlers.raster.cog.writer import write_cog
from graticule.handlers.raster.pixels import Box, Pixels

RGBA = (*RGB, ColorInterp.alpha)
ZSTD = Encoding("zstd", level=1, predictor=2)
COLOURS = {0: (0, 0, 0, 255), 1: (30, 120, 40, 255), 2: (10, 20, 200, 255), 3: (250, 250, 0, 255)}


def all_levels(path: Path) -> list[Array]:
    with rasterio.open(path) as dataset:
        count = len(dataset.overviews(1))
    return [level(path), *(level(path, number) for number in range(count))]


def assert_pixels(path: Path, data: Array, valid: Any = None, **changes: Any) -> None:
    """Every level is read back exactly: the image as it was given, each overview as halved from the one before."""
    expected = Pixels(data, valid)
    for found in all_levels(path):
        np.testing.assert_array_equal(found, expected.data)
        expected = reduced(expected, profile_for(data, **changes))


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (511, 512), (512, 512), (511, 513), (513, 1), (2, 700), (1024, 1024), (1537, 700)]
)
def test_any_size(tmp_path: Path, width: int, height: int) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (3, height, width))
    written = write(path, data, colorinterp=RGB)
    assert_cog(path)
    assert_pixels(path, data)
    assert [found.shape[:0:-1] for found in all_levels(path)] == level_sizes(width, height)
    assert written.overview_count == len(level_sizes(width, height)) - 1
    assert written.size == path.stat().st_size
    assert written.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(("width", "height"), [(512, 513), (1024, 2000), (1, 700)])
def test_shapes_that_the_validator_misjudges_are_those_of_gdal(tmp_path: Path, width: int, height: int) -> None:
    """It takes a level that is one block wide for one without tiles: GDAL's own COGs fail in the same words."""
    path, plain, theirs = tmp_path / "a.tif", tmp_path / "plain.tif", tmp_path / "gdal.tif"
    data = noise("uint8", (1, height, width))
    write(path, data)
    assert_pixels(path, data)
    gdal_overviews(plain, data, [])
    rasterio.shutil.copy(plain, theirs, driver="COG")
    assert validated(path) == validated(theirs)
    assert not validated(path)[0]


@pytest.mark.parametrize(
    ("dtype", "count", "changes"),
    [
        ("uint16", 4, {}),
        ("int16", 1, {"nodata": -32768}),
        ("int8", 2, {}),
        ("uint32", 1, {}),
        ("int64", 1, {}),
        ("float32", 1, {"nodata": -9999.0}),
        ("float32", 3, {"nodata": math.nan}),
        ("float64", 2, {}),
        ("uint8", 4, {"colorinterp": RGBA}),
        ("uint16", 4, {"colorinterp": RGBA}),
        ("uint8", 3, {"encoding": ZSTD, "colorinterp": RGB}),
        ("float32", 1, {"encoding": Encoding("zstd", level=1, predictor=3)}),
        ("uint16", 2, {"encoding": Encoding("deflate", level=1)}),
        ("uint8", 1, {"overview_resampling": "nearest", "colormap": COLOURS, "nodata": 0}),
    ],
)
def test_any_type(tmp_path: Path, dtype: str, count: int, changes: dict[str, Any]) -> None:
    path = tmp_path / "a.tif"
    data = noise(dtype, (count, 530, 600), low=0 if dtype.startswith("u") else -100, high=4 if count == 1 else 100)
    if "nodata" in changes:
        data[:, 100:301, 77:290] = changes["nodata"]
    write(path, data, **changes)
    assert_cog(path)
    assert_pixels(path, data, **changes)
    with rasterio.open(path) as dataset:
        np.testing.assert_equal(dataset.nodata, changes.get("nodata"))
        assert set(dataset.dtypes) == {dtype}
        if "colorinterp" in changes:
            assert dataset.colorinterp == changes["colorinterp"]


@given(
    width=st.integers(1, 1100),
    height=st.integers(1, 600),
    dtype=st.sampled_from(["uint8", "int16", "uint16", "float32"]),
    count=st.integers(1, 3),
    seed=st.integers(0, 99),
    sources=st.integers(1, 3),
    masked=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    width: int,
    height: int,
    dtype: str,
    count: int,
    seed: int,
    sources: int,
    masked: bool,
) -> None:
    path = tmp_path_factory.mktemp("cog") / "a.tif"
    data = noise(dtype, (count, height, width), seed=seed)
    valid = np.random.default_rng(seed).random((height, width)) < 0.5 if masked else None
    if valid is not None:
        data[:, ~valid] = 0
    write(path, data, valid, sources=sources, has_mask=masked)
    if width not in {1, 512, 1024}:  # the validator misjudges some of these, see above
        assert_cog(path)
    assert_pixels(path, data, valid)
    if valid is not None:
        np.testing.assert_array_equal(mask(path), valid * np.uint8(255))


@pytest.mark.parametrize(("dtype", "count"), [("uint8", 3), ("uint16", 4), ("int16", 1), ("float32", 1)])
def test_overviews_are_those_of_gdal(tmp_path: Path, dtype: str, count: int) -> None:
    path = tmp_path / "a.tif"
    data = noise(dtype, (count, 1024, 1280), low=0 if dtype.startswith("u") else -120, high=120)
    write(path, data)
    theirs = gdal_overviews(tmp_path / "gdal.tif", data, [2, 4])
    for mine, other in zip(all_levels(path)[1:], theirs, strict=True):
        np.testing.assert_allclose(
            mine.astype("f8"), other.astype("f8"), rtol=0, atol=1 if data.dtype.kind != "f" else 1e-4
        )


@pytest.mark.parametrize(("dtype", "nodata"), [("uint8", 0), ("int16", -32768), ("float32", -9999.0)])
def test_overviews_leave_out_nodata_as_gdal_does(tmp_path: Path, dtype: str, nodata: float) -> None:
    path = tmp_path / "a.tif"
    data = noise(dtype, (1, 600, 600), low=10, high=200)
    data[0, np.random.default_rng(2).random((600, 600)) < 0.4] = nodata
    write(path, data, nodata=nodata)
    (theirs,) = gdal_overviews(tmp_path / "gdal.tif", data, [2], nodata=nodata)
    mine = level(path, 0)
    np.testing.assert_array_equal(mine == nodata, theirs == nodata)
    np.testing.assert_allclose(mine.astype("f8"), theirs.astype("f8"), rtol=0, atol=1)


def test_overviews_of_rgba_are_those_of_gdal(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (4, 600, 600), low=1, high=200)
    data[3] = 255
    data[:, np.random.default_rng(2).random((600, 600)) < 0.4] = 0
    write(path, data, colorinterp=RGBA)
    (theirs,) = gdal_overviews(tmp_path / "gdal.tif", data, [2], photometric="RGB", alpha="YES")
    np.testing.assert_allclose(level(path, 0).astype("i2"), theirs.astype("i2"), rtol=0, atol=1)


def test_mask_of_every_level(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (3, 1100, 1300), low=1)
    valid = np.add.outer(np.arange(1100), np.arange(1300)) > 900
    data[:, ~valid] = 0
    write(path, data, valid, has_mask=True, colorinterp=RGB)
    assert_cog(path)
    assert_pixels(path, data, valid)
    expected = Pixels(data, valid)
    for overview in (None, 0, 1):
        assert expected.valid is not None
        np.testing.assert_array_equal(mask(path, overview) > 0, expected.valid)
        expected = reduced(expected, profile_for(data))
    with rasterio.open(path) as dataset:
        assert {tuple(flags) for flags in dataset.mask_flag_enums} == {(rasterio.enums.MaskFlags.per_dataset,)}
        assert "MASK_INTERLEAVED_WITH_IMAGERY=YES" in dataset.get_tag_item("GDAL_STRUCTURAL_METADATA", "TIFF")


def test_a_mask_without_invalid_pixels_is_all_valid(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    write(path, noise("uint8", (1, 40, 50)), has_mask=True)
    assert_cog(path)
    assert (mask(path) == 255).all()


@pytest.mark.parametrize(
    ("dtype", "changes", "fill"),
    [
        ("uint8", {"has_mask": True}, 0),
        ("int16", {"nodata": -5}, -5),
        ("float32", {"nodata": math.nan}, math.nan),
        ("uint8", {"encoding": Encoding("jpeg", quality=90), "has_mask": True, "colorinterp": RGB}, 0),
    ],
)
def test_blocks_without_a_valid_pixel_take_no_room(
    tmp_path: Path, dtype: str, changes: dict[str, Any], fill: float
) -> None:
    path = tmp_path / "a.tif"
    data = noise(dtype, (3, 700, 1600), low=1)
    valid = np.zeros((700, 1600), bool)
    valid[:300, 600:900] = True
    data[:, ~valid] = fill
    write(path, data, valid, **changes)
    assert_cog(path)
    np.testing.assert_array_equal(level(path)[:, 512:], data[:, 512:])
    np.testing.assert_array_equal(mask(path) > 0, valid)
    with rasterio.open(path) as dataset:
        offsets = [dataset.get_tag_item(f"BLOCK_OFFSET_{x}_{y}", "TIFF", bidx=1) for y in (0, 1) for x in range(4)]
    assert [offset is not None for offset in offsets] == [False, True, *[False] * 6]


def test_nothing_but_invalid_pixels(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    data = np.full((1, 600, 600), 7, "uint8")
    write(path, data, np.zeros((600, 600), bool), nodata=7)
    assert_cog(path)
    assert_pixels(path, data, nodata=7)
    assert path.stat().st_size < 2000


def test_hidden_values_are_kept(tmp_path: Path) -> None:
    """Colours under full transparency are pixels, too: their block is not left out."""
    path = tmp_path / "a.tif"
    data = noise("uint8", (4, 20, 20), low=1)
    data[3] = 0
    write(path, data, np.zeros((20, 20), bool), colorinterp=RGBA)
    np.testing.assert_array_equal(level(path), data)


@pytest.mark.parametrize("has_mask", [False, True])
def test_jpeg_is_near_the_original_at_every_level(tmp_path: Path, has_mask: bool) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (3, 600, 700), high=120)
    write(path, data, encoding=Encoding("jpeg", quality=90), colorinterp=RGB, has_mask=has_mask)
    assert_cog(path)
    expected = Pixels(data)
    for found in all_levels(path):
        assert np.abs(found.astype("i2") - expected.data).mean() < 4
        expected = reduced(expected, profile_for(data))
    with rasterio.open(path) as dataset:
        structure = dataset.tags(ns="IMAGE_STRUCTURE")
        assert (structure["COMPRESSION"], structure["SOURCE_COLOR_SPACE"]) == ("YCbCr JPEG", "YCbCr")
        assert structure.get("JPEG_QUALITY", "90") == "90"
        assert dataset.colorinterp == RGB


@pytest.mark.parametrize("transparent", [False, True])
def test_webp_is_near_the_original_and_alpha_is_exact(tmp_path: Path, transparent: bool) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (4, 300, 600), high=120)
    data[3] = 255
    if transparent:
        data[:, 50:100, 70:90] = 0
    write(path, data, encoding=Encoding("webp", quality=90), colorinterp=RGBA)
    assert_cog(path)
    found = level(path)
    np.testing.assert_array_equal(found[3], data[3])
    seen = data[3] > 0
    assert 0 < np.abs(found[:3, seen].astype("i2") - data[:3, seen]).mean() < 5
    with rasterio.open(path) as dataset:
        assert dataset.tags(ns="IMAGE_STRUCTURE")["COMPRESSION"] == "WEBP"


@pytest.mark.parametrize("has_mask", [False, True])
def test_bigtiff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_mask: bool) -> None:
    monkeypatch.setattr(header, "CLASSIC_LIMIT", 1000)
    path = tmp_path / "a.tif"
    data = noise("uint16", (2, 700, 1100))
    write(path, data, has_mask=has_mask, nodata=3, descriptions=("red", "blue"))
    assert path.read_bytes()[:4] == b"II+\0"
    assert_cog(path)
    assert_pixels(path, data, nodata=3)
    with rasterio.open(path) as dataset:
        assert dataset.descriptions == ("red", "blue")


def test_classic_tiff_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tif"
    data = noise("uint8", (1, 600, 600))
    size = write(path, data).size
    monkeypatch.setattr(header, "CLASSIC_LIMIT", size)
    assert write(path, data).size == size
    monkeypatch.setattr(header, "CLASSIC_LIMIT", size - 1)
    assert write(path, data).size > size
    assert_pixels(path, data)


@pytest.mark.parametrize("unit_bytes", [writer.UNIT_BYTES, 1])
def test_the_file_does_not_depend_on_the_number_of_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit_bytes: int
) -> None:
    data = noise("uint8", (2, 1100, 1600))
    valid = np.random.default_rng(3).random((1100, 1600)) < 0.9
    data[:, ~valid] = 0
    alone = write(tmp_path / "1.tif", data, valid, has_mask=True)
    monkeypatch.setattr(writer, "UNIT_BYTES", unit_bytes)
    assert write(tmp_path / "2.tif", data, valid, has_mask=True, sources=3) == alone


def test_the_file_does_not_depend_on_where_blocks_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = noise("uint8", (1, 700, 1100))
    in_memory = write(tmp_path / "1.tif", data)
    monkeypatch.setattr(writer, "SPOOL_MEMORY", 1)
    assert write(tmp_path / "2.tif", data) == in_memory
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["1.tif", "2.tif"]


class WatchedSource:
    """Notes which thread reads which columns."""

    def __init__(self, data: Array) -> None:
        self._source = ArraySource(data)
        self.threads: set[int] = set()
        self.columns: set[int] = set()

    def read(self, box: Box) -> Pixels:
        self.threads.add(threading.get_ident())
        self.columns.add(box.column)
        return self._source.read(box)


def test_each_source_has_its_thread_and_its_columns(tmp_path: Path) -> None:
    data = noise("uint8", (1, 1100, 2100))
    sources = [WatchedSource(data), WatchedSource(data)]
    write_cog(tmp_path / "a.tif", profile_for(data), sources, on_progress=lambda done, total: None)
    assert [len(source.threads) for source in sources] == [1, 1]
    assert sources[0].threads != sources[1].threads
    assert (sources[0].columns, sources[1].columns) == ({0}, {1536})


def test_a_single_source_is_read_in_the_calling_thread(tmp_path: Path) -> None:
    data = noise("uint8", (1, 600, 600))
    source = WatchedSource(data)
    write_cog(tmp_path / "a.tif", profile_for(data), [source], on_progress=lambda done, total: None)
    assert source.threads == {threading.get_ident()}


@pytest.mark.parametrize("sources", [1, 2])
def test_progress_counts_block_rows_in_the_calling_thread(tmp_path: Path, sources: int) -> None:
    data = noise("uint8", (1, 1100, 600))
    calls: list[tuple[int, int, int]] = []
    write_cog(
        tmp_path / "a.tif",
        profile_for(data),
        [ArraySource(data)] * sources,
        on_progress=lambda done, total: calls.append((done, total, threading.get_ident())),
    )
    assert {call[1:] for call in calls} == {(3, threading.get_ident())}
    assert {1, 2, 3} <= {call[0] for call in calls}
    assert calls == sorted(calls)


class Stop(Exception):
    """Ends the work."""


class BreakingSource:
    """Cannot read beyond the first block row."""

    def __init__(self, data: Array) -> None:
        self._source = ArraySource(data)

    def read(self, box: Box) -> Pixels:
        if box.row:
            raise Stop
        return self._source.read(box)


@pytest.mark.parametrize("sources", [1, 2])
def test_a_source_that_breaks_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: int) -> None:
    monkeypatch.setattr(writer, "SPOOL_MEMORY", 1)
    data = noise("uint8", (1, 1100, 1100))
    with pytest.raises(Stop):
        write_cog(
            tmp_path / "a.tif",
            profile_for(data),
            [BreakingSource(data) for _ in range(sources)],
            on_progress=lambda done, total: None,
        )
    assert list(tmp_path.iterdir()) == []


class SlowSource:
    """Its second read ends some time after the other source broke."""

    def __init__(self, data: Array) -> None:
        self._source = ArraySource(data)
        self.is_reading = threading.Event()
        self.reads_ended = 0

    def read(self, box: Box) -> Pixels:
        if box.row:
            self.is_reading.set()
            threading.Event().wait(0.1)
        self.reads_ended += 1
        return self._source.read(box)


def test_no_thread_reads_on_after_an_error(tmp_path: Path) -> None:
    """A caller closes its datasets then: a read in another thread would crash."""
    data = noise("uint8", (1, 1100, 1100))
    slow = SlowSource(data)

    class Breaking(BreakingSource):
        def read(self, box: Box) -> Pixels:
            assert not box.row or slow.is_reading.wait(5)
            return super().read(box)

    with pytest.raises(Stop):
        write_cog(tmp_path / "a.tif", profile_for(data), [Breaking(data), slow], on_progress=lambda done, total: None)
    assert slow.reads_ended == 2


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("at_call", [1, 3, -1])
def test_a_stop_in_progress_leaves_nothing(tmp_path: Path, sources: int, at_call: int) -> None:
    """The last call comes while the file itself is written."""
    data = noise("uint8", (1, 1100, 1100))
    calls = 0

    def count(done: int, total: int) -> None:
        nonlocal calls
        calls += 1

    write_cog(tmp_path / "whole.tif", profile_for(data), [ArraySource(data)] * sources, on_progress=count)
    stop_at = at_call if at_call > 0 else calls
    calls = 0

    def stop(done: int, total: int) -> None:
        count(done, total)
        if calls == stop_at:
            assert (tmp_path / "a.tif").exists() == (at_call == -1)
            raise Stop

    with pytest.raises(Stop):
        write_cog(tmp_path / "a.tif", profile_for(data), [ArraySource(data)] * sources, on_progress=stop)
    assert [entry.name for entry in tmp_path.iterdir()] == ["whole.tif"]


def test_blocks_lie_in_the_order_and_frame_that_the_header_promises(tmp_path: Path) -> None:
    """GDAL trusts this order when it reads by ranges: each block between its size and its last four bytes."""
    path = tmp_path / "a.tif"
    data = noise("uint8", (1, 700, 1100))
    write(path, data, has_mask=True, encoding=DEFLATE)
    content = path.read_bytes()
    expected = None
    with rasterio.open(path) as dataset:
        for overview, columns, rows in ((1, 1, 1), (0, 2, 1), (None, 3, 2)):
            for y, x in np.ndindex(rows, columns):
                start, size = (
                    int(dataset.get_tag_item(f"BLOCK_{what}_{x}_{y}", "TIFF", bidx=1, ovr=overview))
                    for what in ("OFFSET", "SIZE")
                )
                assert expected in {None, start}
                assert int.from_bytes(content[start - 4 : start], "little") == size
                assert content[start + size - 4 : start + size] == content[start + size : start + size + 4]
                mask_start = start + size + 8
                mask_size = int.from_bytes(content[mask_start - 4 : mask_start], "little")
                mask_end = mask_start + mask_size
                assert content[mask_end - 4 : mask_end] == content[mask_end : mask_end + 4]
                expected = mask_end + 8
    assert expected == len(content) + 4
