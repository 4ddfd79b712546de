"""PAI's modules `common_io`, `paiio` and `pai`, as its scripts import them.

This directory is on the module path of tasks whose job has tables.
"""
