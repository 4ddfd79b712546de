"""The names that scripts import from Deep Learning on Flink, backed by the task that this process runs."""
