-- Where partners had their files before each had a place of its own: for platforms that an older release made.

-- name: used_sources
-- The first folders of the files that were submitted, the last used ones first; a file that lies in none of them counts
-- as its whole container.
SELECT platform_id, sent.container_name || CASE
    WHEN strpos(sent.file_name, '/') > 0 THEN '/' || split_part(sent.file_name, '/', 1) || '/' ELSE '' END AS pattern
FROM dagapp.platform_requests,
     LATERAL jsonb_to_record(request_body -> 'submission') AS sent (container_name text, file_name text)
WHERE sent.container_name <> '' AND sent.file_name <> ''
GROUP BY 1, 2
ORDER BY 1, max(created_at) DESC, 2;

-- name: keep_sources
UPDATE dagapp.platforms SET source_containers = %(patterns)s WHERE platform_id = %(platform_id)s;

-- name: listed_sources
SELECT platform_id, source_containers FROM dagapp.platforms WHERE source_containers IS NOT NULL ORDER BY platform_id;
