"""Vector handlers: from a file of features to a table of PostGIS.

The modules that register handlers import no GDAL: orchestrators load them to know what there is.
"""
