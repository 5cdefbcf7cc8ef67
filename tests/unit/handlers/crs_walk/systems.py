"""The projected CRSs that are walked: all of EPSG's, and one of each method that EPSG does not use."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from pyproj import CRS, Transformer
from pyproj.database import query_crs_info
from pyproj.datadir import get_data_dir
from pyproj.enums import PJType
from pyproj.exceptions import ProjError

WGS84: Final = "EPSG:4326"
HALF: Final = 1000.0  # metres: half of a side of a layer
CLOSE_METRES: Final = 0.3  # there and back between datums: Helmert transformations are not inverted exactly
TRIED: Final = (0.5, 0.3, 0.7, 0.1, 0.9)  # of an area's width and height: the centre first
EUROPE: Final = (0.0, 30.0, 20.0, 60.0)  # where CRSs for the world are walked: in their centre some are singular
# Methods that rasterio's and pyproj's releases of PROJ understand differently.
DISPUTED: Final = {"Adams_Square_II", "PROJ adams_ws2", "Wagner VI"}
# Methods of PROJ that no CRS of an authority has, and what each needs; those without an inverse have no way to degrees.
PROJ_METHODS: Final = {
    **dict.fromkeys(("cc", "collg", "fahey", "fouc", "goode", "hammer", "hatano"), ""),
    **dict.fromkeys(("healpix", "imoll", "imoll_o", "kav5", "kav7", "mbt_fps", "mbt_s", "mbtfpp", "mbtfps"), ""),
    **dict.fromkeys(("mil_os", "lee_os", "nell", "nell_h", "peirce_q", "putp1", "putp2", "putp3", "putp3p"), ""),
    **dict.fromkeys(("putp4p", "putp5", "putp5p", "putp6", "putp6p", "qsc", "rhealpix", "s2", "tcea", "tobmerc"), ""),
    **dict.fromkeys(("ups", "ups +south", "wag1", "wag2", "weren"), ""),
    **dict.fromkeys(("bipc", "lagrng", "leac", "rouss"), "+lat_0=40 +lat_1=30"),
    **dict.fromkeys(("ccon", "lcca", "ortho"), "+lat_0=40 +lat_1=30"),
    **dict.fromkeys(("euler", "imw_p", "murd1", "murd2", "murd3", "pconic", "tissot", "vitk1"), "+lat_1=30 +lat_2=50"),
    "fouc_s": "+n=0.5",
    "gn_sinu": "+m=2 +n=3",
    "ocea": "+lon_1=0 +lat_1=30 +lon_2=40 +lat_2=50",
    "oea": "+m=1 +n=2 +theta=3",
    "tpers": "+h=5500000 +azi=20 +tilt=20",
    "urmfps": "+n=0.5",
    "wag3": "+lat_ts=20",
}

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class System:
    """A projected CRS, and a place for which it is made."""

    name: str  # what PROJ and GDAL know it by
    x: float  # in the order of files: east before north
    y: float
    unit: float  # metres


@cache
def epsg_codes() -> list[str]:
    """Return the projected CRSs of EPSG without deprecated ones, which GDAL replaces when it reads or writes them."""
    return [f"EPSG:{code}" for code in sorted(map(int, _codes("EPSG")))]


@cache
def one_of_each_method() -> list[str]:
    """Name a CRS of each method: of EPSG, else of ESRI, else by PROJ's own text."""
    others = [*(f"ESRI:{code}" for code in sorted(map(int, _codes("ESRI")))), *_proj_texts()]
    found = {_method(name): name for name in reversed(others)} | _epsg_methods()
    return [name for method, name in found.items() if method not in DISPUTED]


def placed(name: str) -> System | None:
    """Find the centre of the area of use, or a place near it around which PROJ goes there and back.

    None when PROJ knows no way between the CRS and EPSG:4326.
    """
    crs = CRS.from_user_input(name)
    try:
        to_degrees = Transformer.from_crs(crs, WGS84, always_xy=True)
    except ProjError:
        return None
    unit = crs.axis_info[0].unit_conversion_factor
    areas = [] if crs.area_of_use is None else [crs.area_of_use.bounds]
    for longitude, latitude in _places(areas if name.startswith("EPSG:") else [EUROPE, *areas]):
        x, y = to_degrees.transform(longitude, latitude, direction="INVERSE")
        if _is_defined(to_degrees, x, y, unit):
            return System(name, x, y, unit)
    raise LookupError(f"{name} has no place that PROJ finds again.")


def _codes(authority: str) -> list[str]:
    return [each.code for each in query_crs_info(auth_name=authority, pj_types=[PJType.PROJECTED_CRS])]


def _epsg_methods() -> dict[str, str]:
    """Ask PROJ's database, which knows it sooner than 5,000 CRSs do."""
    asked = """
        SELECT method_name, min(projected_crs.code) FROM projected_crs
        JOIN conversion ON (conversion.auth_name, conversion.code) = (conversion_auth_name, conversion_code)
        WHERE projected_crs.auth_name = 'EPSG' AND NOT projected_crs.deprecated GROUP BY method_name
    """
    with closing(sqlite3.connect(Path(get_data_dir()) / "proj.db")) as database:
        return {method: f"EPSG:{code}" for method, code in database.execute(asked)}


def _proj_texts() -> list[str]:
    return [f"+proj={name} {given} +datum=WGS84 +units=m +type=crs" for name, given in PROJ_METHODS.items()]


def _method(name: str) -> str:
    operation = CRS.from_user_input(name).coordinate_operation
    return operation.method_name if operation else ""


def _is_defined(to_degrees: Transformer, x: float, y: float, unit: float) -> bool:
    """Tell whether all of a small map has a place on the earth, and that place the same on the map."""
    steps = np.concatenate([np.linspace(-side, side, 9) for side in (HALF, HALF / 100)]) / unit
    xs, ys = (each.ravel() for each in np.meshgrid(x + steps, y + steps))
    back = to_degrees.transform(*to_degrees.transform(xs, ys), direction="INVERSE")
    off = np.abs(np.array((xs, ys)) - back) * unit if np.isfinite(back).all() else np.array(np.inf)
    return bool(off.max() < CLOSE_METRES)


def _places(areas: Sequence[Box]) -> Iterator[tuple[float, float]]:
    for (west, south, east, north), up, across in product(areas, TRIED, TRIED):
        width = (east - west) % 360 or 360.0
        yield (west + across * width + 180) % 360 - 180, south + up * (north - south)
