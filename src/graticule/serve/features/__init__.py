"""OGC API Features and vector tiles of the one table that a version has."""
