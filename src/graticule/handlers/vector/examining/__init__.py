"""What `vector.validate` looks at: one pass over a layer, the report, and the chunks in which it is loaded."""
