"""Models become the schema: DDL, deployment, additive migration, roles, seeds."""
