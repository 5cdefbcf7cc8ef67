-- Assets, versions and requests as people read them. The statements of lists are planned for the values at hand: a
-- filter that is not given is folded away, and the planner sees whether what is sought is rare (it goes from the index
-- of the filter to the assets) or common (it walks the assets from the newest and stops when the page is full). Each
-- page is found first; then every asset of it is given its newest live version.

-- name: words_sought
-- Each word must be there, the last one as a beginning. NULL when the text has no word at all.
SELECT CASE
    WHEN numnode(plainto_tsquery('simple', %(last)s)) = 0 THEN nullif(plainto_tsquery('simple', %(others)s)::text, '')
    ELSE (plainto_tsquery('simple', %(others)s)
          && (replace(plainto_tsquery('simple', %(last)s)::text, ''' & ''', ''':* & ''') || ':*')::tsquery)::text
END AS words;

-- name: assets_by_themselves
WITH page AS (
    SELECT * FROM dagapp.geospatial_assets AS asset
    WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
      AND (%(refs)s::jsonb IS NULL OR platform_refs @> %(refs)s)
      AND (%(data_type)s::dagapp.data_type IS NULL OR data_type = %(data_type)s)
      AND (%(clearance_state)s::dagapp.clearance_state IS NULL OR clearance_state = %(clearance_state)s)
      AND (%(with_deleted)s OR deleted_at IS NULL)
      AND (created_at, asset_id)
          < (coalesce(%(before_created_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''))
    ORDER BY created_at DESC, asset_id DESC
    LIMIT %(limit)s
)
SELECT page.*, newest.summary AS newest_version
FROM page LEFT JOIN LATERAL (
    SELECT to_jsonb(live) AS summary FROM dagapp.asset_versions AS live
    WHERE live.asset_id = page.asset_id AND live.deleted_at IS NULL
    ORDER BY version_ordinal DESC LIMIT 1
) AS newest ON true
ORDER BY page.created_at DESC, page.asset_id DESC;

-- name: assets_by_versions
-- Assets of which one live version has all that is asked of versions. A version that lies across the antimeridian is
-- kept as all around the earth by the index, and looked at more closely here.
WITH page AS (
    SELECT * FROM dagapp.geospatial_assets AS asset
    WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
      AND (%(refs)s::jsonb IS NULL OR platform_refs @> %(refs)s)
      AND (%(data_type)s::dagapp.data_type IS NULL OR data_type = %(data_type)s)
      AND (%(clearance_state)s::dagapp.clearance_state IS NULL OR clearance_state = %(clearance_state)s)
      AND (%(with_deleted)s OR deleted_at IS NULL)
      AND (created_at, asset_id)
          < (coalesce(%(before_created_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''))
      AND EXISTS (
          SELECT FROM dagapp.asset_versions AS version
          WHERE version.asset_id = asset.asset_id AND version.deleted_at IS NULL
            AND (%(processing_state)s::dagapp.processing_state IS NULL OR processing_state = %(processing_state)s)
            AND (%(approval_state)s::dagapp.approval_state IS NULL OR approval_state = %(approval_state)s)
            AND (%(has_failed)s::boolean IS NULL OR (processing_state = 'failed') = %(has_failed)s)
            AND (%(box)s::box IS NULL OR (
                bbox IS NOT NULL
                AND (box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                         point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4])) && %(box)s::box
                     OR box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                            point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4])) && %(other_box)s::box)
                AND (bbox[1] <= bbox[3] OR bbox[1] <= %(east)s OR bbox[3] >= %(west)s))))
    ORDER BY created_at DESC, asset_id DESC
    LIMIT %(limit)s
)
SELECT page.*, newest.summary AS newest_version
FROM page LEFT JOIN LATERAL (
    SELECT to_jsonb(live) AS summary FROM dagapp.asset_versions AS live
    WHERE live.asset_id = page.asset_id AND live.deleted_at IS NULL
    ORDER BY version_ordinal DESC LIMIT 1
) AS newest ON true
ORDER BY page.created_at DESC, page.asset_id DESC;

-- name: assets_by_text
-- Assets whose refs have the words, and those whose live versions are described with them: of each the newest, and of
-- both together the newest again. Versions are asked for one asset at a time (an EXISTS could become a table of all).
WITH found AS (
    (
        SELECT created_at, asset_id FROM dagapp.geospatial_assets AS asset
        WHERE to_tsvector('simple'::regconfig, platform_refs) @@ %(words)s::tsquery
          AND (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
          AND (%(refs)s::jsonb IS NULL OR platform_refs @> %(refs)s)
          AND (%(data_type)s::dagapp.data_type IS NULL OR data_type = %(data_type)s)
          AND (%(clearance_state)s::dagapp.clearance_state IS NULL OR clearance_state = %(clearance_state)s)
          AND (%(with_deleted)s OR deleted_at IS NULL)
          AND (created_at, asset_id)
              < (coalesce(%(before_created_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''))
          AND (NOT %(of_versions)s OR (
              SELECT true FROM dagapp.asset_versions AS version
              WHERE version.asset_id = asset.asset_id AND version.deleted_at IS NULL
                AND (%(processing_state)s::dagapp.processing_state IS NULL OR processing_state = %(processing_state)s)
                AND (%(approval_state)s::dagapp.approval_state IS NULL OR approval_state = %(approval_state)s)
                AND (%(has_failed)s::boolean IS NULL OR (processing_state = 'failed') = %(has_failed)s)
                AND (%(box)s::box IS NULL OR (
                    bbox IS NOT NULL
                    AND (box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                             point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4])) && %(box)s::box
                         OR box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                                point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4]))
                            && %(other_box)s::box)
                    AND (bbox[1] <= bbox[3] OR bbox[1] <= %(east)s OR bbox[3] >= %(west)s)))
              LIMIT 1))
        ORDER BY created_at DESC, asset_id DESC
        LIMIT %(limit)s
    )
    UNION
    (
        SELECT created_at, asset_id FROM dagapp.geospatial_assets AS asset
        WHERE EXISTS (
              SELECT FROM dagapp.layer_metadata AS layer
              JOIN dagapp.asset_versions AS described USING (asset_id, version_ordinal)
              WHERE layer.asset_id = asset.asset_id AND described.deleted_at IS NULL
                AND to_tsvector('simple'::regconfig, coalesce(title, '') || ' ' || coalesce(description, ''))
                    @@ %(words)s::tsquery)
          AND (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
          AND (%(refs)s::jsonb IS NULL OR platform_refs @> %(refs)s)
          AND (%(data_type)s::dagapp.data_type IS NULL OR data_type = %(data_type)s)
          AND (%(clearance_state)s::dagapp.clearance_state IS NULL OR clearance_state = %(clearance_state)s)
          AND (%(with_deleted)s OR deleted_at IS NULL)
          AND (created_at, asset_id)
              < (coalesce(%(before_created_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''))
          AND (NOT %(of_versions)s OR (
              SELECT true FROM dagapp.asset_versions AS version
              WHERE version.asset_id = asset.asset_id AND version.deleted_at IS NULL
                AND (%(processing_state)s::dagapp.processing_state IS NULL OR processing_state = %(processing_state)s)
                AND (%(approval_state)s::dagapp.approval_state IS NULL OR approval_state = %(approval_state)s)
                AND (%(has_failed)s::boolean IS NULL OR (processing_state = 'failed') = %(has_failed)s)
                AND (%(box)s::box IS NULL OR (
                    bbox IS NOT NULL
                    AND (box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                             point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4])) && %(box)s::box
                         OR box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),
                                point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4]))
                            && %(other_box)s::box)
                    AND (bbox[1] <= bbox[3] OR bbox[1] <= %(east)s OR bbox[3] >= %(west)s)))
              LIMIT 1))
        ORDER BY created_at DESC, asset_id DESC
        LIMIT %(limit)s
    )
    ORDER BY created_at DESC, asset_id DESC
    LIMIT %(limit)s
)
SELECT asset.*, newest.summary AS newest_version
FROM found JOIN dagapp.geospatial_assets AS asset USING (asset_id)
LEFT JOIN LATERAL (
    SELECT to_jsonb(live) AS summary FROM dagapp.asset_versions AS live
    WHERE live.asset_id = found.asset_id AND live.deleted_at IS NULL
    ORDER BY version_ordinal DESC LIMIT 1
) AS newest ON true
ORDER BY found.created_at DESC, found.asset_id DESC;

-- name: asset_with_newest_version
SELECT asset.*, newest.summary AS newest_version
FROM dagapp.geospatial_assets AS asset
LEFT JOIN LATERAL (
    SELECT to_jsonb(live) AS summary FROM dagapp.asset_versions AS live
    WHERE live.asset_id = asset.asset_id AND live.deleted_at IS NULL
    ORDER BY version_ordinal DESC LIMIT 1
) AS newest ON true
WHERE asset.asset_id = %(asset_id)s;

-- name: newest_versions_of_asset
SELECT * FROM dagapp.asset_versions
WHERE asset_id = %(asset_id)s AND version_ordinal < coalesce(%(before)s::int, 2147483647)
ORDER BY version_ordinal DESC
LIMIT %(limit)s;

-- name: versions_in_service
-- Those that the addresses of their asset reach.
SELECT version.*
FROM dagapp.asset_versions AS version JOIN dagapp.geospatial_assets AS asset USING (asset_id)
WHERE version.asset_id = %(asset_id)s AND version_ordinal < coalesce(%(before)s::int, 2147483647)
  AND approved_revision IS NOT NULL AND version.deleted_at IS NULL AND asset.deleted_at IS NULL
  AND (url_mode = 'all_versions' OR version_ordinal = latest_approved_version_ordinal)
ORDER BY version_ordinal DESC
LIMIT %(limit)s;

-- name: versions_that_wait
-- For a decision, the longest first.
SELECT asset.asset_id, asset.platform_id, platform_refs, data_type, clearance_state, latest_approved_version_ordinal,
       asset.version AS asset_version, version.version_ordinal, version_label, version.revision, approved_revision, bbox,
       validation, content_hash, output_hash, layer.title,
       request.submitted_by, request.request_body -> 'submission' ->> 'clearance_level' AS clearance_requested,
       coalesce(processing_completed_at, version.updated_at) AS waiting_since
FROM dagapp.asset_versions AS version
JOIN dagapp.geospatial_assets AS asset USING (asset_id)
LEFT JOIN dagapp.layer_metadata AS layer
    ON layer.asset_id = version.asset_id AND layer.version_ordinal = version.version_ordinal
LEFT JOIN dagapp.platform_requests AS request ON request.request_id = version.last_request_id
WHERE approval_state = 'pending_review' AND processing_state = 'completed'
  AND version.deleted_at IS NULL AND asset.deleted_at IS NULL
  AND (coalesce(processing_completed_at, version.updated_at), version.asset_id, version.version_ordinal)
      > (coalesce(%(after_at)s::timestamptz, '-infinity'), coalesce(%(after_asset_id)s::text, ''),
         coalesce(%(after_ordinal)s::int, 0))
ORDER BY coalesce(processing_completed_at, version.updated_at), version.asset_id, version.version_ordinal
LIMIT %(limit)s;

-- name: version_of_asset
SELECT * FROM dagapp.asset_versions WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s;

-- name: superseded_revisions
SELECT * FROM dagapp.asset_revisions
WHERE asset_id = %(asset_id)s
  AND version_ordinal = coalesce(%(version_ordinal)s, version_ordinal)
  AND (version_ordinal, revision) < (coalesce(%(before_ordinal)s::int, 2147483647), coalesce(%(before_revision)s::int, 0))
ORDER BY version_ordinal DESC, revision DESC
LIMIT %(limit)s;

-- name: history_of_asset
SELECT * FROM dagapp.dag_job_events
WHERE asset_id = %(asset_id)s AND event_id > %(after)s
  AND (%(types)s::dagapp.event_type[] IS NULL OR event_type = ANY (%(types)s::dagapp.event_type[]))
ORDER BY event_id
LIMIT %(limit)s;

-- name: newest_request_of_asset
SELECT request_id FROM dagapp.platform_requests
WHERE asset_id = %(asset_id)s
ORDER BY created_at DESC
LIMIT 1;

-- name: request_of_job
-- The one that the job was made for; of a job that came later (an export, say), the last one for its version.
SELECT coalesce(
    (SELECT request_id FROM dagapp.platform_requests WHERE job_id = %(job_id)s ORDER BY created_at DESC LIMIT 1),
    (SELECT version.last_request_id
     FROM dagapp.dag_jobs AS job JOIN dagapp.asset_versions AS version USING (asset_id, version_ordinal)
     WHERE job.job_id = %(job_id)s)) AS request_id;

-- name: request_processed_by_job
SELECT * FROM dagapp.platform_requests WHERE job_id = %(job_id)s;

-- name: request_by_id
SELECT * FROM dagapp.platform_requests WHERE request_id = %(request_id)s;

-- name: request_with_version_and_asset
-- All from one moment: a request never seems to have ended while its version is under way. A decision is kept by events
-- with the revision that it was about. Whatever was made public or withdrawn is in events, too; what is under way, in
-- jobs. Ids of jobs grow with time.
SELECT to_jsonb(request) AS request, to_jsonb(of_asset) AS version, to_jsonb(asset) AS asset,
       (SELECT to_jsonb(logged) FROM dagapp.asset_revisions AS logged
        WHERE logged.asset_id = request.asset_id AND logged.version_ordinal = request.version_ordinal
          AND logged.revision = request.revision) AS superseded,
       (SELECT jsonb_build_object('request_id', next.request_id, 'revision', next.revision)
        FROM dagapp.platform_requests AS next
        WHERE next.asset_id = request.asset_id AND next.version_ordinal = request.version_ordinal
          AND next.revision > request.revision
        ORDER BY next.revision = of_asset.approved_revision DESC NULLS LAST, next.revision LIMIT 1) AS superseded_by,
       (SELECT to_jsonb(decided) FROM dagapp.dag_job_events AS decided
        WHERE decided.asset_id = request.asset_id AND decided.version_ordinal = request.version_ordinal
          AND decided.event_type IN ('asset_approved', 'asset_rejected', 'asset_revoked')
          AND (decided.data ->> 'revision')::int <= request.revision
        ORDER BY decided.event_id DESC LIMIT 1) AS decision,
       (SELECT to_jsonb(latest) FROM dagapp.asset_versions AS latest
        WHERE latest.asset_id = request.asset_id
          AND latest.version_ordinal = asset.latest_approved_version_ordinal) AS latest,
       coalesce((
           SELECT jsonb_agg(outcome.*)
           FROM (
               SELECT event.event_id, event.job_id, event.event_type, event.created_at AS at,
                      event.data ->> 'error' AS error,
                      coalesce((event.data ->> 'revision')::int, (job.input_params ->> 'revision')::int) AS revision
               FROM dagapp.dag_job_events AS event
               LEFT JOIN dagapp.dag_jobs AS job ON job.job_id = event.job_id
               WHERE event.asset_id = request.asset_id
                 AND (event.version_ordinal = request.version_ordinal
                      AND event.event_type IN ('asset_export_completed', 'asset_export_failed',
                                               'asset_reversal_completed', 'asset_reversal_failed')
                      OR event.event_type IN ('asset_unpublish_completed', 'asset_unpublish_failed'))
               ORDER BY event.event_id DESC
               LIMIT 100
           ) AS outcome
       ), '[]') AS publications,
       (SELECT min(created_at) FROM dagapp.dag_jobs AS job
        WHERE job.asset_id = request.asset_id AND job.version_ordinal = request.version_ordinal
          AND job.purpose = 'export' AND job.status IN ('pending', 'running') AND job.cancel_requested_at IS NULL
          AND (job.input_params ->> 'revision')::int = request.revision) AS exporting_since
FROM dagapp.platform_requests AS request
JOIN dagapp.asset_versions AS of_asset USING (asset_id, version_ordinal)
JOIN dagapp.geospatial_assets AS asset USING (asset_id)
WHERE request.request_id = %(request_id)s;

-- name: list_requests
SELECT * FROM dagapp.platform_requests
WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
  AND (%(asset_id)s::text IS NULL OR asset_id = %(asset_id)s)
  AND (%(status)s::dagapp.request_status IS NULL OR status = %(status)s)
  AND (created_at, request_id) < (coalesce(%(before_created_at)s::timestamptz, 'infinity'),
                                  coalesce(%(before_request_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY created_at DESC, request_id DESC
LIMIT %(limit)s;
