"""What a job would do, with nothing of it started: `akrunner.plan`.

::

    arguments --> checked (akrunner.prepare) --> making: Plan --> text
                                                  known: rows and nulls that a file's end tells; tasks: every process
                                                  likely: what is likely to go wrong

`akrunner.serving.planned` does the same for a prediction, and shares `tasks`, `known` and `text`.
"""
