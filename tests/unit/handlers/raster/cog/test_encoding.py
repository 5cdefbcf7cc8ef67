"""Which encoding a tier has for which bands; that blocks are read back is seen in `test_writer`."""

import pytest

from graticule.handlers.raster.cog.encoding import STORAGE_TIERS, Encoding, Tier, encoding_of


@pytest.mark.parametrize(("dtype", "predictor"), [("uint8", 2), ("int16", 2), ("float32", 3), ("float64", 3)])
def test_lossless_tiers_choose_the_predictor_by_data_type(dtype: str, predictor: int) -> None:
    analysis, analysis_warnings = encoding_of("analysis", dtype=dtype, count=1, has_alpha=False)
    archive, archive_warnings = encoding_of("archive", dtype=dtype, count=1, has_alpha=False)
    assert (analysis.compression, analysis.level, analysis.predictor) == ("deflate", 6, predictor)
    assert (archive.compression, archive.level, archive.predictor) == ("zstd", 9, predictor)
    assert analysis.is_lossless
    assert archive.is_lossless
    assert analysis_warnings == archive_warnings == []


def test_visualization_of_rgb_is_jpeg_of_the_asked_quality() -> None:
    assert encoding_of("visualization", dtype="uint8", count=3, has_alpha=False, jpeg_quality=70) == (
        Encoding("jpeg", quality=70),
        [],
    )


@pytest.mark.parametrize(
    ("dtype", "count", "has_alpha", "compression"),
    [
        ("uint8", 4, True, "webp"),
        ("uint8", 4, False, "deflate"),
        ("uint8", 3, True, "deflate"),
        ("uint8", 1, False, "deflate"),
        ("uint16", 3, False, "deflate"),
        ("uint16", 4, True, "deflate"),
        ("float32", 1, False, "deflate"),
    ],
)
def test_visualization_of_other_bands_warns(dtype: str, count: int, has_alpha: bool, compression: str) -> None:
    encoding, warnings = encoding_of("visualization", dtype=dtype, count=count, has_alpha=has_alpha)
    assert encoding.compression == compression
    assert len(warnings) == 1
    assert compression.upper() in warnings[0]


@pytest.mark.parametrize(("tier", "storage"), [("visualization", "hot"), ("analysis", "hot"), ("archive", "cool")])
def test_storage_tier(tier: Tier, storage: str) -> None:
    assert STORAGE_TIERS[tier] == storage
