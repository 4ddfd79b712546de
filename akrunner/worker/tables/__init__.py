"""Tables a script asks for, by name: PAI's readers and writers.

::

    install     at the task's start, where the job has tables: the broker, PAI's modules, PAI's names in TensorFlow once that is imported
    broker      asks the host over the task's pipe, in the task's process; spools what comes
    sharing     a Unix socket by which processes that the script has forked ask the broker
    asking      who is asked: the broker, or from a child the socket
    rows        one range of one table: chunks in a spool; columns of them
    reader      TableReader          writer  TableWriter         dataset  TableRecordDataset
    values      what a writer is given -> columns
    queues      TableRecordReader    work    WorkQueue           errors   what they raise
"""
