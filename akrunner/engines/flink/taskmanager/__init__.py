"""The code on a TaskManager's machine, in Flink's Python: the agent beside each subtask, and the connection to a detached
job's host there."""
