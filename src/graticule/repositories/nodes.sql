-- name: list_nodes
SELECT * FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id IS NOT DISTINCT FROM %(parent_node_id)s
ORDER BY fan_out_index, node_id;
