"""The numbers that must survive everywhere: design/GEO.md 6."""

from typing import Final

FLOATS: Final[dict[str, float]] = {
    "lowest float32": -3.4028234663852886e38,
    "greatest float32": 3.4028234663852886e38,
    "lowest float64": -1.7976931348623157e308,
    "greatest float64": 1.7976931348623157e308,
    "fill of NetCDF": 9.969209968386869e36,
    "null of GRASS": -1e37,
    "blank of Surfer": 1.70141e38,
    "smallest float64": 5e-324,
    "a third": 1 / 3,
    "integral": 12345.0,
    "beyond 2^53": 9007199254740994.0,
}
INTEGERS: Final[dict[str, int]] = {
    "lowest int64": -(2**63),
    "greatest int64": 2**63 - 1,
    "greatest uint64": 2**64 - 1,
    "odd beyond 2^53": 2**53 + 1,
    "zero": 0,
}
NUMBERS: Final[dict[str, float]] = {**FLOATS, **INTEGERS}
