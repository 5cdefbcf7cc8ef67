-- What the database has. The search path is empty while these run, so that every name comes back qualified.

-- name: schemas
SELECT nspname AS name FROM pg_namespace WHERE nspname = ANY (%(schemas)s);

-- name: enums
SELECT t.typname AS name, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels
FROM pg_type t
JOIN pg_enum e ON e.enumtypid = t.oid
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = ANY (%(schemas)s)
GROUP BY t.typname;

-- name: tables
SELECT c.relname AS name, c.relispartition AS is_partition, pg_get_partkeydef(c.oid) AS partition_key,
       obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p');

-- name: columns
SELECT c.relname AS table_name, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       NOT a.attnotnull AS nullable, pg_get_expr(d.adbin, d.adrelid) AS default_expression,
       a.attidentity <> '' AS identity, col_description(c.oid, a.attnum) AS comment
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND a.attnum > 0 AND NOT a.attisdropped;

-- name: constraints
-- NOT NULL is a property of the column here, although newer servers list it as a constraint too.
SELECT c.relname AS table_name, k.conname AS name, pg_get_constraintdef(k.oid) AS definition
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (%(schemas)s) AND NOT c.relispartition AND k.contype IN ('c', 'f', 'p', 'u', 'x');

-- name: indexes
-- An index that backs a constraint is told of by the constraint.
SELECT i.relname AS name, c.relname AS table_name, pg_get_indexdef(i.oid) AS definition, x.indisvalid AS valid,
       obj_description(i.oid, 'pg_class') AS comment
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class c ON c.oid = x.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (%(schemas)s) AND NOT c.relispartition
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x'));

-- name: grants
-- On tables, on single columns, and on the schemas; what everyone was granted, our roles were granted too.
SELECT c.relname AS name, c.relname AS table_name, acl.privilege_type AS privilege,
       CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END AS role
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL aclexplode(c.relacl) acl
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND acl.grantee <> c.relowner
UNION ALL
SELECT c.relname || '.' || a.attname, c.relname, acl.privilege_type,
       CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL aclexplode(a.attacl) acl
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND acl.grantee <> c.relowner
UNION ALL
SELECT n.nspname, NULL, acl.privilege_type,
       CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
FROM pg_namespace n
CROSS JOIN LATERAL aclexplode(n.nspacl) acl
WHERE n.nspname = ANY (%(schemas)s) AND acl.grantee <> n.nspowner;

-- name: sizes
-- Tables with their sizes; the row count is the planner's estimate, summed over partitions.
SELECT n.nspname AS schema, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment,
       (SELECT count(*) FROM pg_index x WHERE x.indrelid = c.oid) AS indexes,
       tree.bytes, tree.estimate
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS bytes,
           coalesce(sum(greatest(leaf.reltuples, 0)), 0)::bigint AS estimate
    FROM (SELECT c.oid AS relid UNION SELECT part.relid FROM pg_partition_tree(c.oid) part) tree
    JOIN pg_class leaf ON leaf.oid = tree.relid
) tree
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY n.nspname, c.relname;
