"""Small files of the formats that `raster.validate` converts, as other programs write them."""

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import rasterio
import rasterio.shutil
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning
from tests.unit.handlers.raster.validating import gradient, write

from graticule.handlers.findings import Rejected, Severity
from graticule.handlers.raster.conversion import convert
from graticule.handlers.raster.sandbox import Conversion, ConversionRequest

WORLD_FILE = "0.01\n0\n0\n-0.01\n10.005\n49.995\n"  # of `validating.NORTH_UP`
WGS84 = rasterio.crs.CRS.from_epsg(4326).to_wkt(version="WKT1_ESRI")
ENVI_HEADER = """ENVI
samples = 80
lines = 60
bands = 1
header offset = 0
file type = ENVI Standard
data type = 12
interleave = bsq
byte order = 0
map info = {Geographic Lat/Lon, 1, 1, 10, 50, 0.01, 0.01, WGS-84}
"""


def convert_here(request: ConversionRequest, watch: Callable[[], None]) -> Conversion:
    """Do in this process what `convert_in_sandbox` does in another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        done = convert(request, watch)
    if rejections := [each for each in done.findings if each.severity is Severity.REJECT]:
        raise Rejected(rejections)
    return done


def converted_to(driver: str, file: Path, data: NDArray[Any] | None = None, **options: Any) -> Path:
    """Write a raster by one of GDAL's drivers."""
    origin = write(file.with_suffix(".origin"), gradient() if data is None else data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        rasterio.shutil.copy(origin, file, driver=driver, **options)
    origin.unlink()
    for beside in file.parent.glob(f"{file.name}.aux.xml"):
        beside.unlink()
    return file


def zipped(file: Path, members: dict[str, bytes | str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(packed(members))
    return file


def packed(members: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def ascii_grid(data: NDArray[Any] | None = None) -> bytes:
    values = gradient()[0] if data is None else data
    rows = "\n".join(" ".join(map(str, row)) for row in values)
    head = f"ncols {values.shape[1]}\nnrows {values.shape[0]}\nxllcorner 10\nyllcorner 49.4\ncellsize 0.01\n"
    return f"{head}NODATA_value -9999\n{rows}\n".encode()


def netcdf_with_times(file: Path, variables: tuple[str, ...] = ("t2m",), steps: int = 3) -> Path:
    """Write a NetCDF 4 file as climate services do: times, bounds, 2-D coordinates, a grid mapping."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(file, "w") as made:
        lat, lon = 49.995 - np.arange(60) * 0.01, 10.005 + np.arange(80) * 0.01
        axes = {"time": np.arange(steps) * 24.0, "lat": lat, "lon": lon}
        for name, values in axes.items():
            made[name] = values
            made[name].make_scale(name)
        made["time"].attrs.update({"units": "hours since 2024-01-01 00:00:00", "standard_name": "time"})
        made["lat"].attrs.update({"units": "degrees_north", "standard_name": "latitude"})
        made["lon"].attrs.update({"units": "degrees_east", "standard_name": "longitude", "bounds": "lon_bnds"})
        made["lon_bnds"] = np.stack([axes["lon"] - 0.005, axes["lon"] + 0.005], axis=1)
        made["crs"] = 0
        wkt = rasterio.crs.CRS.from_epsg(4326).to_wkt()
        made["crs"].attrs.update({"grid_mapping_name": "latitude_longitude", "spatial_ref": wkt})
        for place, name in enumerate(variables):
            made[name] = gradient(steps, dtype="float32") + np.float32(place * 100_000)
            made[name].attrs.update({"grid_mapping": "crs", "units": "K", "coordinates": "area"})
            for axis, dimension in enumerate(("time", "lat", "lon")):
                made[name].dims[axis].attach_scale(made[dimension])
        made["area"] = np.ones((60, 80), "float32")
        for axis, dimension in enumerate(("lat", "lon")):
            made["area"].dims[axis].attach_scale(made[dimension])
    return file
