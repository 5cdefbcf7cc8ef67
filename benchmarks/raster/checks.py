"""Is what was made right? Every file is a strict COG, and samples of its pixels are those of an exact warp."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.enums import Resampling
from rasterio.vrt import WarpedVRT
from rasterio.windows import Window
from rio_cogeo.cogeo import cog_validate

WINDOWS = 20
WINDOW_SIDE = 256
EXACT = 1e-9  # pixels by which a position may be wrong


class WrongOutput(Exception):
    """A file is not what it should be."""


def check_cogs(source: Path, cogs: Sequence[Path]) -> None:
    """Check the COGs that were made of a source."""
    if not cogs:
        raise WrongOutput("No COG was made.")
    for cog in cogs:
        valid, errors, warnings = cog_validate(cog, strict=True, quiet=True)
        if not valid:
            raise WrongOutput(f"{cog.name} is no COG: {'; '.join([*errors, *warnings])}")
    chosen = np.random.default_rng(0)
    with rasterio.open(source) as original:
        for number in chosen.integers(len(cogs), size=WINDOWS):
            _check_window(original, cogs[number], chosen)


def _check_window(original: Any, cog: Path, chosen: np.random.Generator) -> None:
    with (
        rasterio.open(cog) as made,
        WarpedVRT(
            original,
            crs=made.crs,
            transform=made.transform,
            width=made.width,
            height=made.height,
            resampling=Resampling.nearest,
            tolerance=EXACT,
            add_alpha=True,
        ) as exact,
    ):
        window = _window(made, chosen)
        *wanted, alpha = exact.read(window=window)
        is_same = np.array_equal(made.dataset_mask(window=window), alpha)
        if not is_same or not np.array_equal(made.read(window=window), np.stack(wanted)):
            raise WrongOutput(f"{cog.name} has other pixels than an exact warp in {window}.")


def _window(dataset: Any, chosen: np.random.Generator) -> Window:
    width, height = min(WINDOW_SIDE, dataset.width), min(WINDOW_SIDE, dataset.height)
    left, top = chosen.integers(dataset.width - width + 1), chosen.integers(dataset.height - height + 1)
    return Window(int(left), int(top), width, height)
