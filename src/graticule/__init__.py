"""Graticule: a geospatial data platform whose heart is a durable workflow engine on PostgreSQL."""

from importlib.metadata import version

__version__ = version("graticule")
