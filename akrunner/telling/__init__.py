"""Tells other programs of a job: while it runs, and how it has ended.

::

    Telling (`listeners`)      one for each job, from before its arguments are checked to its end
      progress, lines  -->     the user's observer; metrics (a file, a port); logging; spans of OpenTelemetry
      reports          -->     MLflow (`mlflow`)
      result, failure  -->     notify= (`notify`), and all of these

Nothing here decides how a job ends: what cannot be told is a warning. docs/operations.md has it for users.
"""
