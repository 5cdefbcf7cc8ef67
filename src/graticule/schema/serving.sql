-- What the services may show, and to whom: the schema "serving" has one set of views for each audience, and the roles of
-- the services can read nothing else of ours. Made anew as a whole when it differs from this file: see serving.py.

SET LOCAL client_min_messages = warning;  -- what it drops is made anew
SET LOCAL ROLE graticule_owner;

DROP SCHEMA IF EXISTS serving CASCADE;
CREATE SCHEMA serving;

-- How each version stands with each audience: here, and nowhere else, it is said what is in service.
CREATE VIEW serving.states AS
SELECT version.asset_id, version.version_ordinal, asset.data_type::text AS data_type, asset.url_mode::text AS url_mode,
       version.revision, version.approved_revision, version.exported_revision,
       version.external_blob_path, version.external_item_hash::text AS external_item_hash,
       version.stac_collection_id::text AS stac_collection_id,
       version.version_ordinal = asset.latest_approved_version_ordinal AS is_latest,
       is_approved AS is_internal,
       is_approved AND version.exported_revision IS NOT NULL AND asset.clearance_state = 'public' AS is_external,
       -- An older release did not note when it came into service first.
       coalesce(version.first_approved_at, version.revoked_at) IS NOT NULL
           OR version.approved_revision IS NOT NULL AS was_internal,
       version.first_exported_at IS NOT NULL OR version.exported_revision IS NOT NULL AS was_external
FROM dagapp.asset_versions AS version
JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = version.asset_id
CROSS JOIN LATERAL (
    SELECT version.approved_revision IS NOT NULL AND version.deleted_at IS NULL AND asset.deleted_at IS NULL
) AS rule (is_approved);

-- What was made in each revision. The newest one is in the row of its version; a revision stays in service while the next
-- one is in the making, or waits for its approval, and is among those that were succeeded.
CREATE VIEW serving.revisions AS
SELECT asset_id, version_ordinal, revision, blob_path::text, table_name::text, stac_item_id::text, item_hash::text,
       output_hash::text, bbox, current_job_id::text AS job_id
FROM dagapp.asset_versions
UNION ALL
SELECT asset_id, version_ordinal, revision, outputs ->> 'blob_path', outputs ->> 'table_name',
       outputs ->> 'stac_item_id', outputs ->> 'item_hash', output_hash::text,
       (SELECT array_agg(side::float8) FROM jsonb_array_elements_text(outputs -> 'bbox') AS side), job_id::text
FROM dagapp.asset_revisions;

-- The versions that are, or were, in service. Of what was withdrawn, no more is told than that it was.
CREATE VIEW serving.internal_versions WITH (security_barrier) AS
SELECT version.asset_id, version.version_ordinal, version.data_type, version.url_mode, version.is_internal AS is_served,
       coalesce(version.approved_revision, version.revision) AS revision,
       made.blob_path, 'geo' AS table_schema, made.table_name, made.output_hash, made.bbox,
       layer.entry ->> 'title' AS title, made.stac_item_id
FROM serving.states AS version
LEFT JOIN serving.revisions AS made
    ON version.is_internal AND made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
    AND made.revision = version.approved_revision
LEFT JOIN dagapp.layer_catalog AS layer
    ON version.is_internal AND layer.asset_id = version.asset_id AND layer.version_ordinal = version.version_ordinal
WHERE version.was_internal;

-- The same for the public: only what was copied for it, with the copies as outputs.
CREATE VIEW serving.external_versions WITH (security_barrier) AS
SELECT version.asset_id, version.version_ordinal, version.data_type, version.url_mode, version.is_external AS is_served,
       coalesce(version.exported_revision, version.revision) AS revision,
       CASE WHEN version.is_external THEN version.external_blob_path END AS blob_path, 'external' AS table_schema,
       made.table_name, made.output_hash, made.bbox, layer.entry ->> 'title' AS title,
       made.stac_item_id
FROM serving.states AS version
LEFT JOIN serving.revisions AS made
    ON version.is_external AND made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
    AND made.revision = version.exported_revision
LEFT JOIN dagapp.layer_catalog AS layer
    ON version.is_external AND layer.is_external AND layer.asset_id = version.asset_id
    AND layer.version_ordinal = version.version_ordinal
WHERE version.was_external;

-- What `graticule verify` looks at: the outputs of every version in service, and their copies for the public.
CREATE VIEW serving.outputs AS
SELECT version.asset_id, version.version_ordinal, 'internal'::dagapp.audience AS audience,
       version.approved_revision AS revision, version.data_type, made.job_id, made.blob_path, 'geo' AS table_schema,
       made.table_name, made.output_hash, version.stac_collection_id AS collection_id, made.stac_item_id AS item_id,
       made.item_hash
FROM serving.states AS version
JOIN serving.revisions AS made
    ON made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
    AND made.revision = version.approved_revision
WHERE version.is_internal
UNION ALL
SELECT version.asset_id, version.version_ordinal, 'external', version.exported_revision, version.data_type, made.job_id,
       version.external_blob_path, 'external', made.table_name, made.output_hash,
       version.stac_collection_id || '-public', made.stac_item_id, version.external_item_hash
FROM serving.states AS version
JOIN serving.revisions AS made
    ON made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
    AND made.revision = version.exported_revision
WHERE version.is_external;

-- What reviewers look at: the newest revision that was made of every version, whatever was decided of it. A row has its
-- outputs until those of the next one are there, and the revision that is named is the one that made them: a decision on
-- the next one must not rest on them.
CREATE VIEW serving.previews WITH (security_barrier) AS
SELECT version.asset_id, version.version_ordinal, asset.data_type::text AS data_type, asset.url_mode::text AS url_mode,
       true AS is_served,
       CASE WHEN version.processing_state = 'completed' THEN version.revision
            ELSE coalesce(
                (SELECT max(made.revision) FROM dagapp.asset_revisions AS made
                 WHERE made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
                   AND made.outputs ?| ARRAY['blob_path', 'table_name']),
                version.revision)
       END AS revision,
       version.blob_path, 'geo' AS table_schema, version.table_name,
       version.output_hash, version.bbox, layer.title::text AS title,
       version.stac_item_id::text
FROM dagapp.asset_versions AS version
JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = version.asset_id
LEFT JOIN dagapp.layer_metadata AS layer
    ON layer.asset_id = version.asset_id AND layer.version_ordinal = version.version_ordinal
WHERE (version.blob_path IS NOT NULL OR version.table_name IS NOT NULL)
  AND version.deleted_at IS NULL AND asset.deleted_at IS NULL;

-- The items of the catalogue that an audience may see: with latest_only those of the latest version alone. All versions
-- of an asset are in one collection; the copies for the public are in one of their own.
CREATE VIEW serving.internal_items WITH (security_barrier) AS
SELECT version.stac_collection_id AS collection_id, made.stac_item_id AS item_id, version.asset_id::text,
       version.version_ordinal, version.url_mode
FROM serving.revisions AS made
JOIN serving.states AS version
    ON version.asset_id = made.asset_id AND version.version_ordinal = made.version_ordinal
    AND version.approved_revision = made.revision
WHERE version.is_internal AND made.stac_item_id IS NOT NULL
  AND (version.url_mode = 'all_versions' OR version.is_latest);

CREATE VIEW serving.external_items WITH (security_barrier) AS
SELECT version.stac_collection_id || '-public' AS collection_id, version.stac_collection_id AS source_collection_id,
       made.stac_item_id AS item_id, version.asset_id::text, version.version_ordinal, version.url_mode
FROM serving.revisions AS made
JOIN serving.states AS version
    ON version.asset_id = made.asset_id AND version.version_ordinal = made.version_ordinal
    AND version.exported_revision = made.revision
WHERE version.is_external AND made.stac_item_id IS NOT NULL
  AND (version.url_mode = 'all_versions' OR NOT EXISTS (
      SELECT FROM serving.states AS later
      WHERE later.asset_id = version.asset_id AND later.version_ordinal > version.version_ordinal AND later.is_external
  ));

-- The item of a version has one id for good. A new revision is catalogued beside the one in service, under that id and its
-- own number; when it comes into service, in a decision or because the content is the same, its item takes the id.
CREATE FUNCTION serving.publish_item() RETURNS trigger LANGUAGE plpgsql SET search_path = pgstac, public, pg_temp AS $$
DECLARE
    stable text := regexp_replace(NEW.stac_item_id, '-r[0-9]+$', '');
BEGIN
    PERFORM set_config('graticule.asset_id', NEW.asset_id, true);  -- no job writes here: see outputs.sql
    IF EXISTS (SELECT FROM items WHERE collection = NEW.stac_collection_id AND id = NEW.stac_item_id) THEN
        DELETE FROM items WHERE collection = NEW.stac_collection_id AND id = stable;
        INSERT INTO items (id, geometry, collection, datetime, end_datetime, content)
        SELECT stable, geometry, collection, datetime, end_datetime, content FROM items
        WHERE collection = NEW.stac_collection_id AND id = NEW.stac_item_id;
        DELETE FROM items WHERE collection = NEW.stac_collection_id AND id = NEW.stac_item_id;
        NEW.stac_item_id := stable;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER asset_versions_publish_item BEFORE UPDATE ON dagapp.asset_versions
FOR EACH ROW WHEN (
    NEW.approved_revision = NEW.revision AND NEW.approved_revision IS DISTINCT FROM OLD.approved_revision
    AND NEW.stac_item_id ~ ('-v' || NEW.version_ordinal || '-r' || NEW.revision || '$')
)
EXECUTE FUNCTION serving.publish_item();

GRANT USAGE ON SCHEMA serving TO graticule_serve_internal, graticule_serve_external, graticule_orchestrator;
GRANT SELECT ON serving.outputs TO graticule_orchestrator;
GRANT SELECT ON serving.internal_versions, serving.internal_items, serving.previews TO graticule_serve_internal;
GRANT SELECT ON serving.external_versions, serving.external_items TO graticule_serve_external;

RESET ROLE;

-- Tables of features that workers make, also later: what is copied for the public is granted when it is copied.
SET LOCAL ROLE graticule_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA geo TO graticule_serve_internal;
ALTER DEFAULT PRIVILEGES IN SCHEMA geo GRANT SELECT ON TABLES TO graticule_serve_internal;
RESET ROLE;

-- The catalogue: a service sees the rows that its audience may see, whatever it asks; all others see all. It has the
-- rights that a search takes, and none on single partitions, for which the policies would not hold. Statistics of what
-- others searched for, and formatted items of others, are not for it.
GRANT USAGE ON SCHEMA pgstac TO graticule_serve_internal, graticule_serve_external;
GRANT SELECT ON pgstac.collections, pgstac.items, pgstac.collections_asitems, pgstac.base_items, pgstac.queryables,
                pgstac.cql2_ops, pgstac.pgstac_settings, pgstac.search_wheres
TO graticule_serve_internal, graticule_serve_external;
GRANT SELECT (partition, partition_dtrange) ON pgstac.partition_stats
TO graticule_serve_internal, graticule_serve_external;

ALTER TABLE pgstac.collections ENABLE ROW LEVEL SECURITY;
ALTER TABLE pgstac.items ENABLE ROW LEVEL SECURITY;
ALTER TABLE pgstac.base_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE pgstac.search_wheres ENABLE ROW LEVEL SECURITY;
-- Otherwise it would show all collections: it reads them with the rights of whoever made it.
ALTER VIEW pgstac.collections_asitems SET (security_invoker = true);

DO $$
DECLARE
    catalogue text;
BEGIN
    FOREACH catalogue IN ARRAY ARRAY['collections', 'items', 'base_items', 'search_wheres']
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS graticule_not_served ON pgstac.%I', catalogue);
        EXECUTE format(
            'CREATE POLICY graticule_not_served ON pgstac.%I
             TO graticule_owner, graticule_orchestrator, graticule_worker, graticule_gateway,
                pgstac_admin, pgstac_read, pgstac_ingest
             USING (true)',
            catalogue
        );
    END LOOP;
END $$;

CREATE POLICY graticule_internal ON pgstac.collections FOR SELECT TO graticule_serve_internal
USING (EXISTS (SELECT FROM serving.internal_items AS shown WHERE shown.collection_id = collections.id));

CREATE POLICY graticule_external ON pgstac.collections FOR SELECT TO graticule_serve_external
USING (id LIKE '%-public' AND EXISTS (
    SELECT FROM serving.external_items AS shown WHERE shown.source_collection_id = left(collections.id, -7)
));

-- What the items of a collection have in common is seen with the collection.
DROP POLICY IF EXISTS graticule_served ON pgstac.base_items;
CREATE POLICY graticule_served ON pgstac.base_items FOR SELECT
TO graticule_serve_internal, graticule_serve_external
USING (EXISTS (SELECT FROM pgstac.collections WHERE collections.id = base_items.collection));

CREATE POLICY graticule_internal ON pgstac.items FOR SELECT TO graticule_serve_internal
USING (EXISTS (
    SELECT FROM serving.internal_items AS shown WHERE shown.item_id = items.id AND shown.collection_id = items.collection
));

CREATE POLICY graticule_external ON pgstac.items FOR SELECT TO graticule_serve_external
USING (EXISTS (
    SELECT FROM serving.external_items AS shown WHERE shown.item_id = items.id AND shown.collection_id = items.collection
));
