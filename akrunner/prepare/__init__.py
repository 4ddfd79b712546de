"""Preparation of a job: from the arguments that the user gives to a `JobSpec` and its table.

Everything that can be known before a process starts is checked here.

::

    arguments --> job: prepare --> Prepared
                  scripts, places, python, schemas: each checks some of the arguments
"""
