"""The input doctor's half in the worker process: measures how long the script waits for its input, and for what.

::

    hooks      calls the meter at next() of iterators, and at calls of tf.function and of sessions, however the script reads
    timing     times one such call; times what is not reading or computing, such as checkpoints (`saves`)
    drawing    tells which runs of a session draw from an iterator, which are fed, and which only initialize
    meter      compares the time in next() with the time between two next(), and makes the task's record
    ways       the time of each way of reading, and of each function that it calls
    lines      samples on which lines of the script Python is
    fits       follows the epochs of Keras's fit(), for who shows how far the script is (`akrunner.worker.reached`)
    python     times the Python code that the input pipeline calls
    looks      on request only: decides which few steps are profiled ("looked at")
    tracing    runs TensorFlow's own profiler around these steps -> events
    nodes      events of the Iterator:: nodes -> each node's own time
    naming     keeps the lines of these modules out of TensorFlow's errors; `shown`: and out of tracebacks
    pipeline   the script's datasets: what each of them is, and on which line it was made

These modules only observe: they add no operation to a graph, and draw no seed; an error of theirs never makes the script fail.
"""
