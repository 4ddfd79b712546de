"""The task this process runs, for names that are given nothing: those of Alink's lower packages."""

_task = {}


def enter(context, writer, stream):
    """Args: context: what the host said; writer: the output writer; stream: a `RowStream`, or None."""
    _task.update(context=context, writer=writer, stream=stream)


def context():
    """What the host said this task is. Raises: RuntimeError: this process runs none."""
    return _get("context")


def writer():
    """Its output writer."""
    return _get("writer")


def stream():
    """Its rows as they arrive, None in a batch."""
    return _get("stream")


def _get(name):
    if not _task:
        raise RuntimeError("this process runs no task of a job")
    return _task[name]
