"""On a TaskManager's machine, in Flink's Python: the agent beside each subtask, and the way to a detached job's host there."""
