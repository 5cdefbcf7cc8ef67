-- Shapes of vector tiles; all in braces is composed.

-- name: in_tile
ST_AsMVTGeom({shape}, {envelope}, {resolution}, {buffer}, true)

-- name: drawn
-- PostGIS leaves nothing of an area or line that is thinner than the grid of the tile. One that is smaller than a pixel
-- becomes that pixel, and a longer area gets some width.
coalesce(
    {in_tile},
    CASE
        WHEN greatest(ST_XMax({shape}) - ST_XMin({shape}), ST_YMax({shape}) - ST_YMin({shape})) < {width} / {pixels} THEN (
            SELECT CASE ST_Dimension({shape})
                WHEN 2 THEN ST_Reverse(ST_MakeEnvelope(x + 1, y + 1, x + {pixel} - 1, y + {pixel} - 1))
                WHEN 1 THEN ST_MakeLine(
                    ST_MakePoint(x + 1, y + {pixel} / 2), ST_MakePoint(x + {pixel} - 1, y + {pixel} / 2)
                )
            END
            FROM (
                SELECT {pixel} * floor(
                           ((ST_XMin({shape}) + ST_XMax({shape})) / 2 - ST_XMin({envelope})) / {width} * {pixels}
                       ) AS x,
                       {pixel} * floor(
                           (ST_YMax({envelope}) - (ST_YMin({shape}) + ST_YMax({shape})) / 2) / {width} * {pixels}
                       ) AS y
            ) AS middle
            WHERE x >= -{buffer} AND x < {resolution} + {buffer} AND y >= -{buffer} AND y < {resolution} + {buffer}
        )
        WHEN ST_Dimension({shape}) = 2 AND ST_Intersects({shape}, {envelope}) THEN {widened}
    END
)
