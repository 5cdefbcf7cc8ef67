"""PostgreSQL as a private cluster in the data folder."""
