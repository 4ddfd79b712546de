"""Refuses the import of ClusterConfig: it belongs to the program that submits a job, which with akrunner is another one."""

raise ImportError(
    "a ClusterConfig is made by the program that submits a job; with akrunner that one calls akrunner.run(script, table, "
    "num_workers=..., num_ps=..., user_params={...}), and the script needs none"
)
