-- name: time
SELECT clock_timestamp() AS now;
