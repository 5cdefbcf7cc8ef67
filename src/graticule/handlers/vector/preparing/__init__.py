"""Features on their way from a source to a table or a file: columns named and typed, geometries moved and repaired."""
