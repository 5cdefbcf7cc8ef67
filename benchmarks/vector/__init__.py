"""From a GeoPackage to a table of PostGIS, beside ogr2ogr and geopandas."""
