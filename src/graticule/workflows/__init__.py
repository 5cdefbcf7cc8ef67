"""The workflows that are shipped, as YAML."""
