"""What one request may ask for, at most.

The numbers bound what a request costs, not only how large its answer is: about 3 seconds of one processor, and 300 MB,
for the worst that is allowed of a raster of some 2000 x 1600 pixels.
"""

from typing import Final

LARGEST_TILE: Final = 1024  # pixels of a side: they are drawn in another projection
LARGEST_SIDE: Final = 2048  # of any other picture
DEFAULT_SIDE: Final = 1024
MOST_PIXELS: Final = LARGEST_SIDE * LARGEST_SIDE  # fewer, the more is made of them: see budget.py
MOST_BYTES: Final = 28 * 2**20  # of all bands and their masks, as they are held: three bands of floats in a tile are 27
MOST_SOURCE_PIXELS: Final = 16 * 2**20  # read for one picture: more only when it is far out of proportion
MOST_WARPED_SAMPLES: Final = 4 * 2**20  # pixels x bands, with a kernel in another projection: up to 0.7 µs each
MOST_STATISTICS_PIXELS: Final = 2**20  # in all shapes together: each is looked at in finer parts
MOST_STATISTICS_SAMPLES: Final = 4 * 2**20  # pixels x bands: they are sorted, more than once
MOST_COMPARISONS: Final = 64 * 2**20  # pixels x intervals of colours: up to 35 ns each
DEEPEST_ZOOM: Final = 24
MOST_BANDS: Final = 16
MOST_AROUND: Final = 16  # pixels around a tile, as its buffer and as its padding
MOST_DATA_TILES: Final = 400  # of a mosaic, opened for one request
MOST_FEATURES: Final = 10
MOST_COORDINATES: Final = 2000  # of all features: to fill a shape that crosses itself, each row looks at all of them
DEEPEST_SHAPE: Final = 12  # collections, polygons and rings within each other
DEEPEST_PROPERTIES: Final = 12  # objects and lists within each other, in what is sent back
MOST_CATEGORIES: Final = 1000
MOST_BINS: Final = 1000
MOST_PERCENTILES: Final = 20
FINEST_COVER: Final = 10  # parts of a pixel's side
MOST_COLORS: Final = 256
LONGEST_COLORMAP: Final = 8192
LONGEST_FORMULA: Final = 200
LONGEST_EXPRESSION: Final = 2000
