"""The names of Deep Learning on Flink that its scripts import, backed by the task this process runs."""
