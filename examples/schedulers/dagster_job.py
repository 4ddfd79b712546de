"""A table that Dagster keeps up to date: `dagster dev -f dagster_job.py`. Try it without a server: python dagster_job.py

akrunner need not be installed beside Dagster: AKRUNNER names its command, and DATA the directory of script and table.
"""

import json
import os
import shlex
import subprocess

import dagster as dg


@dg.asset(retry_policy=dg.RetryPolicy(max_retries=2, delay=600, backoff=dg.Backoff.EXPONENTIAL))
def scored(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The table with a score for each row."""
    command = [*shlex.split(os.environ.get("AKRUNNER", "akrunner")), "run", "score.py", "--input", "table.csv"]
    command += ["--output", "scored.parquet", "--overwrite", "--timeout", "3600", "--json"]
    # stderr goes to the step's log
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=os.environ.get("DATA", "."))
    told = json.loads(done.stdout)
    if not told["ok"]:
        # an argument that is wrong would be wrong again; leave 2 out if a server may be away before the start
        raise dg.Failure(f"{told['error']}: {told['message']}", allow_retries=done.returncode not in (2, 143))
    numbers = {"rows": told["rows_out"], "seconds": told["stats"]["seconds"], "run": told["run"] or "not kept"}
    return dg.MaterializeResult(metadata={"output": dg.MetadataValue.path(told["output"]), **numbers})


defs = dg.Definitions(
    assets=[scored],
    schedules=[dg.ScheduleDefinition(name="nightly", target=scored, cron_schedule="0 2 * * *")],
)

if __name__ == "__main__":
    print(dg.materialize([scored], raise_on_error=False).success)
