"""L3: where the tasks of a job live."""
