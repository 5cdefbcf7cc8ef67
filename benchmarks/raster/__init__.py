"""From a raster to COGs in the catalogue, beside GDAL's own commands."""
