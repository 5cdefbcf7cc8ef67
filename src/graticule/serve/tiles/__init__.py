"""The raster side of serving: tiles, pictures, values and statistics of COGs and of mosaics, alike."""
