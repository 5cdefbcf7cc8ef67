-- Rules of rows that triggers keep, whoever writes: an older release beside this one must not break them. What older
-- releases left otherwise is corrected once, before the trigger is there that keeps it right.

SET LOCAL client_min_messages = warning;
SET LOCAL ROLE graticule_owner;

-- No change of the assets and versions between the correction and the trigger. Jobs first, as in the steps of the engine.
LOCK TABLE dagapp.dag_jobs, dagapp.geospatial_assets, dagapp.asset_versions IN SHARE ROW EXCLUSIVE MODE;

-- Older releases wrote the last change into the columns of the first clearance, and cleared those of the first
-- publication. The history has all changes.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'dagapp.geospatial_assets'::regclass
               AND tgname = 'keep_first_times') THEN
        RETURN;
    END IF;
    WITH change AS (
        SELECT asset_id, event_id, actor, created_at, data ->> 'clearance_state' AS clearance
        FROM dagapp.dag_job_events
        WHERE asset_id IS NOT NULL AND actor IS NOT NULL
          AND event_type IN ('asset_approved', 'asset_clearance_changed')
          AND data ->> 'clearance_state' IS DISTINCT FROM coalesce(data ->> 'clearance_before', data ->> 'before')
    ), noted AS (
        SELECT asset.asset_id, cleared.created_at AS cleared_at, cleared.actor AS cleared_by,
               public.created_at AS public_at, public.actor AS public_by,
               latest.created_at AS latest_at, latest.actor AS latest_by
        FROM dagapp.geospatial_assets AS asset
        LEFT JOIN (SELECT DISTINCT ON (asset_id) * FROM change WHERE clearance <> 'uncleared'
                   ORDER BY asset_id, event_id) AS cleared USING (asset_id)
        LEFT JOIN (SELECT DISTINCT ON (asset_id) * FROM change WHERE clearance = 'public'
                   ORDER BY asset_id, event_id) AS public USING (asset_id)
        LEFT JOIN (SELECT DISTINCT ON (asset_id) * FROM change ORDER BY asset_id, event_id DESC) AS latest
            USING (asset_id)
    )
    UPDATE dagapp.geospatial_assets AS asset
    SET clearance_changed_at = coalesce(noted.latest_at, asset.cleared_at),
        clearance_changed_by = CASE WHEN noted.latest_at IS NULL THEN asset.cleared_by ELSE noted.latest_by END,
        cleared_at = coalesce(noted.cleared_at, asset.cleared_at),
        cleared_by = CASE WHEN noted.cleared_at IS NULL THEN asset.cleared_by ELSE noted.cleared_by END,
        made_public_at = coalesce(noted.public_at, asset.made_public_at),
        made_public_by = CASE WHEN noted.public_at IS NULL THEN asset.made_public_by ELSE noted.public_by END
    FROM noted
    WHERE noted.asset_id = asset.asset_id AND (noted.latest_at IS NOT NULL OR asset.cleared_at IS NOT NULL);
END $$;

CREATE OR REPLACE FUNCTION dagapp.keep_first_times() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.clearance_state <> OLD.clearance_state
       AND NEW.clearance_changed_at IS NOT DISTINCT FROM OLD.clearance_changed_at THEN
        NEW.clearance_changed_at := NEW.updated_at;  -- an older release, which does not know the column
        NEW.clearance_changed_by := NEW.cleared_by;
    END IF;
    IF OLD.cleared_at IS NOT NULL THEN
        NEW.cleared_at := OLD.cleared_at;
        NEW.cleared_by := OLD.cleared_by;
    END IF;
    IF OLD.made_public_at IS NOT NULL THEN
        NEW.made_public_at := OLD.made_public_at;
        NEW.made_public_by := OLD.made_public_by;
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER IF EXISTS keep_first_times ON dagapp.geospatial_assets;
CREATE TRIGGER keep_first_times BEFORE UPDATE OF cleared_at, made_public_at ON dagapp.geospatial_assets
    FOR EACH ROW EXECUTE FUNCTION dagapp.keep_first_times();

-- Four eyes, where the platform wants them: nobody approves what they submitted, and the public sees what two reviewers have
-- approved. What counts is who approved and who submitted the revision in service: `reviewer` and `last_request_id` are
-- about the newest one.

-- Who submitted a revision. One that was processed again has the source, and thus the submitter, of an earlier one; a retry
-- is the same request.
CREATE OR REPLACE FUNCTION dagapp.submitter_of(of_asset text, of_ordinal int, of_revision int) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT submitted_by::text FROM dagapp.platform_requests
    WHERE asset_id = of_asset AND version_ordinal = of_ordinal AND revision <= of_revision
      AND NOT request_body ? 'reprocess'
    ORDER BY revision DESC, created_at DESC
    LIMIT 1
$$;

GRANT EXECUTE ON FUNCTION dagapp.submitter_of(text, int, int) TO graticule_orchestrator;

-- Who approved what is in service already. A second reviewer is known by the endorsement or, of what is public, by the
-- clearance that came after the approval.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'dagapp.asset_versions'::regclass
               AND tgname = 'keep_approvers') THEN
        RETURN;
    END IF;
    UPDATE dagapp.asset_versions AS version
    SET approved_by = noted.approved_by,
        seconded_by = CASE WHEN noted.seconded_by <> noted.approved_by THEN noted.seconded_by END
    FROM (
        SELECT version.asset_id, version.version_ordinal, coalesce(made.reviewer, version.reviewer) AS approved_by,
               CASE WHEN version.endorsed_revision = version.approved_revision
                         AND version.endorsed_by <> coalesce(made.reviewer, version.reviewer) THEN version.endorsed_by
                    WHEN version.exported_revision = version.approved_revision AND asset.clearance_state = 'public'
                         AND asset.clearance_changed_at > coalesce(made.reviewed_at, version.reviewed_at)
                         AND asset.clearance_changed_by IS DISTINCT FROM dagapp.submitter_of(
                             version.asset_id, version.version_ordinal, version.approved_revision)
                    THEN asset.clearance_changed_by END AS seconded_by
        FROM dagapp.asset_versions AS version
        JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = version.asset_id
        LEFT JOIN dagapp.asset_revisions AS made
            ON made.asset_id = version.asset_id AND made.version_ordinal = version.version_ordinal
            AND made.revision = version.approved_revision
        WHERE version.approved_revision IS NOT NULL
    ) AS noted
    WHERE noted.asset_id = version.asset_id AND noted.version_ordinal = version.version_ordinal;
END $$;

-- Whether a job makes of the same content what its reviewer would expect: by a workflow of a release or of an installed
-- package. A file in a folder says itself what its content was, and may read another one each time.
CREATE OR REPLACE FUNCTION dagapp.keeps_approval(of_job text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM dagapp.dag_jobs AS job JOIN dagapp.dag_definitions AS known USING (workflow_hash)
        WHERE job.job_id = of_job AND known.source <> 'folder'
    )
$$;
GRANT EXECUTE ON FUNCTION dagapp.keeps_approval(text) TO graticule_orchestrator;

-- A revision that was made of the same content keeps the approvals of the one before it.
CREATE OR REPLACE FUNCTION dagapp.keep_approvers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    submitter text := dagapp.submitter_of(NEW.asset_id, NEW.version_ordinal, NEW.approved_revision);
    who text;
BEGIN
    IF NEW.approved_revision IS NULL THEN
        NEW.approved_by := NULL;
        NEW.seconded_by := NULL;
    ELSIF NEW.approval_state = 'approved' AND OLD.approval_state <> 'approved' THEN
        who := NEW.reviewer;
        NEW.approved_by := NEW.reviewer;
        NEW.seconded_by := CASE WHEN NEW.endorsed_revision = NEW.approved_revision AND NEW.endorsed_by <> NEW.reviewer
                                     AND NEW.endorsed_by IS DISTINCT FROM submitter THEN NEW.endorsed_by END;
    ELSIF NEW.seconded_by IS DISTINCT FROM OLD.seconded_by THEN
        who := NEW.seconded_by;
    END IF;
    IF who = submitter AND EXISTS (
        SELECT FROM dagapp.geospatial_assets JOIN dagapp.platforms USING (platform_id)
        WHERE asset_id = NEW.asset_id AND four_eyes
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'check_violation',
            MESSAGE = format('%s submitted the revision, and the platform wants another person to approve it.', who);
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER IF EXISTS keep_approvers ON dagapp.asset_versions;
CREATE TRIGGER keep_approvers BEFORE UPDATE OF approval_state, approved_revision, seconded_by ON dagapp.asset_versions
    FOR EACH ROW
    WHEN (NEW.approved_revision IS DISTINCT FROM OLD.approved_revision
          OR NEW.approval_state = 'approved' AND OLD.approval_state <> 'approved'
          OR NEW.seconded_by IS DISTINCT FROM OLD.seconded_by)
    EXECUTE FUNCTION dagapp.keep_approvers();

CREATE OR REPLACE FUNCTION dagapp.check_second_reviewer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    withheld record;
BEGIN
    SELECT version.version_ordinal, version.approved_by, version.seconded_by INTO withheld
    FROM dagapp.asset_versions AS version
    JOIN dagapp.platforms ON platforms.platform_id = NEW.platform_id AND platforms.four_eyes
    WHERE version.asset_id = NEW.asset_id AND version.approved_revision IS NOT NULL AND version.deleted_at IS NULL
      AND (version.version_ordinal = NEW.latest_approved_version_ordinal OR NEW.url_mode = 'all_versions')
      AND (version.seconded_by IS NULL OR NEW.clearance_changed_by = dagapp.submitter_of(
               version.asset_id, version.version_ordinal, version.approved_revision))
    ORDER BY version.version_ordinal DESC
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'check_violation',
            MESSAGE = CASE WHEN withheld.seconded_by IS NULL
                THEN format('Nobody but %s has approved version %s, and the platform wants two reviewers before the public'
                            ' sees it.', coalesce(withheld.approved_by, 'one person'), withheld.version_ordinal)
                ELSE format('%s submitted version %s, and the platform wants another person to make it public.',
                            NEW.clearance_changed_by, withheld.version_ordinal) END;
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER IF EXISTS check_second_reviewer ON dagapp.geospatial_assets;
CREATE TRIGGER check_second_reviewer BEFORE UPDATE OF clearance_state ON dagapp.geospatial_assets FOR EACH ROW
    WHEN (NEW.clearance_state = 'public' AND OLD.clearance_state <> 'public')
    EXECUTE FUNCTION dagapp.check_second_reviewer();

-- Whatever the decision was: what is copied for the public was approved by two.
CREATE OR REPLACE FUNCTION dagapp.check_export() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    approver text;
BEGIN
    SELECT coalesce(version.approved_by, 'one person') INTO approver
    FROM dagapp.asset_versions AS version
    JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = version.asset_id
    JOIN dagapp.platforms ON platforms.platform_id = asset.platform_id AND platforms.four_eyes
    WHERE version.asset_id = NEW.asset_id AND version.version_ordinal = NEW.version_ordinal
      AND version.seconded_by IS NULL;
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'check_violation',
            MESSAGE = format('Nobody but %s has approved version %s, and the platform wants two reviewers before the public'
                             ' sees it.', approver, NEW.version_ordinal);
    END IF;
    RETURN NEW;
END $$;

-- Replaced, and not dropped: that would keep others from reading the jobs.
CREATE OR REPLACE TRIGGER check_export BEFORE INSERT ON dagapp.dag_jobs FOR EACH ROW
    WHEN (NEW.purpose = 'export' AND NEW.status = 'pending')  -- and not one that a restored backup has
    EXECUTE FUNCTION dagapp.check_export();

-- Older releases counted each job of a version, also those that export it. The history has one event for each that
-- processes it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'dagapp.asset_versions'::regclass
               AND tgname = 'count_processing_only') THEN
        RETURN;
    END IF;
    UPDATE dagapp.asset_versions AS version
    SET job_count = counted.jobs
    FROM (
        SELECT asset_id, version_ordinal, count(*) AS jobs FROM dagapp.dag_job_events
        WHERE asset_id IS NOT NULL AND event_type IN ('asset_version_added', 'asset_version_overwritten',
                                                      'asset_version_reprocessed', 'asset_version_retried')
        GROUP BY asset_id, version_ordinal
    ) AS counted
    WHERE counted.asset_id = version.asset_id AND counted.version_ordinal = version.version_ordinal
      AND counted.jobs < version.job_count;
END $$;

CREATE OR REPLACE FUNCTION dagapp.count_processing_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.job_count := OLD.job_count;
    RETURN NEW;
END $$;

-- A job that processes a version becomes its current one in the statement that counts it.
DROP TRIGGER IF EXISTS count_processing_only ON dagapp.asset_versions;
CREATE TRIGGER count_processing_only BEFORE UPDATE OF job_count ON dagapp.asset_versions
    FOR EACH ROW
    WHEN (NEW.job_count > OLD.job_count AND NEW.current_job_id IS NOT DISTINCT FROM OLD.current_job_id)
    EXECUTE FUNCTION dagapp.count_processing_only();

-- A version takes over the outputs that its job was told to make, and no others: a workflow whose result names something
-- else, such as what another asset or a hand-made job has made, fails the version. Its outputs stay as they were.
CREATE OR REPLACE FUNCTION dagapp.admit_own_outputs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    result dagapp.asset_versions := NEW;
    inputs jsonb := (SELECT input_params FROM dagapp.dag_jobs WHERE job_id = NEW.current_job_id);
    blob text := regexp_replace(NEW.blob_path, '^[^/]+/', '');
    foreign_output record;
BEGIN
    SELECT * INTO foreign_output
    FROM (VALUES
        ('table_name', NEW.table_name, 'table_name', NEW.table_name = inputs ->> 'table_name'),
        ('blob_path', NEW.blob_path, 'blob_prefix',
         starts_with(blob, (inputs ->> 'blob_prefix') || '/') AND blob !~ '(^|/)\.{0,2}(/|$)'),
        ('stac_item_id', NEW.stac_item_id, 'stac_item_id', NEW.stac_item_id = inputs ->> 'stac_item_id'),
        ('stac_collection_id', NEW.stac_collection_id, 'stac_collection_id',
         NEW.stac_collection_id = inputs ->> 'stac_collection_id')
    ) AS output (field, name, input, is_own)
    WHERE name IS NOT NULL AND is_own IS NOT TRUE
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN NEW;
    END IF;
    NEW := OLD;
    NEW.processing_state := 'failed';
    NEW.processing_started_at := result.processing_started_at;
    NEW.processing_completed_at := result.processing_completed_at;
    NEW.validation := result.validation;
    NEW.node_summary := result.node_summary;
    NEW.updated_at := result.updated_at;
    NEW.told_error := 'Processing failed for a reason of ours; the operators see it, and can let it go on.';
    NEW.last_error := format(
        'The workflow ended with a result that cannot be kept: %s: %L is not an output of this version. The workflow has'
        ' to declare the input %s, and name its output by it (here: %s).',
        foreign_output.field, left(foreign_output.name, 200), foreign_output.input,
        coalesce(inputs ->> foreign_output.input, 'not declared')
    );
    RETURN NEW;
END $$;

-- Triggers fire in the order of their names: this one before serving's, which renames the item of what comes into service.
DROP TRIGGER IF EXISTS admit_own_outputs ON dagapp.asset_versions;
CREATE TRIGGER admit_own_outputs BEFORE UPDATE OF processing_state ON dagapp.asset_versions
    FOR EACH ROW
    WHEN (NEW.processing_state = 'completed' AND OLD.processing_state <> 'completed')
    EXECUTE FUNCTION dagapp.admit_own_outputs();
