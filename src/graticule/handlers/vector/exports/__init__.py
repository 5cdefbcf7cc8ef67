"""Files for the web, made of the same features as the table: GeoParquet and PMTiles."""
