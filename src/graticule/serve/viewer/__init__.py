"""The map pages: MapLibre GL on tiles of this process, with nothing from anywhere else.

MapLibre itself is not in the repository: `scripts/setup.py` brings it, and the wheel has it.
"""

from graticule.serve.viewer.files import static_files
from graticule.serve.viewer.pages import raster_page, vector_page

__all__ = ["raster_page", "static_files", "vector_page"]
