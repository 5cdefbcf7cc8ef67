"""Raster handlers: from any image to a cloud-optimized, catalogued one.

The modules that register handlers import no GDAL: orchestrators load them to know what there is. What computes is
imported when a handler runs, in a child process.
"""
