"""`akrunner.plan`: what a job would do, without starting anything of it.

::

    arguments --> checked (akrunner.prepare) --> making --> plan: the plan, and its lines of text
                                                  known: number of rows and nulls, and Keras, as far as they are known already
                                                  tasks: every process; likely: what is likely to go wrong

`akrunner.serving.planned` does the same for a prediction, and shares `tasks`, `known` and `text`.
"""
