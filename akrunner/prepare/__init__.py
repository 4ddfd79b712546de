"""A job's arguments, as a person gives them -> a `JobSpec` and its table. Everything that can be known before a process starts
is checked here.

::

    arguments --> job: prepare --> Prepared
                  scripts, places, python, schemas: each checks its part
"""
