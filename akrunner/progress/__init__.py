"""What displays show of a running job: a terminal, a notebook, a report. Values only: nothing here prints, waits or reads a clock.

::

    Progress (engines), now -> Follower -> View: metrics, share, rates, time left, tasks that differ
                                           View -> words: a line of text;  events: a JSON object
"""
