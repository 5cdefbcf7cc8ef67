"""Tiles, features and the STAC catalogue of versions in service. This process only reads."""
