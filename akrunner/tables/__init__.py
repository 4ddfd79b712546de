"""Tables by name, `odps://project/tables/t/pt=v`: their names and types, the stores that keep them, and SQL over them.

::

    names, types, ddl       parse and write the name of a table, a column type, a CREATE TABLE
    store                   the interface of every store of tables
    local, chosen           the store on this machine's disk; the choice of the store for a project
    statements              the statements in a file for MaxCompute's client
    opening                 a table as a job's input and output
    oss                     `oss://bucket/path` -> a directory of this machine
    credentials             finds the credentials for MaxCompute and OSS
    maxcompute, ..._reading, ..._output tables in MaxCompute
    buckets                 a job's directories in OSS: `objects` is one bucket, `mirror` copies down, `upload` copies up
"""
