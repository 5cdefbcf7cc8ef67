"""The same load by geopandas, in an environment of its own.

Run as a script with the source, an address, a table, a CRS, and `arrow` to read by Arrow and write in parts, which is
not what geopandas does by itself.
"""

import sys

import geopandas
from sqlalchemy import create_engine, text


def main(source: str, url: str, table: str, crs: str, *options: str) -> None:
    """Read all, reproject, write all, index and analyze."""
    by_arrow = "arrow" in options
    frame = geopandas.read_file(source, use_arrow=by_arrow).to_crs(crs)
    engine = create_engine(url)
    frame.to_postgis(table, engine, chunksize=50_000 if by_arrow else None)  # which makes the index, too
    with engine.begin() as connection:
        connection.execute(text(f"ANALYZE {table}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
