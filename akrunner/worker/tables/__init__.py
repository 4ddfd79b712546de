"""Tables that a script asks for by name: PAI's readers and writers.

::

    install     at the start of a task whose job has tables: makes the broker, puts PAI's modules on the module path, and PAI's
                names into TensorFlow once that is imported
    broker      asks the host over the task's pipe, in the task's process; spools the rows that come
    sharing     a Unix socket through which processes that the script has forked ask the broker
    asking      finds whom to ask: the broker, or in a child process the socket
    rows        one range of one table: its chunks in a spool, and their columns
    reader      TableReader          writer  TableWriter         dataset  TableRecordDataset
    values      the values that a writer is given -> columns
    queues      TableRecordReader    work    WorkQueue           errors   their exceptions
"""
