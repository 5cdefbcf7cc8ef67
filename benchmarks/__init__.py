"""Speed, as ratios against raw psycopg in the same run on the same durable PostgreSQL. Run by `make bench`."""
