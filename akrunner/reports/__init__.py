"""The report of a run: one HTML page that needs nothing else, also no network.

::

    run.json                     -> `facts`     what ran, how it ended, why it failed; the tables
    metrics.jsonl                -> `curves`    }
    states.jsonl, progress.jsonl -> `timeline`  } -> `plots`: what is drawn, and the same in numbers
    progress.jsonl               -> `usage`     }
    logs/                        -> `facts`
                                                -> `page`: Jinja's template, Vega's library and the data, in one file

What a script has printed or named comes into the page only through Jinja, which escapes it, or as JSON in which no tag can end; and the
page forbids its browser to run any other script than its own, or to load anything.
"""
