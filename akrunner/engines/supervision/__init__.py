"""The supervision of an attempt, as values: nothing here starts, waits for, or ends anything.

::

    events    what happened, and when      (`events`)   --->  step (`machine`)  --->  actions   what is to be done   (`actions`)
                                                              state -> state  (`states`; `stall`: whether anything still moves)

`akrunner.engines.supervisor` has the processes, threads, clock and sinks: it says what happens, and does what is decided.
"""
