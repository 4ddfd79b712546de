"""The names of the Flink-AI-Extended framework that Alink's own package imports, backed by the task this process runs."""
