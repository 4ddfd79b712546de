"""The values that all attempts at a job share."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from akrunner.engines.base import Observer, RowSink, RowSource, bad_rows_of
from akrunner.engines.kept import KeptRun
from akrunner.engines.tables import JobTables
from akrunner.engines.tensorboard import EventFiles
from akrunner.engines.workdir import WorkDir
from akrunner.launch.guard import Guard
from akrunner.patience import Patience
from akrunner.spec import JobSpec


@dataclass(frozen=True)
class JobRun:
    """A running job, over all its attempts.

    Attributes:
        job: the job to run.
        source, sink, observer, cancel: the arguments of `Engine.run`.
        work: the job's directory.
        guard: removes that directory and ends the tasks if this process dies.
        patience: decides when Ctrl-C takes effect.
        tables: the tables that the tasks ask for; None if the job has none.
        warnings: the warnings so far; more are added.
        began: when the job began, by `time.monotonic`.
        counted: from when on its `timeout` counts: from before its input was opened.
        kept: keeps what the tasks print and report, if the run is kept.
        board: writes what the tasks report for TensorBoard; None if that is not wanted.
    """

    job: JobSpec
    source: RowSource
    sink: RowSink | None
    observer: Observer | None
    cancel: threading.Event | None
    work: WorkDir
    guard: Guard
    patience: Patience
    tables: JobTables | None = None
    warnings: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    counted: float = field(default_factory=time.monotonic)
    kept: KeptRun = field(default_factory=KeptRun)
    board: EventFiles | None = None

    def hear(self) -> None:
        """Add warnings about bad rows of the source that have been found since."""
        bad = bad_rows_of(self.source)
        if bad is not None:
            self.warnings.extend(bad.news())

    @property
    def disks(self) -> dict[str, str]:
        """The directories that tasks write to -> the parameter that names another place for each."""
        places = {self.work.path: "TMPDIR, or work_dir="}
        if self.job.checkpoint_dir is not None:
            places[self.job.checkpoint_dir] = "checkpoint_dir="
        return places
