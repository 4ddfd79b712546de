"""Runs one task, from its context to its last message."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional, Sequence

from akrunner.wire import asks_about, failure, frames, messages
from akrunner.wire.context import Context, TFConfig
from akrunner.wire.shapes import escaped
from akrunner.worker import data, export, flink_row, pai_program, placing, quick, reached, running, script
from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig, TrainTaskConfig
from akrunner.worker.context import TFContext
from akrunner.worker.forked import Refused
from akrunner.worker.leaving import flush, only_here
from akrunner.worker.output import OutputWriter
from akrunner.worker.splits import Splits
from akrunner.worker.stream import RowStream
from akrunner.worker.waits import hooks, shown, timing

if TYPE_CHECKING:
    from akrunner.worker.config import TaskConfig
    from akrunner.worker.link import Link
    from akrunner.worker.tables.broker import Broker
    from akrunner.worker.waits.meter import Meter

_IN_MAIN = "in main()"
_IN_PROGRAM = "in the script"


_NEVER_ASKED = (
    "the script ran as a program and did not ask for its %d rows: `from akrunner.worker import current; task_config = "
    "current()` gives what main(task_config) is given, and AKRUNNER_DATASET_FILE names their file"
)
_RETURNED = (
    "main() returned a %s, which nobody takes, and wrote no rows: task_config.output_writer.write_batch({column: values, "
    "...}) writes them, and task_config.report({name: number}) tells numbers"
)
#: modes and formats in which a task's rows are a TFRecord file of Examples
_AS_RECORDS = (("batch", "examples"), ("train", "examples"))


def _looks_like_rows(returned: Any) -> bool:
    """Whether the user may have meant a returned value to be the output: a dict, a list, an array or a data frame."""
    return isinstance(returned, (dict, list)) or hasattr(type(returned), "__array__")


class Task(object):
    """One task of a job, from its context to its last message."""

    #: whether the task is replayed from the files of a job that has ended
    replayed = False

    def __init__(self, link: Link, context: Context) -> None:
        self.link = link
        self.context = context
        self.phase = "while starting"
        self.writer: Any = None
        self.stream: Optional[RowStream] = None
        self.tables: Optional[Broker] = None
        self.shares: List[int] = []
        self.splits: List[List[int]] = []
        self.main_ns = 0
        self.main_began: Optional[int] = None
        self.source: Any = None
        self.rows_given = 0
        self.uneven_rows = {"rows_dropped": 0, "rows_padded": 0}
        self.serving = False
        self.staying = False
        self.notes: List[str] = []
        # the notes about a program that did not ask for its rows; None if it did, or does not have to
        self.unasked: Optional[List[str]] = None
        self.asked = False
        # whether the script's source mentions the variables that `tell` sets
        self.names_variables = False
        # measures how long the script waits for its input; None if akrunner's own module runs in its place
        self.meter: Optional[Meter] = None
        self._ending = threading.Lock()
        self.pid = os.getpid()
        self.refused = Refused()
        os.register_at_fork(after_in_child=self.disown)

    def disown(self) -> None:
        """Refuse to act for the task; called in a process that the script has forked."""
        self.link.writer.refused = self.refused
        for end in (self.writer, self.stream):
            if end is not None:
                end.disown(self.refused)

    def alone(self, call: Callable[..., Any], *args: Any) -> Any:
        """Call a function that runs the script's code; a process that the script has forked does not return from it."""
        return only_here(self.pid, lambda e: format_failure(e, self.context), call, *args)

    def run(self) -> messages.Closed:
        """Run the task. Returns: the body of the CLOSED frame."""
        failed = None
        try:
            self.execute()
            self.look_unasked(exited=False)
            failed = self.check_export()
        except SystemExit as e:
            if e.code not in (None, 0) or self.phase not in (_IN_MAIN, _IN_PROGRAM):
                failed = e
            else:
                if self.phase == _IN_MAIN:
                    self.notes.append(self.exited())
                else:
                    self.look_unasked(exited=True)
                failed = self.check_export()
        except BaseException as e:  # the host is told about anything that ended the script
            failed = e
        if failed is None:
            self.phase = "while sending the last rows"
            try:
                if os.path.exists(self.context["output_file"]):
                    self.writer.write_file(self.context["output_file"])
                self.writer.close()
            except BaseException as e:
                failed = e
        self.end_alone()
        failed = self.end_tables(failed)
        return self.closed(failed)

    def end_alone(self) -> None:
        """Make this thread the only one that ends the task; if another thread already is, never return.

        It is the main thread, or the thread that ends a task that the job no longer needs.
        """
        if not self._ending.acquire(False):
            threading.Event().wait()  # the other thread ends the process

    def end_tables(self, failed: Optional[BaseException]) -> Optional[BaseException]:
        """Close the tables that the script has left open; if the script has failed, their rows are not sent.

        Returns: what failed: `failed`, or the error about those rows; None for neither.
        """
        if self.tables is None:
            return failed
        try:
            if failed is None:
                self.tables.finish()
        except BaseException as e:
            failed = e
        self.notes += self.tables.notes
        self.tables.end()
        return failed

    def closed(self, failed: Optional[BaseException] = None) -> messages.Closed:
        """Return the body of the CLOSED frame. Args: failed: the exception that ended the task; None for success."""
        self.notes += pai_program.unknown_flags() if self.context["script"]["pai"] else []
        body = messages.Closed(
            ok=failed is None,
            rows=self.writer.rows if self.writer else 0,
            rows_read=self.stream.rows_read if self.stream else 0,
            main_ns=self.main_ns,
            output_blocked_ns=self.link.writer.blocked_ns,
            rows_dropped=self.uneven_rows["rows_dropped"],
            rows_padded=self.uneven_rows["rows_padded"],
            notes=self.notes + self.refused.news(),
        )
        if self.unasked is not None:
            body["unasked"], body["asked"] = self.unasked, self.asked
        if self.meter is not None and self.main_began is not None:
            body["input"] = self.meter.record()
        if failed is not None:
            body["failure"] = self.failure(failed)
        return body

    def exited(self) -> str:
        """Return a note about a `main` that called `sys.exit(0)`, which may not have meant the same as to return."""
        given, rows = getattr(self.source, "given", None), self.rows_given
        read = ", after %d of its %d rows" % (given, rows) if given is not None and given < rows else ""
        return "main() did not return, but called sys.exit(0)%s; that counts as success" % read

    def say_left(self, notes: List[str]) -> None:
        """Send LEFT, after CLOSED: the exit handlers have run. Args: notes: about what the script left running."""
        try:
            self.link.writer.write_json(frames.LEFT, escaped(messages.Left(notes=notes + self.refused.news())))
        except OSError:
            self.link.check_host()

    def say(self, closed: messages.Closed) -> None:
        """Send CLOSED; called by the thread that ends the task."""
        try:
            # it names lines of the script, whose name may be any bytes, and threads, processes and errors of the user's
            self.link.writer.write_json(frames.CLOSED, escaped(closed))
        except OSError:
            self.link.check_host()

    def say_and_stay(self, closed: messages.Closed) -> None:
        """Send CLOSED. If other tasks may need this task's TensorFlow server, return only when the host says that none does."""
        self.staying = closed["ok"] and self.context["stays"]
        self.say(closed)
        if self.staying:
            flush()
            self.link.stopped.wait()

    def stop(self) -> None:
        """End this task, because the job no longer needs it.

        If the script is in `serve()`, that returns; TensorFlow's `server.join()` never does, so then the process is ended.
        """
        if self.serving or self.staying:
            return
        if self.tables is None:
            self.end_early()
        else:
            # in another thread, because this one has to receive the host's answers when the tables' writers are closed
            threading.Thread(target=self.end_early, name="akrunner-stop", daemon=True).start()

    def end_early(self) -> None:
        """End the process while the script still runs. The rows that it has written are kept."""
        self.end_alone()
        if self.main_began is not None:
            self.main_ns = time.monotonic_ns() - self.main_began
        try:
            self.writer.close()
        except OSError:
            pass
        closed = self.closed(self.end_tables(None))
        self.say(closed)
        self.say_left([])
        leave(closed, self.link)

    def serve(self) -> None:
        """Tell the host that this task serves other tasks, and wait until the host says that none needs it."""
        self.serving = True
        self.link.writer.write_json(frames.SERVING, messages.Empty())
        self.link.stopped.wait()

    def uneven(self, **rows: int) -> None:
        """Note how many rows of one pass were dropped or padded, so that every worker has equally many."""
        for name, count in rows.items():
            self.uneven_rows[name] = max(self.uneven_rows[name], count)

    def execute(self) -> None:
        context, link = self.context, self.link
        enter(context, context["tf_config"])
        if context["tables"] is not None:
            # imported only here: most jobs have no tables
            from akrunner.worker.tables import install

            self.tables = link.tables = install.enter(context, link.writer)
        link.writer.write_json(frames.OPENED, messages.Empty())
        if not context["script"]["module"]:
            self.meter = timing.enter(context["profile_input"])
            quick.afterwards(hooks.install)
            quick.afterwards(lambda: placing.install(context["tf_config"]["task"]))
        stream = None
        if context["mode"] == "stream":
            stream = self.stream = RowStream(context["data_format"], context["barriers"])
            stream.answered = self.answered
            link.serve_stream(stream)
        else:
            # the rows arrive while the script, and TensorFlow with it, is imported
            link.serve(context["dataset_file"], bool(context["splits"]))
        entry = self.alone(self.entry)
        rows = waited = 0
        if stream is None:
            self.phase = failure.RECEIVING
            started = time.monotonic_ns()
            rows, end = link.wait_for_rows()
            waited = time.monotonic_ns() - started
            self.shares, self.splits = end["shares"], end["splits"]
        link.writer.write_json(frames.READY, messages.Ready(rows=rows, waited_ns=waited))
        link.wait_for_start()
        config = self.config(rows)
        # read now, because a program may remove its own file
        self.names_variables = context["script"]["program"] and running.script_says("AKRUNNER_")
        self.phase = _IN_PROGRAM if context["script"]["program"] else _IN_MAIN
        if context["script"]["module"]:
            self.phase = "while predicting"
        link.writer.write_json(frames.ENTERED, messages.Empty())
        self.main_began = time.monotonic_ns()
        if self.meter is not None:
            self.meter.begin(rows if stream is None else None)
        if stream is None and not context["script"]["module"]:
            reached.begin(self.reached)
        link.on_stop = self.stop
        if link.stopped.is_set():
            self.stop()
        returned = None
        try:
            returned = self.alone(entry, config)
        finally:
            self.main_ns = time.monotonic_ns() - self.main_began
            reached.end()
            if self.meter is not None:
                # the code that follows is akrunner's
                self.meter.lines.stop()
        # a train job writes few rows or none, and its main may return anything
        if self.phase == _IN_MAIN and context["mode"] != "train" and not self.writer.rows and _looks_like_rows(returned):
            self.notes.append(_RETURNED % type(returned).__name__)

    def entry(self) -> Callable[..., Any]:
        """Return the script's `main`, or that of the module of akrunner that runs in its place."""
        ours = self.context["script"]["module"]
        if ours:
            self.phase = "while loading the model"
            prepared: Callable[..., Any] = importlib.import_module(ours).prepare(self.context)
            return prepared
        self.phase = "while importing the script"
        return load_entry(self.context)

    def look_unasked(self, exited: bool) -> None:
        """Note it if a program has succeeded but did not ask for its rows.

        Args:
            exited: whether it ended by `sys.exit(0)`. It may have been called for its help text; the host then shows only that.
        """
        if self.phase != _IN_PROGRAM or running.asked():
            return
        told = [_NEVER_ASKED % self.rows_given] if self.rows_given and not self.names_variables else []
        self.asked = exited and asks_about(self.context["script"]["args"])
        if exited and (told or self.asked):
            self.unasked = told
        else:
            self.notes += told

    def check_export(self) -> Optional[BaseException]:
        """Return the error about the model that this task has left; None if it is valid, or if this task leaves none."""
        exported = self.context["saved_model_dir"]
        if exported is None or self.context["task"] != self.context["first"]:
            return None
        if self.asked and not os.listdir(exported):
            # the program was called for its help text, not for a model
            return None
        self.phase = "after main()"
        try:
            export.check(exported, self.context["latest_ckpt_dir"])
        except BaseException as e:
            return e
        return None

    def config(self, rows: int) -> TaskConfig:
        late = self.context["flush_seconds"] if self.stream is not None else None
        self.writer = OutputWriter(self.link.writer, self.context["output_schema"], late, self.context["output_inferred"])
        config = build_config(self.context, rows, self.writer, self, self.stream)
        self.source, self.rows_given = config._rows, rows
        running.configured(config)
        return config

    def answered(self, number: int) -> None:
        """Tell the host that the script has answered every row before a barrier. Args: number: the barrier's number."""
        self.writer.flush()
        self.link.writer.write(frames.ANSWERED, b"", number)

    def due(self, number: int) -> None:
        """Ask the host for a barrier to save at. Args: number: of the barrier at which this task has saved last; 0 for none."""
        self.link.writer.write(frames.DUE, b"", number)

    def note(self, what: str) -> None:
        """Tell the host, at the end, what the user should know; it becomes a warning of the job."""
        if what not in self.notes:
            self.notes.append(what)

    def report(self, metrics: Dict[str, float], step: Optional[int], steps: Optional[int] = None) -> None:
        with timing.spending("report"):
            self.link.writer.write_json(frames.REPORT, messages.Report(metrics=metrics, step=step, time_ns=time.time_ns()))
            course = reached.current()
            if course is not None and step is not None and steps is not None:
                course.tell(reached.SCRIPT, step, steps)

    def reached(self, how_far: messages.Reached) -> None:
        """Tell the host how far `main` is."""
        try:
            self.link.writer.write_json(frames.REACHED, how_far)
        except OSError:
            # it only tells; what needs the host notices that it has gone
            pass

    def refuse(self, error: BaseException) -> None:
        """Tell the host that one chunk of rows could not be answered; the task goes on."""
        self.link.writer.write_json(frames.REFUSED, self.failure(error))

    def failure(self, error: BaseException) -> messages.Failure:
        told = failure.record(error, self.phase, format_failure(error, self.context))
        told["message"] = shown.left_out(told["message"])
        return told


def enter(context: Context, tf_config: TFConfig) -> None:
    """Set the environment, current directory and module path for the task.

    Called before TensorFlow is imported. In a warm worker (`akrunner.worker.spare`) it is called later; there `before_import`
    was called before that import.
    """
    before_import(context["env"], context["cpus"], context["overlay"])
    # the host may itself be a member of a cluster; its TF_CONFIG is not this job's
    os.environ.pop("TF_CONFIG", None)
    if not context["alone"]:
        os.environ["TF_CONFIG"] = json.dumps(tf_config)
    os.chdir(context["work_dir"])
    sys.path.insert(0, context["work_dir"])
    script.hide(context["work_dir"], context["script"]["path"])
    sys.argv = [context["script"]["real"]] + context["script"]["args"]
    if context["script"]["pai"]:
        pai_program.enter(context, tf_config)
    tell(context)


def before_import(env: Dict[str, Any], cpus: Optional[Sequence[int]], overlay: Optional[str]) -> None:
    """Set everything that has no effect once TensorFlow is imported.

    Args:
        env: environment variables to set.
        cpus: the cores that the process may use; None or empty for all.
        overlay: a directory of further packages; None or "" for none.
    """
    os.environ.update(env)
    # only errors: notes on missing processor instructions and graphics cards help no user
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if cpus and hasattr(os, "sched_setaffinity"):
        # threads that are started from here on inherit it
        os.sched_setaffinity(0, cpus)
    if overlay:
        # at the end of the path, so that the interpreter's own packages take precedence
        sys.path.append(overlay)
    quick.import_quickly()


def tell(context: Context) -> None:
    """Set the environment variables for a script that imports nothing of akrunner. (TF_CONFIG is set elsewhere.)"""
    known = {
        "AKRUNNER_TASK": context["task"],
        # only akrunner can read a file of columns
        "AKRUNNER_DATASET_FILE": context["dataset_file"] if (context["mode"], context["data_format"]) in _AS_RECORDS else None,
        # set when the rows have arrived
        "AKRUNNER_DATASET_LENGTH": None,
        "AKRUNNER_OUTPUT_FILE": context["output_file"]
        if context["output_schema"] is not None or context["output_inferred"]
        else None,
        "AKRUNNER_SAVED_MODEL_DIR": context["saved_model_dir"],
        "AKRUNNER_CHECKPOINT_DIR": context["checkpoint_dir"],
    }
    for name, value in known.items():
        # the host may itself be a task; its values are not this task's
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def load_entry(context: Context, real_name: Optional[str] = None) -> Callable[..., Any]:
    """Load the script and return the function to call with the task config.

    Args:
        real_name: the path under which the script's code is compiled; None for the context's.
    """
    names = context["script"]
    real = real_name or names["real"]
    if names["program"]:
        run = script.program(context["work_dir"], names["path"], real, alone=names["pai"])
        return lambda config: run()
    if names["context_entry"]:
        flink_row.stand_in()
    module = script.load(context["work_dir"], names["path"], real)
    if names["context_entry"]:
        from akrunner.worker.dl_on_flink import Context

        return lambda config: getattr(module, names["context_entry"])(Context())
    entry: Optional[Callable[..., Any]] = getattr(module, "main", None)
    if not callable(entry):
        raise AttributeError("%s defines no main(task_config)" % real)
    return entry


def format_failure(error: BaseException, context: Context) -> str:
    """Return the traceback of an exception as text, with the script's own frames only."""
    names = {os.path.join(context["work_dir"], *k.split("/")): v for k, v in context["file_names"].items()}
    return script.format_failure(error, names, shown.OURS)


def leave(closed: messages.Closed, link: Link) -> NoReturn:
    """End this process, even if threads still run; but if the host is dead, let one of them clean up first."""
    link.check_host()
    flush()
    os._exit(0 if closed["ok"] else 1)


def build_config(context: Context, rows: int, writer: OutputWriter, job: Any, stream: Optional[RowStream] = None) -> TaskConfig:
    """Return the task config for the context's mode.

    Args:
        context: the task's context.
        rows: the number of rows in this task's dataset file.
        writer: the task's output writer.
        job: an object with `shares`, `splits`, `report`, `serve`, `uneven`, `note` and `replayed`: the `Task`, or its stand-in in
            a replay.
        stream: the task's rows in a stream; None in another mode.
    """
    running.enter(context, writer, stream)
    source: Any = data.Examples
    if context["data_format"] == "columns":
        # imported only here, because it imports numpy
        from akrunner.worker.column_rows import Columns

        source = Columns
    evener = data.Evener(rows, job.shares, job.uneven)
    common = dict(
        tf_context=TFContext(context, writer, stream),
        num_workers=context["num_workers"],
        cluster=context["tf_config"]["cluster"],
        task_type=context["tf_config"]["task"]["type"],
        task_index=context["tf_config"]["task"]["index"],
        work_dir=context["work_dir"],
        user_params=context["user_params"],
        schema=context["schema"],
        checkpoint_dir=context["checkpoint_dir"],
        attempt=context["attempt"],
        output_writer=writer,
        _job=job,
        _rows=source(
            context["schema"],
            None if stream is not None else context["dataset_file"],
            stream,
            evener,
        ),
    )
    if stream is not None:
        return StreamTaskConfig(dataset_fn=stream.dataset, **common)
    os.environ["AKRUNNER_DATASET_LENGTH"] = str(rows)
    path = context["dataset_file"]
    common.update(dataset_file=path, dataset_length=rows, _splits=Splits(context["splits"], path, job.splits, evener))
    if context["mode"] == "train":
        common.update(saved_model_dir=context["saved_model_dir"], latest_ckpt_dir=context["latest_ckpt_dir"])
        return TrainTaskConfig(**common)
    return BatchTaskConfig(**common)
