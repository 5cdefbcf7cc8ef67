"""Names of coordinate reference systems, as the PROJ of the database knows them: orchestrators have none."""

from typing import Final

import psycopg

from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("crs.sql")
_UNKNOWN: Final = "could not parse"


async def is_known_crs(connection: Connection, name: str) -> bool:
    """Whether `AUTHORITY:CODE` names a CRS. Pass no other texts: PROJ would open the files that they lead to."""
    with domain_errors("look up a CRS"):
        try:
            await connection.execute(QUERIES["parse_crs"], {"name": name})
        except psycopg.errors.InternalError_ as error:
            return _UNKNOWN not in str(error)  # PROJ knows it, and cannot transform to it: workers tell why
    return True
