"""What things are: models, enums, ids, transition tables, errors. Imports nothing else of ours."""
