"""What a job would do, with nothing of it started: `akrunner.plan`.

::

    arguments --> checked (akrunner.prepare) --> making --> plan: what there is to say, and its lines
                                                  known: rows, nulls and Keras, as far as they are known already
                                                  tasks: every process; likely: what is likely to go wrong

`akrunner.serving.planned` does the same for a prediction, and shares `tasks`, `known` and `text`.
"""
