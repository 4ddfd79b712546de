"""Tables by name, `odps://project/tables/t/pt=v`: what they are called and made of, where they are kept, and SQL over them.

::

    names, types, ddl       words: of a table, of a type, of the statement that makes one
    store                   what keeps tables, as everybody uses it
    local, chosen           the one on this machine's disk; which one a project's tables are in
    statements              what a file for MaxCompute's client holds
    opening                 a table as a job's input and output
    oss                     `oss://bucket/path` -> a directory of this machine
    credentials             of MaxCompute and OSS: where they are found
    maxcompute, ..._reading, ..._output tables in MaxCompute
    buckets                 a job's places in OSS: `objects` one bucket, `mirror` down, `upload` up
"""
