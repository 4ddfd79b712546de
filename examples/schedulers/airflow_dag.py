"""A job every night by Airflow 3: put this file into its folder of DAGs. Try it without a scheduler: python airflow_dag.py

akrunner need not be installed beside Airflow: AKRUNNER names its command, and DATA the directory of script and table.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from datetime import datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

#: failures that would only happen again: an argument, a value that cannot be converted, somebody's wish. Leave 2 out if the job reads or writes a
#: server, which may be away before the start
FINAL = (2, 143)


@dag(schedule="0 2 * * *", start_date=datetime(2026, 1, 1), catchup=False)
def nightly():
    @task(retries=2, retry_delay=timedelta(minutes=10), execution_timeout=timedelta(hours=2))
    def score():
        command = [*shlex.split(os.environ.get("AKRUNNER", "akrunner")), "run", "score.py", "--input", "table.csv"]
        command += ["--output", "scored.parquet", "--overwrite", "--timeout", "3600", "--json"]
        # stderr goes to the task's log
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=os.environ.get("DATA", "."))
        told = json.loads(done.stdout)
        if not told["ok"]:
            failed = AirflowFailException if done.returncode in FINAL else AirflowException
            raise failed(f"{told['error']}: {told['message']}")
        # the next task gets this
        return {"output": told["output"], "rows": told["rows_out"], "run": told["run"]}

    @task
    def publish(scored: dict):
        print(f"{scored['rows']} rows in {scored['output']}")

    publish(score())


made = nightly()

if __name__ == "__main__":
    print(made.test().state)
