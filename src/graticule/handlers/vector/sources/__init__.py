"""Partners' files: what they are, how they are opened, and their features as Arrow batches.

Only here GDAL touches their bytes.
"""
