"""How the blocks of a COG are compressed: the tiers that a caller chooses from, and the codecs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from graticule.handlers.raster.pixels import PixelArray, Validity

Tier = Literal["visualization", "analysis", "archive"]
Compression = Literal["deflate", "zstd", "jpeg", "webp"]
Predictor = Literal[1, 2, 3]

STORAGE_TIERS: Mapping[Tier, str] = {"visualization": "hot", "analysis": "hot", "archive": "cool"}

DEFLATE_LEVEL = 6
# Measured on made-up terrain, classes, multispectral and RGB rasters. Against level 9, level 3 is up to 6 % and
# level 1 up to 10 % larger; level 12 saves at most 1 %, on classes 7 % at a quarter of the speed. Where noise
# prevails, no level helps: there level 1 is the smallest, and as small as DEFLATE.
ZSTD_LEVEL = 9


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec with its settings. Lossy codecs have a quality, lossless ones a level and a predictor."""

    compression: Compression
    level: int = 0
    predictor: Predictor = 1
    quality: int | None = None

    @property
    def is_lossless(self) -> bool:
        """Whether every value is read back as it was."""
        return self.quality is None


_MASK = Encoding("deflate", level=DEFLATE_LEVEL)


def encoding_of(
    tier: Tier, *, dtype: str, count: int, has_alpha: bool, jpeg_quality: int = 85
) -> tuple[Encoding, list[str]]:
    """Give the encoding of a tier for such bands, and a warning where the tier cannot have its usual one."""
    predictor: Predictor = 3 if np.dtype(dtype).kind == "f" else 2
    deflate = Encoding("deflate", level=DEFLATE_LEVEL, predictor=predictor)
    if tier == "analysis":
        return deflate, []
    if tier == "archive":
        return Encoding("zstd", level=ZSTD_LEVEL, predictor=predictor), []
    if dtype == "uint8" and count == 3 and not has_alpha:
        return Encoding("jpeg", quality=jpeg_quality), []
    if dtype == "uint8" and count == 4 and has_alpha:
        return Encoding("webp", quality=jpeg_quality), ["JPEG holds no alpha band: WEBP is used instead."]
    described = f"{count} {dtype} band{'s' if count > 1 else ''}{' with alpha' if has_alpha else ''}"
    return deflate, [f"JPEG holds three uint8 bands, not {described}: DEFLATE is used instead."]


def encode_block(block: PixelArray, encoding: Encoding) -> bytes:
    """Compress one block (rows, columns, bands) as a TIFF reader expects it."""
    return _CODECS[encoding.compression](_predicted(block, encoding.predictor), encoding)


def encode_mask(valid: Validity) -> bytes:
    """Compress one block (rows, columns) of a mask: one bit per pixel, 1 where it is valid."""
    return _deflate(np.packbits(valid, axis=1), _MASK)


def _predicted(block: PixelArray, predictor: Predictor) -> NDArray[Any]:
    if predictor == 2:
        differences = block.copy()
        differences[:, 1:] -= block[:, :-1]
        return differences
    if predictor == 3:
        shuffled: NDArray[Any] = imagecodecs.floatpred_encode(block, axis=-2)
        return shuffled
    return block


def _deflate(block: Any, encoding: Encoding) -> bytes:
    return bytes(imagecodecs.deflate_encode(block, level=encoding.level))


def _zstd(block: Any, encoding: Encoding) -> bytes:
    return bytes(imagecodecs.zstd_encode(block, level=encoding.level))


def _jpeg(block: PixelArray, encoding: Encoding) -> bytes:
    return bytes(
        imagecodecs.jpeg8_encode(
            block, level=encoding.quality, colorspace="RGB", outcolorspace="YCBCR", subsampling="420"
        )
    )


def _webp(block: PixelArray, encoding: Encoding) -> bytes:
    return bytes(imagecodecs.webp_encode(block, level=encoding.quality, lossless=False))


_CODECS: Mapping[Compression, Callable[[Any, Encoding], bytes]] = {
    "deflate": _deflate,
    "zstd": _zstd,
    "jpeg": _jpeg,
    "webp": _webp,
}
