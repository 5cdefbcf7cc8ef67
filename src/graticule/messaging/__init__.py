"""Queues: one small protocol, and the transports behind it."""
