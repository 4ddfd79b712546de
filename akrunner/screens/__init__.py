"""Ways to show on stderr how a job gets on: for the command line (`cli/displays`), and for programs that call akrunner (`jobs`).

::

    View (akrunner.progress)   bar: drawn on the terminal, over itself      plain: a line now and then
                               json: an event about every second            none: nothing
"""
