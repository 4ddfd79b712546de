"""What a notebook shows of a running job, in the output of the cell that has called it.

::

    job's thread:  Progress, lines -> JobCell: the newest View, the last lines of each task
    own thread:    twice a second  -> HTML (drawing) -> Live -> the cell's output, in place of what stood there

Nothing is drawn in the thread that runs the job, and what cannot be shown fails nothing. No widgets: a notebook that was saved shows how the
job has ended.
"""
