"""The input doctor's worker half: how long the script waits for its input, and for what.

::

    hooks      next() of iterators, calls of tf.function and of sessions, in whatever way a script reads  ->  meter
    timing     one of these calls, timed; time that goes into something else (`saves`: checkpoints)
    drawing    which runs of a session draw from an iterator, which are fed, and which only initialize
    meter      time in next() against the time between                                                   ->  the task's record
    ways       the time of each way of reading, and of each function it calls
    looks      on request only: when a few steps are looked at
    tracing    TensorFlow's own profiler around these steps -> events
    nodes      events of Iterator:: nodes -> each node's own time
    naming     errors name the script's lines, and none of these; shown: what tracebacks show
    pipeline   the script's datasets: what each is, and on which line it was made

It observes: no operation is added to a graph, no seed is drawn, and what goes wrong here is never the script's fault.
"""
