"""In the process of the job's host, which submits: the engine, its launcher and places, what a cluster is asked by its REST service."""
