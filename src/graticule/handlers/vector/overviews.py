"""Prepares the vector tiles of those places that hold more features than a tile can be made of while someone waits."""

from collections.abc import Callable

from graticule.repositories.overviews import OverviewBuilder

Report = Callable[[float, float], None]


async def build_overview(builder: OverviewBuilder, report: Report) -> bool:
    """Build the overview of a table; False when it needs none. `report` may raise to stop it."""
    if not await builder.measure():
        return False
    dense = await builder.find_dense_tiles()
    if not dense:
        return False
    highest, total = len(dense) - 1, 2 * sum(dense)  # to burn takes about half of the time
    await builder.begin_burning()
    ranges = [*builder.fid_ranges()]
    for done, (first, after) in enumerate(ranges):
        report(done / len(ranges) * total / 2, total)
        await builder.burn(first, after, highest)
    made = total // 2
    for zoom in range(highest, -1, -1):
        await builder.create_level(zoom, is_highest=zoom == highest)
        for x, y in await builder.dense_tiles(zoom):
            report(made, total)
            await builder.fill_tile(zoom, x, y)
            made += 1
        await builder.finish_zoom(zoom)
    await builder.finish()
    return True
