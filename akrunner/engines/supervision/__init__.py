"""The decisions about an attempt, as pure functions on values: nothing here starts, waits for, or ends anything.

::

    events    what happened, and when      (`events`)   --->  step (`machine`)  --->  actions   what to do   (`actions`)
                                                              state -> state  (`states`; `stall`: whether anything still moves)

`akrunner.engines.supervisor` has the processes, threads, clock and sinks. It turns what happens into events, and carries
out the actions.
"""
