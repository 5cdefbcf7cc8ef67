"""The classes of requirements that are really met. HTML is not among them."""

from typing import Final

_SPEC: Final = "http://www.opengis.net/spec"

CONFORMS_TO: Final = [
    *(f"{_SPEC}/ogcapi-common-1/1.0/conf/{name}" for name in ("core", "landing-page", "json", "oas30")),
    f"{_SPEC}/ogcapi-common-2/1.0/conf/collections",
    *(f"{_SPEC}/ogcapi-features-1/1.0/conf/{name}" for name in ("core", "geojson", "oas30")),
    f"{_SPEC}/ogcapi-features-2/1.0/conf/crs",
    *(
        f"{_SPEC}/ogcapi-features-3/1.0/conf/{name}"
        for name in ("queryables", "queryables-query-parameters", "filter", "features-filter")
    ),
    *(
        f"{_SPEC}/cql2/1.0/conf/{name}"
        for name in (
            "cql2-text",
            "cql2-json",
            "basic-cql2",
            "advanced-comparison-operators",
            "case-insensitive-comparison",
            "basic-spatial-functions",
            "basic-spatial-functions-plus",
            "spatial-functions",
            "temporal-functions",
            "property-property",
            "arithmetic",
        )
    ),
    *(
        f"{_SPEC}/ogcapi-tiles-1/1.0/conf/{name}"
        for name in ("core", "tileset", "tilesets-list", "geodata-tilesets", "mvt")
    ),
]
