"""Writes cloud-optimized GeoTIFFs: pixels come in by block rows, one finished file goes out.

GDAL says what the tags are (`skeleton`), and we lay out the file (`header`), build the overviews
(`pyramid`) and compress the blocks (`encoding`), all in one pass over the pixels (`writer`).
"""
