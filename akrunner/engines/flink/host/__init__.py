"""The code in the process of the job's host, which submits: the engine, its launcher and subtasks, and the requests to a
cluster's REST service."""
