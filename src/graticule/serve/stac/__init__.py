"""The STAC API: the catalogue, as far as an audience may see it."""

import logging

# When it is imported, the library misses settings in the environment; ours are given to it.
logging.getLogger("stac_fastapi.types.config").setLevel(logging.ERROR)
