"""The cluster of a job's tasks: TF_CONFIG from its roles, ports, each task's cores and cards, and which failure is the root
cause.
"""
