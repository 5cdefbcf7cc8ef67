"""All SQL: one module per aggregate, with its .sql file beside it."""

from psycopg.types.json import set_json_loads

from graticule.core import json_codec

set_json_loads(json_codec.decode)  # psycopg's own reader would make integers of large floats
