"""The names that Alink's own package imports from Flink-AI-Extended's framework, backed by the task that this process runs."""
