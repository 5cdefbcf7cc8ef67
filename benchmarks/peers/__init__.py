"""The same three workloads on other systems, each in an environment of its own. Run by `make bench-peers`."""
