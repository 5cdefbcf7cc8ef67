-- name: parse_crs
-- PROJ reads the name, with the definitions that the database has, and refuses one that it does not know.
SELECT ST_Transform('POINT EMPTY'::geometry, 'EPSG:4326', %(name)s);
