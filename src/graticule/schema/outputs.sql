-- Outputs belong to a version: what a table, a prefix, a collection or an item of the catalog is called says whose it is,
-- and only the job that its version names may write it. Every job that no version names has a namespace of its own. The
-- database checks this whoever asks; the functions are part of the schema and are replaced when this file changes.

SET LOCAL client_min_messages = warning;
SET LOCAL ROLE graticule_owner;

-- The namespace of hand-made jobs, into which no name of an asset falls (see core/asset_names.py).
CREATE OR REPLACE FUNCTION dagapp.is_direct_output(kind text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(CASE kind
        WHEN 'table' THEN wanted ~ '^direct_[a-z0-9_]+$' AND octet_length(wanted) <= 63
        WHEN 'prefix' THEN wanted ~ '^direct(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$'
        WHEN 'collection' THEN wanted ~ '^direct-[A-Za-z0-9._-]+$'
        WHEN 'item' THEN wanted ~ '^direct-[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$'
    END, false)
$$;

-- Which asset a collection belongs to: its own one, that of its copies for the public, or one of its tiles. The latter is
-- named after an item of any revision, also of one that is still to come: the asset's short id is in it.
CREATE OR REPLACE FUNCTION dagapp.owner_of_collection(wanted text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT asset_id::text FROM (
        SELECT asset_id FROM dagapp.asset_versions
        WHERE stac_collection_id IN (wanted, regexp_replace(wanted, '-(public|tiles)$', ''))
           OR wanted LIKE '%-tiles' AND stac_item_id = left(wanted, -length('-tiles'))
        UNION ALL
        SELECT asset_id FROM dagapp.geospatial_assets
        WHERE substring(wanted FROM '-([0-9a-f]{8,32})-v[0-9]+(?:-r[0-9]+)?-tiles$') IN (short_id, asset_id)
    ) AS owners
    LIMIT 1
$$;

-- Names from before there was a namespace may lie in it.
CREATE OR REPLACE FUNCTION dagapp.is_output_of_asset(kind text, wanted text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE kind
        WHEN 'table' THEN EXISTS (SELECT FROM dagapp.asset_versions WHERE table_name = wanted)
            OR EXISTS (SELECT FROM dagapp.asset_revisions WHERE outputs ->> 'table_name' = wanted)
        WHEN 'prefix' THEN EXISTS (SELECT FROM dagapp.platforms WHERE platform_id = split_part(wanted, '/', 1))
        ELSE dagapp.owner_of_collection(split_part(wanted, '/', 1)) IS NOT NULL
    END
$$;

-- The collections of its asset that a job which publishes or withdraws was given, also by the prefixes of their versions,
-- and the items after which collections of tiles are named.
CREATE OR REPLACE FUNCTION dagapp.collections_of_job(inputs jsonb) RETURNS SETOF text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT name #>> '{}' FROM jsonb_path_query(inputs, '$.**.stac_collection_id') AS name
    WHERE jsonb_typeof(name) = 'string'
    UNION
    SELECT name #>> '{}' FROM jsonb_path_query(inputs, '$.**.stac_item_id') AS name
    WHERE jsonb_typeof(name) = 'string'
    UNION
    SELECT translate(regexp_replace(prefix #>> '{}', '/[^/]*$', ''), '/_', '--')
    FROM jsonb_path_query(inputs, '$.**.version_prefix') AS prefix
    WHERE jsonb_typeof(prefix) = 'string'
$$;

-- Whether the inputs of a job of a version, which an orchestrator wrote, name an output.
CREATE OR REPLACE FUNCTION dagapp.job_names_output(purpose dagapp.job_purpose, inputs jsonb, kind text, wanted text)
RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(CASE
        WHEN purpose = 'process' THEN CASE kind
            WHEN 'table' THEN wanted = inputs ->> 'table_name'
            WHEN 'prefix' THEN wanted = inputs ->> 'blob_prefix'
            WHEN 'collection' THEN wanted IN (
                inputs ->> 'stac_collection_id', (inputs ->> 'stac_collection_id') || '-tiles',
                (inputs ->> 'stac_item_id') || '-tiles'
            )
            WHEN 'item' THEN
                dagapp.job_names_output(purpose, inputs, 'collection', split_part(wanted, '/', 1))
                AND (split_part(wanted, '/', 2) = inputs ->> 'stac_item_id'
                     OR starts_with(split_part(wanted, '/', 2), (inputs ->> 'stac_item_id') || '-'))
        END
        WHEN kind = 'copy' THEN purpose = 'export' AND wanted = inputs ->> 'table_name'
        WHEN kind = 'collection' THEN EXISTS (
            SELECT FROM dagapp.collections_of_job(inputs) AS own
            WHERE wanted = own || '-public'
               OR purpose = 'unpublish' AND (wanted = own OR starts_with(wanted, own || '-'))
        )
    END, false)
$$;

-- Why a job must not write an output; NULL when it may.
CREATE OR REPLACE FUNCTION dagapp.objection_to_output(of_job text, kind text, wanted text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job record;
BEGIN
    SELECT made.status::text AS status, made.asset_id, made.purpose, made.input_params,
           version.current_job_id, version.deleted_at
    INTO job
    FROM dagapp.dag_jobs AS made
    LEFT JOIN dagapp.asset_versions AS version
        ON version.asset_id = made.asset_id AND version.version_ordinal = made.version_ordinal
    WHERE made.job_id = of_job;
    IF NOT FOUND THEN
        RETURN 'there is no such job';
    ELSIF job.status NOT IN ('pending', 'running') THEN
        RETURN format('the job is %s', job.status);
    ELSIF job.asset_id IS NULL THEN
        RETURN CASE
            WHEN dagapp.is_direct_output(kind, wanted) AND NOT dagapp.is_output_of_asset(kind, wanted) THEN NULL
            ELSE 'the job belongs to no version of an asset'
        END;
    ELSIF job.purpose = 'process' AND job.current_job_id IS DISTINCT FROM of_job THEN
        RETURN 'another job processes its version';
    ELSIF job.purpose = 'process' AND job.deleted_at IS NOT NULL THEN
        RETURN 'its version was deleted';
    ELSIF NOT dagapp.job_names_output(job.purpose, job.input_params, kind, wanted) THEN
        RETURN 'it is not an output of the version that the job works on';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dagapp.refuse_output(of_job text, kind text, wanted text, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'GR001',
        MESSAGE = format('The job %s may not write the %s %s: %s.', of_job, kind, quote_literal(left(wanted, 200)), reason),
        HINT = CASE WHEN kind = 'copy' AND starts_with(reason, 'the table is more than rows')
               THEN 'Then clear the asset once more; or reprocess the version and approve the new revision.'
               WHEN kind = 'copy' THEN 'Revoke the version, or reprocess it and approve the new revision.'
               WHEN reason = 'the job belongs to no version of an asset'
               THEN 'Jobs that are submitted directly write tables named direct_…, prefixes below direct/…, and'
                    ' collections named direct-…. To change the data of an asset, submit or reprocess it.'
               ELSE 'Submit or reprocess the asset: its newest job writes its outputs.' END;
END $$;

-- Refuse the transaction of a job that may not write these outputs. Until it ends, the version keeps naming the job that
-- processes it. To other jobs that does not matter: decisions do not wait until an export has copied a table. All that
-- follows in the transaction is written in the job's name.
CREATE OR REPLACE FUNCTION dagapp.require_outputs(of_job text, kind text, wanted text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    refused record;
BEGIN
    PERFORM FROM dagapp.asset_versions AS version
    JOIN dagapp.dag_jobs AS job USING (asset_id, version_ordinal)
    WHERE job.job_id = of_job AND job.purpose = 'process'
    FOR SHARE OF version;
    SELECT name, reason INTO refused
    FROM unnest(wanted) AS name, dagapp.objection_to_output(of_job, kind, name) AS reason
    WHERE reason IS NOT NULL
    LIMIT 1;
    IF FOUND THEN
        PERFORM dagapp.refuse_output(of_job, kind, refused.name, refused.reason);
    END IF;
    PERFORM set_config('graticule.job_id', of_job, true);
END $$;

-- What a table has besides rows, and how it is removed; NULL for one that is made of rows and nothing else. Whoever makes a
-- table can hang functions on it, which run as whoever reads, plans or analyzes it: by views, triggers, policies, expressions
-- of indexes and statistics, casts and types. So types are PostgreSQL's own or those of an extension: whoever acts as a worker
-- may own others under another name. A table that is not logged would be empty after a crash. An administrator may have
-- added the same in good faith, and is told what it is.
CREATE OR REPLACE FUNCTION dagapp.objection_to_table(wanted oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(reason, 'it is more than rows') FROM (
        SELECT 1 AS number, 'it is not there' AS reason WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = wanted)
        UNION ALL
        SELECT 2, 'it is not an ordinary table (reprocess the version)' FROM pg_class
        WHERE oid = wanted AND (relkind <> 'r' OR relispartition OR reloftype <> 0)
        UNION ALL
        SELECT 3, format('it has the constraint %1$I (remove it: ALTER TABLE %2$s DROP CONSTRAINT %1$I)',
                         conname, conrelid::regclass)
        FROM pg_constraint WHERE conrelid = wanted AND contype NOT IN ('p', 'u', 'n')
        UNION ALL
        SELECT 4, format('the index %1$s computes an expression or has a condition (remove it: DROP INDEX %1$s)',
                         indexrelid::regclass)
        FROM pg_index WHERE indrelid = wanted AND (indexprs IS NOT NULL OR indpred IS NOT NULL)
        UNION ALL
        SELECT 5, format('it has the extended statistics %1$s.%2$I (remove them: DROP STATISTICS %1$s.%2$I)',
                         stxnamespace::regnamespace, stxname)
        FROM pg_statistic_ext WHERE stxrelid = wanted
        UNION ALL
        SELECT 6, format('it has the trigger %1$I (remove it: DROP TRIGGER %1$I ON %2$s)', tgname, tgrelid::regclass)
        FROM pg_trigger WHERE tgrelid = wanted AND NOT tgisinternal
        UNION ALL
        SELECT 7, format('it has the rule %1$I (remove it: DROP RULE %1$I ON %2$s)', rulename, ev_class::regclass)
        FROM pg_rewrite WHERE ev_class = wanted
        UNION ALL
        SELECT 8, format('the column %1$I has a default or an expression (remove it: ALTER TABLE %2$s ALTER %1$I DROP %3$s)',
                         attname, attrelid::regclass, CASE attgenerated WHEN '' THEN 'DEFAULT' ELSE 'EXPRESSION' END)
        FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = wanted
        UNION ALL
        SELECT 9, format('it has row-level security (remove it: ALTER TABLE %s DISABLE ROW LEVEL SECURITY, '
                         'NO FORCE ROW LEVEL SECURITY)', oid::regclass)
        FROM pg_class WHERE oid = wanted AND (relrowsecurity OR relforcerowsecurity)
        UNION ALL
        SELECT 10, format('a crash would empty it (change it: ALTER TABLE %s SET LOGGED)', oid::regclass)
        FROM pg_class WHERE oid = wanted AND relpersistence <> 'p'
        UNION ALL
        SELECT 11, format('%s inherits from %s (separate them: ALTER TABLE %1$s NO INHERIT %2$s)',
                          inhrelid::regclass, inhparent::regclass)
        FROM pg_inherits WHERE wanted IN (inhrelid, inhparent)
        UNION ALL
        SELECT 12, format('its rows have a cast (remove it: DROP CAST (%s AS %s))', castsource::regtype, casttarget::regtype)
        FROM pg_class JOIN pg_cast ON reltype IN (castsource, casttarget) WHERE pg_class.oid = wanted
        UNION ALL
        SELECT 13, format('the column %I has a type that is neither PostgreSQL''s own nor one of an extension (reprocess the '
                          'version)', attname)
        FROM pg_attribute AS part
        JOIN pg_type AS written ON written.oid = part.atttypid
        JOIN pg_type AS kind
            ON kind.oid = CASE WHEN written.typcategory = 'A' AND written.typtype = 'b' THEN written.typelem
                          ELSE written.oid END
        WHERE part.attrelid = wanted AND kind.typnamespace <> 'pg_catalog'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend
                          WHERE classid = 'pg_type'::regclass AND objid = kind.oid AND deptype = 'e')
        UNION ALL
        SELECT 14, format('it has had rules, triggers or tables that inherit from it (once it has none: VACUUM ANALYZE %s)',
                          oid::regclass)
        FROM pg_class WHERE oid = wanted AND (relhasrules OR relhastriggers OR relhassubclass)
    ) AS objections
    ORDER BY number
    LIMIT 1
$$;

CREATE OR REPLACE FUNCTION dagapp.is_plain_table(wanted oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT dagapp.objection_to_table(wanted) IS NULL
$$;

-- The SHA-256 of the rows of a table of features, in the order of their numbers: the same after a restore, and in a copy.
-- Rows are hashed one by one and then in groups, so that no value grows with the table. It has no rights of its own: the
-- table may be a worker's. NULL for what is more than rows.
CREATE OR REPLACE FUNCTION dagapp.hash_rows(in_schema text, wanted text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET bytea_output = 'hex'
SET extra_float_digits = 1 AS $$
DECLARE
    found text;
BEGIN
    IF in_schema NOT IN ('geo', 'external')
       OR NOT dagapp.is_plain_table(to_regclass(format('%I.%I', in_schema, wanted))) THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        $query$
        SELECT encode(sha256(string_agg(part, ''::bytea ORDER BY number)), 'hex')
        FROM (
            SELECT fid / 4096 AS number, sha256(string_agg(hash, ''::bytea ORDER BY fid)) AS part
            FROM (
                SELECT fid, sha256(convert_to(record_out(each)::text, 'UTF8')) AS hash
                FROM ONLY %I.%I AS each
                OFFSET 0
            ) AS hashed
            GROUP BY 1
        ) AS parts
        $query$,
        in_schema, wanted
    ) INTO found;
    RETURN coalesce(found, encode(sha256(''), 'hex'));
END $$;

-- The same for those who may not read the table. It stays as it is meanwhile: a worker's could become more than rows after
-- it was looked at.
CREATE OR REPLACE FUNCTION dagapp.hash_table(in_schema text, wanted text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF in_schema NOT IN ('geo', 'external') THEN
        RETURN NULL;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I.%I IN SHARE ROW EXCLUSIVE MODE', in_schema, wanted);
    RETURN dagapp.hash_rows(in_schema, wanted);
END $$;

-- The SHA-256 of an item of the catalog, NULL when there is none. Its id is left out: the item of a new revision takes the
-- id of the version when it comes into service (see serving.sql), and nothing else of it changes.
CREATE OR REPLACE FUNCTION dagapp.hash_item(in_collection text, wanted text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pgstac, public, pg_temp SET timezone = 'UTC' AS $$
BEGIN
    RETURN encode(sha256(convert_to((get_item(wanted, in_collection) - 'id')::text, 'UTF8')), 'hex');
END $$;

-- A version keeps the hash of its item as of the end of the job that registered it, and that of the item of its copy for
-- the public as of the end of the export. Workers cannot write it.
CREATE OR REPLACE FUNCTION dagapp.record_item_hash() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.item_hash := dagapp.hash_item(NEW.stac_collection_id, NEW.stac_item_id);
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION dagapp.record_external_item_hash() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.external_item_hash := CASE WHEN NEW.exported_revision IS NOT NULL THEN dagapp.hash_item(
        NEW.stac_collection_id || '-public',
        CASE WHEN NEW.exported_revision = NEW.revision THEN NEW.stac_item_id ELSE (
            SELECT outputs ->> 'stac_item_id' FROM dagapp.asset_revisions AS logged
            WHERE logged.asset_id = NEW.asset_id AND logged.version_ordinal = NEW.version_ordinal
              AND logged.revision = NEW.exported_revision
        ) END
    ) END;
    RETURN NEW;
END $$;

-- In the order of their names: after admit_own_outputs, and before the item takes the id of the version.
DROP TRIGGER IF EXISTS asset_versions_hash_item ON dagapp.asset_versions;
CREATE TRIGGER asset_versions_hash_item BEFORE UPDATE OF processing_state ON dagapp.asset_versions
FOR EACH ROW WHEN (NEW.processing_state = 'completed' AND OLD.processing_state <> 'completed')
EXECUTE FUNCTION dagapp.record_item_hash();

DROP TRIGGER IF EXISTS asset_versions_hash_external_item ON dagapp.asset_versions;
CREATE TRIGGER asset_versions_hash_external_item BEFORE UPDATE OF exported_revision, export_run_id ON dagapp.asset_versions
FOR EACH ROW WHEN (
    (NEW.exported_revision, NEW.export_run_id) IS DISTINCT FROM (OLD.exported_revision, OLD.export_run_id)
)
EXECUTE FUNCTION dagapp.record_external_item_hash();

-- The hash of the item that an export is to publish, as the job of its revision registered it; NULL where an earlier release
-- recorded none.
CREATE OR REPLACE FUNCTION dagapp.recorded_item_hash(of_job text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT made.item_hash
    FROM dagapp.dag_jobs AS job
    CROSS JOIN LATERAL (
        SELECT version.item_hash::text FROM dagapp.asset_versions AS version
        WHERE version.asset_id = job.asset_id AND version.version_ordinal = job.version_ordinal
          AND version.revision = (job.input_params ->> 'revision')::int
        UNION ALL
        SELECT logged.outputs ->> 'item_hash' FROM dagapp.asset_revisions AS logged
        WHERE logged.asset_id = job.asset_id AND logged.version_ordinal = job.version_ordinal
          AND logged.revision = (job.input_params ->> 'revision')::int
    ) AS made
    WHERE job.job_id = of_job
    LIMIT 1
$$;

-- What is wrong with a live table that a job has made, NULL when nothing is: whether it is there, whether it is still that
-- job's and, of one of no more than so many bytes, whether its rows are those that the job loaded.
CREATE OR REPLACE FUNCTION dagapp.fault_of_table(of_job text, wanted text, most_bytes bigint) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live oid := (SELECT oid FROM pg_class WHERE relname = wanted AND relnamespace = 'geo'::regnamespace);
    hash text := substring(obj_description(live, 'pg_class') FROM 'Content: ([0-9a-f]{64})[.]$');
    owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = live);
BEGIN
    IF live IS NULL THEN
        RETURN 'it is not there';
    ELSIF NOT starts_with(coalesce(obj_description(live, 'pg_class'), ''), format('Made by job %s:', of_job)) THEN
        RETURN 'another job has made it';
    ELSIF hash IS NOT NULL AND NOT dagapp.is_plain_table(live) THEN
        RETURN 'it is more than rows: ' || dagapp.objection_to_table(live);
    ELSIF owner <> 'graticule_owner' THEN  -- whoever owns it can change its rows, and what its comment says of them
        RETURN format('it belongs to %I and not to graticule_owner%s', owner,
                      CASE owner WHEN 'graticule_worker' THEN ' (take it over: graticule schema migrate)' ELSE '' END);
    ELSIF hash IS NOT NULL AND pg_table_size(live) <= most_bytes AND hash <> dagapp.hash_rows('geo', wanted) THEN
        RETURN 'its rows are not those that the job loaded';
    END IF;
    RETURN NULL;
END $$;

-- Take over a table that a worker has made, with nothing on it that would run as its new owner and with no rights that the
-- worker has handed out; false when it is more than rows.
DROP FUNCTION IF EXISTS dagapp.take_table(text);
CREATE OR REPLACE FUNCTION dagapp.take_table(in_schema text, wanted text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken text := format('%I.%I', in_schema, wanted);
    reader record;
BEGIN
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', taken);
    IF NOT dagapp.is_plain_table(to_regclass(taken)) THEN
        RETURN false;
    END IF;
    EXECUTE format('ALTER TABLE %s OWNER TO graticule_owner', taken);
    FOR reader IN
        SELECT DISTINCT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(granted.grantee)) END
               AS name
        FROM (
            SELECT relacl AS acl FROM pg_class WHERE oid = to_regclass(taken)
            UNION ALL
            SELECT attacl FROM pg_attribute WHERE attrelid = to_regclass(taken)
        ) AS held, aclexplode(held.acl) AS granted
        WHERE granted.grantee <> 'graticule_owner'::regrole
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', taken, reader.name);
    END LOOP;
    EXECUTE format('GRANT SELECT ON %s TO %s', taken,
                   CASE in_schema WHEN 'geo' THEN 'graticule_worker, graticule_serve_internal'
                   ELSE 'graticule_serve_external' END);
    RETURN true;
END $$;

-- Put the staging table of a job in its place. Live tables belong to the owner of the schema: no worker can drop or change
-- one, except here. Tiles that were prepared follow their table; see overview_name in repositories/overviews.py, and
-- staging_name for what a job has staged.
CREATE OR REPLACE FUNCTION dagapp.promote_table(of_job text, wanted text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    staged_as text := 'staging_' || left(of_job, 40);
    part record;
BEGIN
    PERFORM dagapp.require_outputs(of_job, 'table', ARRAY[wanted]);
    IF to_regclass(format('geo.%I', staged_as)) IS NULL THEN  -- another attempt has put it in its place: that one stays
        PERFORM dagapp.refuse_output(of_job, 'table', wanted, 'it has staged no table');
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS geo.%I, geo.%I', wanted, 'tiles_' || md5(wanted));  -- from here on, readers wait
    FOR part IN
        SELECT staged.relname AS name, parts.final
        FROM (VALUES (staged_as, wanted), (staged_as || '_overview', 'tiles_' || md5(wanted))) AS parts (staging, final)
        JOIN pg_class AS staged ON staged.relname = parts.staging AND staged.relnamespace = 'geo'::regnamespace
    LOOP
        IF NOT dagapp.take_table('geo', part.name) THEN
            PERFORM dagapp.refuse_output(of_job, 'table', wanted, 'what was staged for it is more than a table of rows');
        END IF;
        EXECUTE format('ALTER TABLE geo.%I RENAME TO %I', part.name, part.final);
    END LOOP;
END $$;

-- Copy a table of features, or its tiles, aside; return the name of the copy. The owner reads the table: it must be rows only.
CREATE OR REPLACE FUNCTION dagapp.copy_aside(wanted text, comment text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    original text := format('geo.%I', wanted);
    aside text := format('external.%I', 'making_' || md5(wanted));
    index record;
BEGIN
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', original);
    IF NOT dagapp.is_plain_table(to_regclass(original)) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING COMMENTS INCLUDING STORAGE INCLUDING COMPRESSION)', aside, original);
    EXECUTE format('INSERT INTO %s SELECT * FROM ONLY %s', aside, original);
    FOR index IN
        SELECT indisprimary AS is_key, string_agg(quote_ident(attname), ', ' ORDER BY position) AS columns
        FROM pg_index
        JOIN pg_class AS made ON made.oid = indexrelid
        JOIN pg_am AS method ON method.oid = made.relam
        CROSS JOIN LATERAL unnest(indkey::int2[]) WITH ORDINALITY AS key (number, position)
        JOIN pg_attribute ON attrelid = indrelid AND attnum = number
        WHERE indrelid = to_regclass(original) AND (indisprimary OR amname = 'gist')
        GROUP BY indexrelid, indisprimary
        ORDER BY indexrelid
    LOOP
        EXECUTE format(CASE WHEN index.is_key THEN 'ALTER TABLE %s ADD PRIMARY KEY (%s)'
                            ELSE 'CREATE INDEX ON %s USING gist (%s)' END, aside, index.columns);
    END LOOP;
    EXECUTE format('ANALYZE %s', aside);
    EXECUTE format('COMMENT ON TABLE %s IS %L', aside, comment);
    EXECUTE format('GRANT SELECT ON %s TO graticule_serve_external', aside);
    RETURN aside;
END $$;

-- Copy an approved table, with its tiles, to where the public reads it, in place of an earlier copy, and return the bytes.
-- Copies belong to the owner of the schema: no worker writes them. One that is up to date is kept.
CREATE OR REPLACE FUNCTION dagapp.make_copy(of_job text, wanted text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    original oid := to_regclass(format('geo.%I', wanted));
    tiles text := 'tiles_' || md5(wanted);
    copy oid := to_regclass(format('external.%I', wanted));
    described text := obj_description(original, 'pg_class');
    whose text;
    comment text;
    part record;
BEGIN
    PERFORM dagapp.require_outputs(of_job, 'copy', ARRAY[wanted]);
    SELECT format('Public copy of asset %s, version %s, revision ', asset_id, version_ordinal),
           format('%s, edition %s.', input_params ->> 'revision', left(md5(concat(described, original)), 12))
    INTO whose, comment
    FROM dagapp.dag_jobs WHERE job_id = of_job;
    comment := whose || comment;
    IF original IS NULL THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'there is no such table');
    ELSIF NOT starts_with(coalesce(described, ''), 'Made by job ') THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'no job has made the table');
    ELSIF copy IS NOT NULL AND NOT starts_with(coalesce(obj_description(copy, 'pg_class'), ''), whose) THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'the public table of that name is not a copy of this version');
    ELSIF obj_description(copy, 'pg_class') = comment THEN
        RETURN pg_total_relation_size(copy);
    ELSIF dagapp.copy_aside(wanted, comment) IS NULL THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted,
                                     'the table is more than rows: ' || dagapp.objection_to_table(original));
    ELSIF (SELECT relowner FROM pg_class WHERE oid = original) <> 'graticule_owner'::regrole THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'the table does not belong to graticule_owner');
    ELSIF substring(described FROM 'Content: ([0-9a-f]{64})[.]$') <> dagapp.hash_rows('external', 'making_' || md5(wanted)) THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'its rows are not those that were approved');
    END IF;
    -- An older release replaces a table without its tiles, and a worker could make tiles beside a table that is not its own.
    PERFORM dagapp.copy_aside(tiles, 'Tiles. ' || comment)
    FROM pg_class AS live
    JOIN pg_class AS overview
        ON overview.relname = tiles AND overview.relnamespace = live.relnamespace AND overview.relowner = live.relowner
    WHERE live.oid = original AND obj_description(overview.oid, 'pg_class') = 'Tiles. ' || described;
    EXECUTE format('DROP TABLE IF EXISTS external.%I, external.%I', wanted, tiles);  -- from here on, readers wait
    FOR part IN
        SELECT filled.relname AS name, parts.final
        FROM (VALUES (wanted), (tiles)) AS parts (final)
        JOIN pg_class AS filled
            ON filled.relname = 'making_' || md5(parts.final) AND filled.relnamespace = 'external'::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE external.%I RENAME TO %I', part.name, part.final);
    END LOOP;
    RETURN pg_total_relation_size(to_regclass(format('external.%I', wanted)));
END $$;

-- Drop a copy for the public, with its tiles, in the name of a job that a decision on its asset has started.
CREATE OR REPLACE FUNCTION dagapp.drop_copy(of_job text, wanted text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM dagapp.dag_jobs AS job
        WHERE job.job_id = of_job AND job.status IN ('pending', 'running')
          AND job.purpose IN ('export', 'reversal', 'unpublish')
          AND starts_with(
              obj_description(to_regclass(format('external.%I', wanted)), 'pg_class'),
              format('Public copy of asset %s, version %s', job.asset_id,
                     CASE WHEN job.purpose <> 'unpublish' THEN job.version_ordinal || ', ' END)
          )
    ) THEN
        PERFORM dagapp.refuse_output(of_job, 'copy', wanted, 'it is no copy of the version that the job works on');
    END IF;
    EXECUTE format('DROP TABLE external.%I', wanted);
    EXECUTE format('DROP TABLE IF EXISTS external.%I', 'tiles_' || md5(wanted));
END $$;

-- The jobs at work that may write a collection of an asset: the one that processes a version, for what its inputs name, and
-- those that publish or withdraw, for copies.
DROP FUNCTION IF EXISTS dagapp.writers_of_collection(text);
CREATE OR REPLACE FUNCTION dagapp.writers_of_collection(wanted text)
RETURNS TABLE (asset_id text, version_ordinal int, purpose dagapp.job_purpose, input_params jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT asset_id, version_ordinal, purpose, input_params FROM dagapp.dag_jobs
    WHERE asset_id = dagapp.owner_of_collection(wanted) AND status IN ('pending', 'running')
      AND dagapp.objection_to_output(job_id, 'collection', wanted) IS NULL
$$;

-- The asset in whose name an orchestrator carries out a decision in this transaction; a worker cannot say that it does.
CREATE OR REPLACE FUNCTION dagapp.decided_asset() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN pg_has_role(caller, 'graticule_orchestrator', 'MEMBER') OR pg_has_role(caller, 'graticule_owner', 'MEMBER')
        THEN coalesce(current_setting('graticule.asset_id', true), '')
        ELSE ''
    END
    FROM coalesce(nullif(current_setting('role'), 'none')::name, session_user) AS caller  -- the current user is the owner
$$;

-- Whoever writes collections or items of an asset is a job of that asset, or an orchestrator that carries out a decision on
-- it. A transaction that names its job is held to it. One of a process of an older release names none: then a job must be
-- at work that may write them.
CREATE OR REPLACE FUNCTION dagapp.require_collections(wanted text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named text := nullif(current_setting('graticule.job_id', true), '');
    refused record;
BEGIN
    SELECT collection, reason INTO refused
    FROM unnest(wanted) AS collection, dagapp.owner_of_collection(collection) AS owner,
         LATERAL (SELECT CASE
             WHEN named IS NOT NULL THEN dagapp.objection_to_output(named, 'collection', collection)
             WHEN owner <> dagapp.decided_asset() AND NOT EXISTS (SELECT FROM dagapp.writers_of_collection(collection))
             THEN 'it belongs to an asset, and no job of the asset is at work on it'
         END AS reason) AS checked
    WHERE reason IS NOT NULL
    LIMIT 1;
    IF FOUND THEN
        PERFORM dagapp.refuse_output(coalesce(named, '(none)'), 'collection', refused.collection, refused.reason);
    END IF;
END $$;

-- Delete a collection that has no items. pgstac's own function runs as its administrator, whom the triggers do not ask.
CREATE OR REPLACE FUNCTION dagapp.delete_collection(wanted text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dagapp.require_collections(ARRAY[wanted]);
    IF EXISTS (SELECT FROM pgstac.items WHERE collection = wanted) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'GR001',
            MESSAGE = format('The collection %L still has items and is not deleted.', left(wanted, 200)),
            HINT = 'Delete its items first.';
    END IF;
    PERFORM pgstac.delete_collection(wanted);
END $$;

-- What the items of the version that a job works on are called, in the catalog and among the copies for the public: so, or so
-- with a revision or the part of a mosaic behind it.
CREATE OR REPLACE FUNCTION dagapp.item_names_of_job(of_asset text, ordinal int, inputs jsonb) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(DISTINCT regexp_replace(name, '-r[0-9]+$', '')) FROM (
        SELECT inputs ->> 'stac_item_id' AS name
        UNION ALL
        SELECT stac_item_id FROM dagapp.asset_versions WHERE asset_id = of_asset AND version_ordinal = ordinal
        UNION ALL
        SELECT outputs ->> 'stac_item_id' FROM dagapp.asset_revisions
        WHERE asset_id = of_asset AND version_ordinal = ordinal
    ) AS names
    WHERE name IS NOT NULL
$$;

-- A collection has the items of all versions of a dataset: a job that processes or publishes a version writes those of this
-- one only, and one that withdraws writes none.
CREATE OR REPLACE FUNCTION dagapp.job_writes_item(
    purpose dagapp.job_purpose, inputs jsonb, names text[], change text, collection text, item text
) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN purpose = 'process' THEN dagapp.job_names_output(purpose, inputs, 'item', concat(collection, '/', item))
        WHEN purpose = 'unpublish' THEN change = 'DELETE'
        ELSE (purpose = 'export' OR change = 'DELETE')
            AND EXISTS (SELECT FROM unnest(names) AS name WHERE item = name OR starts_with(item, name || '-'))
    END
$$;

CREATE OR REPLACE FUNCTION dagapp.check_written_items() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named text := nullif(current_setting('graticule.job_id', true), '');
    refused text;
BEGIN
    PERFORM dagapp.require_collections(ARRAY(SELECT DISTINCT collection FROM written));
    WITH writers AS MATERIALIZED (
        SELECT collection, job.purpose, job.input_params,
               dagapp.item_names_of_job(job.asset_id, job.version_ordinal, job.input_params) AS names
        FROM (SELECT DISTINCT collection FROM written) AS collections,
             LATERAL (
                 SELECT asset_id, version_ordinal, purpose, input_params FROM dagapp.dag_jobs WHERE job_id = named
                 UNION ALL
                 SELECT asset_id, version_ordinal, purpose, input_params FROM dagapp.writers_of_collection(collection)
                 WHERE named IS NULL AND asset_id <> dagapp.decided_asset()
             ) AS job
        WHERE asset_id IS NOT NULL
    )
    SELECT concat(collection, '/', id) INTO refused
    FROM written
    WHERE EXISTS (SELECT FROM writers WHERE writers.collection = written.collection)
      AND NOT EXISTS (
          SELECT FROM writers
          WHERE writers.collection = written.collection
            AND dagapp.job_writes_item(purpose, input_params, names, TG_OP, written.collection, id)
      )
    LIMIT 1;
    IF FOUND THEN
        PERFORM dagapp.refuse_output(coalesce(named, '(none)'), 'item', refused,
                                     'it is not an output of the version that the job works on');
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dagapp.check_written_collections() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dagapp.require_collections(ARRAY(SELECT id FROM written));
    RETURN NULL;
END $$;

-- Which of the partitions of a collection a search reads.
CREATE OR REPLACE FUNCTION dagapp.check_written_parts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dagapp.require_collections(ARRAY(SELECT DISTINCT collection FROM written WHERE collection IS NOT NULL));
    RETURN NULL;
END $$;

-- The names of a partner's outputs begin with its platform, which must not look like the namespace of hand-made jobs. A
-- platform that is older than this rule stays as it is.
CREATE OR REPLACE FUNCTION dagapp.check_platform_id() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'check_violation',
        MESSAGE = format('A platform cannot be named %s: outputs of hand-made jobs begin with "direct".', NEW.platform_id);
END $$;

DROP TRIGGER IF EXISTS platform_id_not_direct ON dagapp.platforms;
CREATE TRIGGER platform_id_not_direct BEFORE INSERT OR UPDATE OF platform_id ON dagapp.platforms
FOR EACH ROW WHEN (NEW.platform_id ~ '^direct(_|$)') EXECUTE FUNCTION dagapp.check_platform_id();

DO $$
DECLARE
    ours regprocedure;
BEGIN
    FOR ours IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'dagapp'::regnamespace AND proowner = 'graticule_owner'::regrole
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', ours);
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION dagapp.require_outputs(text, text, text[]), dagapp.promote_table(text, text),
                          dagapp.hash_rows(text, text), dagapp.fault_of_table(text, text, bigint),
                          dagapp.objection_to_table(oid), dagapp.is_plain_table(oid),
                          dagapp.make_copy(text, text), dagapp.drop_copy(text, text),
                          dagapp.hash_item(text, text), dagapp.recorded_item_hash(text)
TO graticule_worker, graticule_orchestrator;
GRANT EXECUTE ON FUNCTION dagapp.delete_collection(text) TO graticule_worker;
GRANT EXECUTE ON FUNCTION dagapp.hash_table(text, text) TO graticule_orchestrator;

RESET ROLE;

-- Once for each statement, however many items it writes. What pgstac does as its own administrator is not asked.
DO $$
DECLARE
    checked record;
BEGIN
    FOR checked IN
        SELECT * FROM (VALUES
            ('items', 'INSERT', 'NEW', 'check_written_items'),
            ('items', 'DELETE', 'OLD', 'check_written_items'),
            ('collections', 'INSERT', 'NEW', 'check_written_collections'),
            ('collections', 'UPDATE', 'OLD', 'check_written_collections'),  -- or it could be renamed
            ('collections', 'UPDATE', 'NEW', 'check_written_collections'),
            ('partition_stats', 'INSERT', 'NEW', 'check_written_parts'),
            ('partition_stats', 'UPDATE', 'OLD', 'check_written_parts'),
            ('partition_stats', 'UPDATE', 'NEW', 'check_written_parts')
        ) AS triggers (table_name, change, rows, function),
        LATERAL (SELECT 'graticule_' || lower(change) || CASE change || rows WHEN 'UPDATEOLD' THEN '_old' ELSE '' END)
            AS named (name)
    LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS %I ON pgstac.%I', checked.name, checked.table_name);
        EXECUTE format(
            'CREATE TRIGGER %I AFTER %s ON pgstac.%I REFERENCING %s TABLE AS written FOR EACH STATEMENT
             WHEN (NOT pg_has_role(current_user, ''pgstac_admin'', ''MEMBER''))
             EXECUTE FUNCTION dagapp.%I()',
            checked.name, checked.change, checked.table_name, checked.rows, checked.function
        );
    END LOOP;
END $$;
