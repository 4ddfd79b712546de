"""The engines, which run a job's tasks: on this machine (`local`) or on Flink."""
