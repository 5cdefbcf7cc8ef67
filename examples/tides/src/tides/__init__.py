"""Readings of tide gauges: what Graticule's workers do with them."""
