"""The orchestrator's HTTP API, with write authority."""
