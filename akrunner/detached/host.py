"""The host process of a detached job, beside one of its subtasks: `python -m akrunner.detached.host FOLDER`.

::

    stdin    a line of JSON: {"keys": ..., "port": ...}; at its end the subtask is gone, so everything ends
    stdout   lines of JSON, each a `Word` of `akrunner.engines.flink.taskmanager.detached_host`: {"addresses": ..., "port": ...,
             "rows": ...}, {"log": line} ..., then {"done": true} or {"failed": words}
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Unpack

    from akrunner.detached.kept import Teller
    from akrunner.engines.flink.taskmanager.detached_host import Word

_END_SECONDS = 20.0
_PROGRESS_SECONDS = 10.0
#: the most lines in a TaskManager's log, which other jobs use too: of what the tasks print; of warnings, without their first lines
_LOG_LINES = 20_000
_MANY = (
    f"[... the tasks have printed {_LOG_LINES:,} lines, and no more of them are told here; with work_dir= (--work-dir) their logs "
    "stay on the host's machine ...]"
)
_MANY_WARNINGS = f"[... the warnings have {_LOG_LINES:,} lines; of further ones only the first line is told here ...]"


class Lines:
    """Writes lines of JSON to stdout, from any thread; also serves as the job's observer."""

    def __init__(self) -> None:
        # what a library prints must not get between the lines
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._told = time.monotonic()
        self._warned = 0
        self._warning_lines = 0
        self._logged = 0
        #: tells the course of the job, if it is kept
        self.teller: Teller | None = None

    def say(self, **word: Unpack[Word]) -> None:
        with self._lock:
            try:
                self._out.write(json.dumps(word) + "\n")
                self._out.flush()
            except OSError:
                pass  # the subtask is gone; the end of stdin tells that, too

    def tell(self, text: str) -> None:
        """Write a text to the job's log. Each of its lines becomes a record, as a record's mark is on its first line only."""
        for line in text.split("\n"):
            self.say(log=line)

    def log(self, task: str, line: str) -> None:
        with self._lock:
            self._logged += 1
            logged = self._logged
        if logged <= _LOG_LINES:
            self.say(log=f"[{task}] {line}")
        elif logged == _LOG_LINES + 1:
            self.say(log=_MANY)

    def warn(self, warnings: Sequence[str]) -> None:
        """Report the warnings that were not reported before.

        Args:
            warnings: all warnings so far.
        """
        for warning in warnings[self._warned :]:
            lines = f"warning: {warning}".split("\n")
            # a job in which nothing moves for days reports its stacks again and again
            before, self._warning_lines = self._warning_lines, self._warning_lines + len(lines) - 1
            if before <= _LOG_LINES < self._warning_lines:
                self.tell(_MANY_WARNINGS)
            self.tell("\n".join(lines if self._warning_lines <= _LOG_LINES else lines[:1]))
        self._warned = max(self._warned, len(warnings))

    def progress(self, progress: Any) -> None:
        self.warn(progress.warnings)
        if self.teller is not None:
            self.teller.tell()
        if time.monotonic() - self._told > _PROGRESS_SECONDS:
            self._told = time.monotonic()
            states = " ".join(f"[{task}] {state}" for task, state in progress.states.items())
            self.tell(f"{progress.seconds:.0f} s: {progress.rows_in:,} rows in, {progress.rows_out:,} rows out; {states}")


def main(folder: str) -> int:
    lines = Lines()
    secrets: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_end_with_the_subtask, args=(secrets,), name="akrunner-end", daemon=True).start()
    # SIGTERM acts like Ctrl-C: every task is ended on the way out
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from akrunner.errors import AkrunnerError
    except ImportError as e:
        lines.say(failed=_lacking(e))
        return 1
    os.chdir(folder)
    with open("order.json") as f:
        order = json.load(f)
    try:
        lines.tell(_run(order, lines, secrets))
    except AkrunnerError as e:
        lines.say(failed=_named(f"{type(e).__name__}: {e}", order))
        return 1
    except ImportError as e:
        lines.say(failed=_lacking(e))
        return 1
    lines.say(done=True)
    return 0


def _run(order: dict[str, Any], lines: Lines, secrets: queue.Queue[bytes]) -> str:
    """Run the job and return the closing line of its log.

    Args:
        secrets: the lines that were written to stdin.
    """
    from akrunner.detached.kept import Teller
    from akrunner.errors import AkrunnerError
    from akrunner.history.record import failed, succeeded

    teller = None
    if order["keeps"]:
        kept = os.path.abspath("kept")
        os.mkdir(kept, 0o700)
        teller = lines.teller = Teller(kept, lines.tell)
    try:
        result = _result(order, lines, secrets)
    except AkrunnerError as e:
        if teller is not None:
            teller.end(json.loads(_named(json.dumps(failed(e, getattr(e, "warnings", ()))), order)))
        raise
    lines.warn(result.stats.warnings)
    if teller is not None:
        teller.end({**succeeded(result), "ended": time.time()})
    stats = result.stats
    return f"done in {stats.seconds:.1f} s: {stats.rows_in:,} rows in, {stats.rows_out:,} rows out; output: {result.output}"


def _result(order: dict[str, Any], lines: Lines, secrets: queue.Queue[bytes]) -> Any:
    """Run the job and return its result. Args: secrets: as for `_run`."""
    from akrunner import verbs
    from akrunner.detached.engine import DetachedEngine
    from akrunner.engines.flink.schemas import schema_of
    from akrunner.serving.verbs import predict

    told = json.loads(secrets.get())
    kept = lines.teller.folder if lines.teller is not None else None
    engine = DetachedEngine(lines.say, order["files_there"], told["keys"], told["port"], kept)
    given = {**order["arguments"], "engine": engine, "observer": lines}
    for name in ("output_schema", "input_schema"):
        given[name] = schema_of(given[name]) if given[name] is not None else None
    if order["mode"] == "predict":
        return predict(os.path.abspath("model"), order["source"], **given)
    work = os.path.abspath("work")
    given["user_files"] = [os.path.join(work, name) for name in sorted(os.listdir(work))]
    run = verbs.train if order["mode"] == "train" else verbs.run
    return run(os.path.join(work, *order["script"].split("/")), order["source"], **given)


def _named(words: str, order: dict[str, Any]) -> str:
    """Return a message with the user's own file names in place of their copies' paths, and with the name of the machine whose
    paths it mentions, or which lacks a package."""
    for place, real in order.get("real", {}).items():
        words = words.replace(os.path.join(os.path.abspath("work"), *place.split("/")), real)
    if "is missing: pip install" in words:
        words += (
            f"\n(missing in the TaskManagers' Python: {sys.executable} on {socket.gethostname()}, where the job's host runs)"
        )
    return f"{words}\n(logs are on {socket.gethostname()})" if "full log:" in words else words


def _lacking(error: ImportError) -> str:
    return (
        f"ConfigError: a detached job's host runs on a TaskManager, and {sys.executable} on {socket.gethostname()} lacks what "
        f"it needs: {error}. Install akrunner there, or name another interpreter (--flink-worker-python)"
    )


def _end_with_the_subtask(secrets: queue.Queue[bytes]) -> None:
    # a buffered reader would be locked when the interpreter ends
    said = b""
    while data := os.read(0, 1 << 12):
        line, end, rest = (said + data).partition(b"\n")
        said = rest if end else line
        if end:
            secrets.put(line)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
