"""What every HTTP process shares: problem documents, request ids, limits, probes, metrics and the server."""
