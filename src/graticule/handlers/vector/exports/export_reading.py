"""The features of a source, for an export of them. Imports GDAL: only for where a handler runs."""

from collections.abc import Iterator

import pyarrow as pa

from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.vector.described import Source
from graticule.handlers.vector.preparing.features import open_features
from graticule.handlers.vector.rejecting import Code, rejected


def read_features(ctx: ProcessContext, crs: str, message: str = "features") -> Iterator[pa.RecordBatch]:
    """Give all features of the source that the task is about, as long as it is wanted, and tell how far they are."""
    source: Source = ctx.params.source
    done = 0
    with open_features(ctx.storage, source, crs) as features:
        for batch in features.batches():
            go_on(ctx)
            yield batch.rows
            done += batch.rows.num_rows
            ctx.progress(done, source.feature_count, message)
    if done != source.feature_count:
        what = f"The layer has {source.feature_count} features, and {done} can be read."
        raise rejected(Code.CORRUPT, what, f"layer {source.layer_name}")
