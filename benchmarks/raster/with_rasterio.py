"""`python -m benchmarks.raster.with_rasterio {copy|rio-cogeo} SOURCE TARGET`: a COG by rasterio's own GDAL."""

import sys

import rasterio
from rasterio.enums import Resampling
from rasterio.shutil import copy
from rasterio.vrt import WarpedVRT
from rio_cogeo.cogeo import cog_translate
from rio_cogeo.profiles import cog_profiles

from benchmarks.raster.tools import CREATION


def main() -> None:
    """Warp on the fly, and write."""
    way, source, target = sys.argv[1:]
    with (
        rasterio.open(source) as dataset,
        WarpedVRT(dataset, crs="EPSG:4326", resampling=Resampling.nearest, warp_mem_limit=512) as warped,
    ):
        if way == "copy":
            copy(warped, target, driver="COG", **CREATION)
        else:
            _by_rio_cogeo(warped, target)


def _by_rio_cogeo(warped: WarpedVRT, target: str) -> None:
    profile = cog_profiles["deflate"] | {"zlevel": 6, "predictor": 2, "num_threads": "ALL_CPUS", "bigtiff": "IF_SAFER"}
    cog_translate(warped, target, profile, overview_resampling="average", in_memory=False, quiet=True)


if __name__ == "__main__":
    main()
