"""A worker's ways to an orchestrator's API, in place of the database; idempotent, so that all may be asked again."""
