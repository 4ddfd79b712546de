"""`metrics_file=` and `metrics_port=`: numbers of a running job for Prometheus and whatever reads OpenMetrics.

::

    supervisor  --Progress-->  Metrics  --every few seconds, and at the end-->  a file, whole (the textfile collector of node_exporter)
                                        <--GET /metrics, at any time--          a port of this machine
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from akrunner.checks import check_count, check_host, check_path
from akrunner.errors import ConfigError
from akrunner.foreign import in_words, ours

if TYPE_CHECKING:
    from akrunner.engines.base import Progress

#: seconds from one writing of the file to the next: collectors look every 15 seconds or more seldom
_EVERY = 5.0
#: numbers that begin at 0 again when the tasks are started again
_COUNTED = ("rows_in", "bytes_in", "rows_out", "bytes_out", "stalls")
_LAST_SUCCESS = "akrunner_job_last_success_timestamp_seconds"
_FILE_KNOB, _PORT_KNOB = "metrics_file=, --metrics-file", "metrics_port=, --metrics-port"
#: how each file of metrics begins
_BEGINNING = b"# HELP akrunner_job"


class Metrics:
    """The numbers of one job.

    Args:
        verb, script: what runs.
        file: the file to write them to, None: none.
        port: the port to serve them at, None: none.
        host: the address of that port.
    Attributes: warnings: what could not be told.
    Raises: ConfigError: the file cannot be written, the port cannot be had, or prometheus-client is not installed.
    """

    what: ClassVar[str] = "metrics"

    def __init__(self, verb: str, script: str, file: str | os.PathLike[str] | None, port: int | None, host: str) -> None:
        self.warnings: list[str] = []
        self._path = check_path("metrics_file", file) if file is not None else None
        self._labels = {"name": _stem(self._path if self._path is not None else script)}
        self._about = {"verb": verb, "script": script, "run": ""}
        self._began = time.time()
        self._progress: Progress | None = None
        #: numbers of attempts that are over, and of the one that goes on
        self._before = dict.fromkeys(_COUNTED, 0)
        self._now = dict.fromkeys(_COUNTED, 0)
        self._end: tuple[float, int] | None = None
        self._succeeded = _last_success(self._path)
        self._written = 0.0
        self._registry = _registry(self)
        self._server: Any = None
        # the file may be that of a job that runs, and has the port
        if port is not None:
            self._serve(check_count("metrics_port", port, 1, 65535), host)
        if self._path is not None:
            try:
                with ours(ConfigError, f"metrics_file: cannot write {self._path}"):
                    _check_ours(self._path)
                    self._write(self._path)
            except BaseException:
                self.close()
                raise

    def begun(self, run: str | None) -> None:
        """Note the name under which the run is kept."""
        self._about["run"] = run or ""

    def progress(self, progress: Progress) -> None:
        """Take the progress of the job."""
        before = self._progress.attempt if self._progress is not None else 0
        if progress.attempt != before:
            # made anew: another thread may be reading it
            self._before = {name: value + self._now[name] for name, value in self._before.items()}
            self._now = dict.fromkeys(_COUNTED, 0)
        # between two attempts the numbers are those of no task
        told = _counts(progress)
        self._now = {name: max(value, told[name]) for name, value in self._now.items()}
        self._progress = progress
        if time.monotonic() - self._written >= _EVERY:
            self._refresh()

    def log(self, task: str, line: str) -> None:
        """Do nothing: lines are no numbers."""

    def ended(self, body: Mapping[str, Any]) -> None:
        """Note how the job has ended, and serve no more. Args: body: as `Listener.ended` has it."""
        self._end = (time.time(), int(body["exit_code"]))
        if body["ok"]:
            self._succeeded = self._end[0]
            totals = body["stats"]
            self._now = {name: totals.get(name, value) for name, value in self._now.items()}
        self._refresh()
        self.close()

    def close(self) -> None:
        """Give the port back."""
        if self._server is not None:
            server, thread = self._server
            self._server = None
            server.shutdown()
            server.server_close()
            thread.join()

    def collect(self) -> Iterator[Any]:
        """Yield the numbers as prometheus-client wants them, also to threads that serve them."""
        from prometheus_client.core import InfoMetricFamily

        about = InfoMetricFamily("akrunner_job", "What runs.", labels=["name"])
        about.add_metric([self._labels["name"]], {**self._about})
        yield about
        yield from self._gauges()
        yield from self._counters()
        yield from self._of_tasks()

    def _gauges(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        now: dict[str, tuple[str, float | None]] = {
            "akrunner_job_running": ("Whether the job runs.", float(self._end is None)),
            "akrunner_job_start_timestamp_seconds": ("When it began.", self._began),
            "akrunner_job_update_timestamp_seconds": (
                "When these numbers were made; they stand still if it was killed.",
                time.time(),
            ),
            "akrunner_job_end_timestamp_seconds": ("When it ended.", self._end[0] if self._end else None),
            "akrunner_job_exit_code": ("How it ended: 0 is success.", float(self._end[1]) if self._end else None),
            _LAST_SUCCESS: ("When a job with this file last succeeded.", self._succeeded),
        }
        for name, (text, value) in now.items():
            if value is not None:
                family = GaugeMetricFamily(name, text, labels=["name"])
                family.add_metric([self._labels["name"]], value)
                yield family

    def _counters(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        total = {name: self._before[name] + value for name, value in self._now.items()}
        told = self._progress
        for unit in ("rows", "bytes"):
            family = CounterMetricFamily(
                f"akrunner_job_{unit}", f"The {unit} that went to the tasks, and came from them.", labels=["name", "way"]
            )
            for way in ("in", "out"):
                family.add_metric([self._labels["name"], way], total[f"{unit}_{way}"])
            yield family
        counts = {
            "restarts": ("How often the tasks were started again.", told.attempt if told else 0),
            "stalls": ("How often nothing had moved for stall_timeout.", total["stalls"]),
            "warnings": ("How many warnings there are.", len(told.warnings) if told else 0),
        }
        for name, (text, value) in counts.items():
            family = CounterMetricFamily(f"akrunner_job_{name}", text, labels=["name"])
            family.add_metric([self._labels["name"]], value)
            yield family

    def _of_tasks(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        told = self._progress
        if told is None:
            return
        if self._end is None:
            states = GaugeMetricFamily("akrunner_task_state", "What each task is doing.", labels=["name", "task", "state"])
            for task, state in told.states.items():
                states.add_metric([self._labels["name"], task, state], 1)
            yield states
        reported = GaugeMetricFamily("akrunner_task_metric", "What each task reported last.", labels=["name", "task", "metric"])
        for task, metrics in told.reports.items():
            for metric, value in metrics.items():
                reported.add_metric([self._labels["name"], task, metric], value)
        yield reported

    def _refresh(self) -> None:
        """Write the file again. A file that cannot be written fails no job."""
        if self._path is None:
            return
        self._written = time.monotonic()
        try:
            self._write(self._path)
        except OSError as e:
            told = f"metrics_file: {self._path} is not up to date: {in_words(e, self._path)} ({_FILE_KNOB})"
            self.warnings = [told]

    def _write(self, path: str) -> None:
        """Write the file whole, or not at all. Raises: OSError: it cannot be written."""
        from prometheus_client.openmetrics.exposition import generate_latest

        new = f"{path}.{os.getpid()}.new"
        try:
            with open(new, "wb") as f:
                f.write(generate_latest(self._registry))
            os.replace(new, path)
        except OSError:
            try:
                os.unlink(new)
            except OSError:
                pass
            raise

    def _serve(self, port: int, host: str) -> None:
        from prometheus_client import start_http_server

        check_host("metrics_host", host, empty=False)
        with ours(ConfigError, f"metrics_port={port}: it cannot be listened at on {host} ({_PORT_KNOB})"):
            self._server = start_http_server(port, host, self._registry)


def _registry(metrics: Metrics) -> Any:
    """Return the registry of one job. Raises: ConfigError: prometheus-client is not installed."""
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as e:
        raise ConfigError(
            f"metrics_file, metrics_port: they need prometheus-client, which is missing ({e}): pip install 'akrunner[metrics]'"
        ) from None
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry


def _counts(progress: Progress) -> dict[str, int]:
    return {
        "rows_in": progress.rows_in,
        "bytes_in": progress.bytes_in,
        "rows_out": progress.rows_out,
        "bytes_out": progress.bytes_out,
        "stalls": progress.stalls,
    }


def _stem(path: str) -> str:
    """Return the name of a file without its folder and its ending."""
    return os.path.splitext(os.path.basename(path))[0]


def _check_ours(path: str) -> None:
    """Check that a file is not there yet, or is one of metrics. Raises: OSError: it cannot be read; ConfigError: it is another file."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"metrics_file: {path} is no file: name one, such as nightly.prom")
    if os.path.exists(path):
        with open(path, "rb") as f:
            begins = f.read(len(_BEGINNING))
        if begins not in (b"", _BEGINNING):
            raise ConfigError(
                f"metrics_file: {path} is there already, and has something else than metrics of akrunner's; name another file"
            )


def _last_success(path: str | None) -> float | None:
    """Return when a job with this file last succeeded, as the file says; None if it does not say."""
    # opening a FIFO would wait for its writer
    if path is None or not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(rf'^{_LAST_SUCCESS}{{name="[^\n]*"}} ([0-9.e+]+)$', f.read(1 << 20), re.MULTILINE)
        return float(found[1]) if found else None
    except (OSError, ValueError):
        return None
