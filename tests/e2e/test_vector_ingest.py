"""A partner's features on real installations: they become a table, a file, and an item of the catalogue."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyogrio.raw
import shapely
from tests.e2e.conftest import Place, on_both_installations
from tests.e2e.installation import Up
from tests.e2e.site import BRONZE, opened_site

NUMBERS = list(range(1, 6))
TABLE = "direct_wells"


def geopackage() -> bytes:
    """Give wells, each a degree further east than the one before."""
    file = BytesIO()
    pyogrio.raw.write(
        file,
        geometry=shapely.to_wkb(shapely.points([(float(number), 10.0) for number in NUMBERS])),
        field_data=[np.array(NUMBERS), np.array([f"well {number}" for number in NUMBERS], dtype=object)],
        fields=["number", "name"],
        layer="wells",
        driver="GPKG",
        geometry_type="Point",
        crs="EPSG:4326",
    )
    return file.getvalue()


@on_both_installations
def test_a_geopackage_becomes_a_table_in_the_catalogue(up: Up, place: Place, tmp_path: Path) -> None:
    with opened_site(up, tmp_path) as site:
        site.storage.put(f"{BRONZE}/wells.gpkg", geopackage())
        result = site.run(
            "vector_ingest", container_name=BRONZE, blob_name="wells.gpkg", table_name=TABLE, geoparquet=True
        )
        assert result["content_hash"] == site.hash(f"{BRONZE}/wells.gpkg")
        assert site.kept().keys() >= {result["geoparquet_path"]}
        exported = pq.read_table(site.copy(result["geoparquet_path"]))
    assert up.query(f"SELECT number, name, ST_AsText(geom) FROM geo.{TABLE} ORDER BY fid") == [
        (number, f"well {number}", f"MULTIPOINT(({number} 10))") for number in NUMBERS
    ]
    assert exported.column("name").to_pylist() == [f"well {number}" for number in NUMBERS]
    ((item,),) = up.query(f"SELECT content FROM pgstac.items WHERE id = '{result['stac_item_id']}'")
    assert result["bbox"] == [1, 10, 5, 10]
    assert result["geoparquet_path"] in str(item)
    assert (up.home / "storage" / BRONZE).exists() == (place is Place.LAPTOP)
