"""Tables by name, `odps://project/tables/t/pt=v`: their names and types, the stores that keep them, and SQL over them.

::

    names, types, ddl       parse and write the name of a table, a column type, a CREATE TABLE
    store                   the interface of every store of tables
    local, chosen           the store on this machine's disk; the choice of the store for a project
    local_reading, local_output, layout, renames, waiting
                            the parts of the local store
    maxcompute, maxcompute_reading, maxcompute_output
                            tables in MaxCompute
    statements              the statements in a file for MaxCompute's client; `sqltext` splits them into tokens
    altering, insert, clauses, tunnel
                            run single statements
    sql                     queries, run by DuckDB: `functions`, `meaning` and `refused` translate between it and MaxCompute
    foreseen, rehearsed     find what a run of statements would refuse, without a change to the tables
    opening, asked          a table as a job's input and output; the tables that a script asks for by itself
    files, making           files <-> tables; outputs that also create their table
    shown, grid             values as people see them; tables laid out for a terminal
    oss                     `oss://bucket/path` -> a directory of this machine
    credentials             finds the credentials for MaxCompute and OSS
    buckets                 a job's directories in OSS: `objects` is one bucket, `mirror` copies down, `upload` copies up
"""
