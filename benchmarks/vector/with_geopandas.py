"""The same load by geopandas, in an environment of its own: run as a script with the source, an address and a table."""

import sys

import geopandas
from sqlalchemy import create_engine, text


def main(source: str, url: str, table: str, crs: str) -> None:
    """Read all, reproject, write all, index and analyze."""
    frame = geopandas.read_file(source, use_arrow=True).to_crs(crs)
    engine = create_engine(url)
    frame.to_postgis(table, engine, chunksize=50_000)  # which makes the index, too
    with engine.begin() as connection:
        connection.execute(text(f"ANALYZE {table}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
