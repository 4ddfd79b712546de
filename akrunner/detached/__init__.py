"""Jobs that continue without the process that submitted them: the host is a process beside one of the job's own subtasks,
on a Flink cluster.

    >>> job = detached.submit("train.py", "s3://bucket/iris.parquet", engine=FlinkEngine("cluster:8081"),
    ...                       output="s3://bucket/out.parquet", output_schema="id bigint, p double", num_workers=2)
    >>> detached.status("cluster:8081", job.id).state

The job's input and output must be reachable from all machines of the cluster under the same names; the script and its files
travel with the job.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from akrunner.detached.jobs import Job, Status, cancel, listed, status, submit, wait
    from akrunner.detached.lines import logs

__all__ = ["Job", "Status", "cancel", "listed", "logs", "status", "submit", "wait"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the Python on a TaskManager may lack what its module needs, which `host` then
    reports."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from akrunner.detached import jobs, lines

    return getattr(lines if name == "logs" else jobs, name)
