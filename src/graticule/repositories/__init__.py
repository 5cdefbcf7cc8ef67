"""All SQL: one module per aggregate, with its .sql file beside it."""
