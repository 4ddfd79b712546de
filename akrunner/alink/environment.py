"""The environment of Alink's operators: where jobs run, and how much they print.

It is set by `useLocalEnv`, `useRemoteEnv`, `resetEnv` and `AlinkGlobalConfiguration`.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

import duckdb

from akrunner import leftovers
from akrunner.alink.plugins import PluginDownloader
from akrunner.checks import MOST_TASKS, check_count, check_host, shown
from akrunner.engines.base import Progress
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.registry import engine_of, names
from akrunner.errors import ConfigError


@dataclass
class Environment:
    """State that all operators share.

    Attributes:
        parallelism: number of workers and parameter servers together, for operators that do not set it; None: one worker.
        engine: the engine of the jobs.
        debug: keep the work directories of jobs, and print what their tasks print.
        echo: print what the tasks of jobs print.
        flink: Flink's SQL (`akrunner.engines.flink.host.sql.Sql`), used beneath batch tables; None: DuckDB is used.
        pending: the actions that `BatchOperator.execute()` runs: sinks and lazy prints.
        streams: the sinks that `StreamOperator.execute()` runs.
    """

    parallelism: int | None = None
    engine: Any = "local"
    debug: bool = False
    echo: bool = False
    flink: Any | None = None
    pending: list[Callable[[], None]] = field(default_factory=list)
    streams: list[Any] = field(default_factory=list)
    _connection: Any | None = None

    def hold(self, engine: FlinkEngine) -> None:
        """Run jobs on a Flink engine from now on, and hold its slots until another environment is chosen or the program ends.

        Batch tables are then Flink's, if this interpreter has PyFlink.
        """
        self.engine = engine.__enter__()
        self.flink = engine.sql(self.parallelism or 1)

    @property
    def connection(self) -> Any:
        """Return the DuckDB connection beneath the tables; it holds rows in memory, and on disk if memory is short."""
        if self._connection is None:
            self._connection = duckdb.connect(config={"temp_directory": leftovers.temp_directory()})
            # Flink's SQL calls the function RAND
            self._connection.execute("CREATE MACRO RAND() AS random()")
        return self._connection

    @property
    def observer(self) -> Echo | None:
        return Echo() if self.echo or self.debug else None

    def execute(self) -> None:
        """Run the pending actions, in the order in which they were added, and forget them."""
        pending, self.pending = self.pending, []
        for action in pending:
            action()


class Echo:
    """Observer (`akrunner.engines.base.Observer`) that prints what the tasks of a job print, to stderr."""

    def progress(self, progress: Progress) -> None:
        pass

    def log(self, task: str, line: str) -> None:
        print(f"[{task}] {line}", file=sys.stderr, flush=True)


_current = Environment()
#: parameters of Alink's useRemoteEnv that are ignored here
_OF_ALINK = ("flinkHome", "localIp", "shipAlinkAlgoJar", "config")


@atexit.register
def _let_go() -> None:
    if isinstance(_current.engine, FlinkEngine):
        _current.engine.__exit__()


def current() -> Environment:
    return _current


def useLocalEnv(
    parallelism: int = 1, flinkHome: str | None = None, config: Mapping[str, Any] | None = None, engine: str = "local"
) -> Environment:
    """Run jobs on this machine from now on.

    Args:
        parallelism: number of workers and parameter servers together, for operators that do not set `numWorkers` and `numPSs`.
        flinkHome: ignored.
        config: `debug_mode`: True keeps the work directories of jobs and prints what their tasks print; `flink_python`: with
            engine="flink", an interpreter that has PyFlink, if this one does not have it. Other keys are ignored.
        engine: "local" (tasks are processes of this machine), the name of an engine that a package adds, or "flink" (a Flink
            cluster on this machine, which stays until another environment is chosen).
    Returns:
        the environment that jobs use from now on.
    Raises:
        ConfigError: an argument is wrong.
    """
    _check_parallelism(parallelism)
    if not isinstance(engine, str):
        raise ConfigError(f"useLocalEnv: engine must be one of {', '.join(names())}, not {shown(engine)}")
    chosen = engine_of(engine)
    if not (config is None or isinstance(config, Mapping)):
        raise ConfigError(f"useLocalEnv: config must be a dict, not {shown(config)}")
    resetEnv()
    _current.parallelism = parallelism
    _current.debug = bool((config or {}).get("debug_mode", False))
    if isinstance(chosen, FlinkEngine):
        _current.hold(FlinkEngine(python=(config or {}).get("flink_python")))
    elif engine != "local":
        _current.engine = chosen
    return _current


def useRemoteEnv(host: str, port: int, parallelism: int, **options: Any) -> Environment:
    """Run jobs on a Flink cluster from now on.

    If this interpreter has PyFlink, Flink's SQL also computes the tables between batch operators; else this process does.

    Args:
        host: host of the cluster's REST service.
        port: port of the cluster's REST service.
        parallelism: as for `useLocalEnv`.
        **options: parameters of `akrunner.engines.flink.FlinkEngine`, such as `python`, `python_executable` and `options`.
            Alink's `flinkHome`, `localIp`, `shipAlinkAlgoJar` and `config` are ignored.
    Returns:
        the environment that jobs use from now on.
    Raises:
        ConfigError: an argument is wrong.
    """
    _check_parallelism(parallelism)
    check_host("host", host, empty=False)
    check_count("port", port, 1, 65535)
    taken = {name: value for name, value in options.items() if name not in _OF_ALINK}
    try:
        engine = FlinkEngine(f"{host}:{port}", **taken)
    except TypeError as e:
        raise ConfigError(f"useRemoteEnv: {str(e).partition(') ')[2] or e}") from None
    resetEnv()
    _current.parallelism = parallelism
    _current.hold(engine)
    return _current


def resetEnv() -> None:
    """Start a new environment with the local engine: forget pending prints and sinks, intermediate tables and the parallelism.

    Only the setting of `AlinkGlobalConfiguration.setPrintProcessInfo` stays.
    """
    global _current
    if _current._connection is not None:
        _current._connection.close()
    if isinstance(_current.engine, FlinkEngine):
        _current.engine.__exit__()
    echo = _current.echo
    _current = Environment(echo=echo)


def _check_parallelism(parallelism: Any) -> None:
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise ConfigError(f"parallelism={shown(parallelism)}: give a whole number, 1 or more")
    check_count("parallelism", parallelism, 1, MOST_TASKS)


class AlinkGlobalConfiguration:
    """Settings that hold for all environments. Settings of plugins are stored and returned, but have no effect."""

    _plugins: ClassVar[dict[str, Any]] = {"dir": "plugins", "url": "", "auto": False}

    @staticmethod
    def setPrintProcessInfo(value: bool) -> None:
        """Set whether the output of the tasks of jobs is printed.

        Args:
            value: True to print it.
        """
        current().echo = bool(value)

    @staticmethod
    def isPrintProcessInfo() -> bool:
        """Whether the output of the tasks of jobs is printed.

        Returns:
            the value that `setPrintProcessInfo` set, else False.
        """
        return current().echo

    @staticmethod
    def getFlinkVersion() -> str:
        """Return the Flink version of the PyFlink in this interpreter.

        Returns:
            the version, such as "flink-1.20"; "" if there is no PyFlink.
        """
        try:
            return "flink-" + ".".join(metadata.version("apache-flink").split(".")[:2])
        except metadata.PackageNotFoundError:
            return ""

    @staticmethod
    def getPluginDownloader() -> PluginDownloader:
        """Return a downloader that downloads nothing, and prints which interpreter scripts run on.

        Returns:
            the downloader.
        """
        return PluginDownloader()

    @classmethod
    def setPluginDir(cls, pluginDir: str) -> None:
        """Store a directory of plugins, which is not used.

        Args:
            pluginDir: the directory that `getPluginDir` returns.
        """
        cls._plugins["dir"] = pluginDir

    @classmethod
    def getPluginDir(cls) -> str:
        """Return the directory of plugins, which is not used.

        Returns:
            the environment variable `ALINK_PLUGINS_DIR` if it is set, else the directory given to `setPluginDir`.
        """
        return os.environ.get("ALINK_PLUGINS_DIR") or str(cls._plugins["dir"])

    @classmethod
    def setPluginUrl(cls, url: str) -> None:
        """Store a URL of plugins, from which nothing is downloaded.

        Args:
            url: the URL that `getPluginUrl` returns.
        """
        cls._plugins["url"] = url

    @classmethod
    def getPluginUrl(cls) -> str:
        """Return the URL of plugins, from which nothing is downloaded.

        Returns:
            the URL given to `setPluginUrl`.
        """
        return str(cls._plugins["url"])

    @classmethod
    def setAutoPluginDownload(cls, autoPluginDownload: bool) -> None:
        """Store whether plugins are downloaded automatically; none are, either way.

        Args:
            autoPluginDownload: the value that `getAutoPluginDownload` returns.
        """
        cls._plugins["auto"] = bool(autoPluginDownload)

    @classmethod
    def getAutoPluginDownload(cls) -> bool:
        """Return the stored setting of automatic downloads; no plugin is downloaded, either way.

        Returns:
            the value given to `setAutoPluginDownload`.
        """
        return bool(cls._plugins["auto"])

    isAutoPluginDownload = getAutoPluginDownload
