"""The rules: what may happen, on top of the repositories."""
