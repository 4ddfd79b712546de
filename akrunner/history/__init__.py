"""What is kept of every run, in a directory of its own: arguments, versions, numbers, metrics, warnings, logs, the failure.

::

    $XDG_STATE_HOME/akrunner/runs/
        newest                          the number of the newest run
        pruned                          when old runs were last removed
        r42/
            run.json                    `record.Record`: written when the run begins, and again when it has ended
            metrics.jsonl               what the tasks reported, as it came
            progress.jsonl              about once a second: rows, bytes, states, memory and processor time of the tasks
            logs/worker-0/000-0.txt     what a task printed: attempt, and the place of the piece's first byte

Only the user may read it. Nothing here fails a job: what cannot be kept is a warning.
"""
