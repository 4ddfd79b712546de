"""Where operators run, and how much they say: `useLocalEnv`, `resetEnv`, `AlinkGlobalConfiguration`."""

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
    """What all operators share.

    Attributes:
        parallelism: workers and parameter servers together, where an operator does not say; None: one worker.
        engine: of the jobs.
        debug: keep the work dirs of jobs. echo: print what the tasks print.
        flink: Flink's SQL (`akrunner.engines.flink.host.sql.Sql`), beneath batch tables; None: DuckDB's.
        pending: what `BatchOperator.execute()` is to do: sinks, and lazy prints. streams: what `StreamOperator.execute()` is to run.
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
        """Run jobs on it. Its slots are kept until another environment is chosen, or the program ends. Batch tables are Flink's then,
        where this interpreter has PyFlink."""
        self.engine = engine.__enter__()
        self.flink = engine.sql(self.parallelism or 1)

    @property
    def connection(self) -> Any:
        """The DuckDB beneath the tables; in memory, and on disk where that does not suffice."""
        if self._connection is None:
            self._connection = duckdb.connect(config={"temp_directory": leftovers.temp_directory()})
            # Flink's name for it
            self._connection.execute("CREATE MACRO RAND() AS random()")
        return self._connection

    @property
    def observer(self) -> Echo | None:
        return Echo() if self.echo or self.debug else None

    def execute(self) -> None:
        """Do what is pending, in its order."""
        pending, self.pending = self.pending, []
        for action in pending:
            action()


class Echo:
    """Prints what the tasks of a job print (`akrunner.engines.base.Observer`)."""

    def progress(self, progress: Progress) -> None:
        pass

    def log(self, task: str, line: str) -> None:
        print(f"[{task}] {line}", file=sys.stderr, flush=True)


_current = Environment()
#: of Alink's useRemoteEnv, and nothing here
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
    """Run jobs as processes of this machine.

    Args:
        parallelism: workers and parameter servers together, where an operator does not say (`setNumWorkers`, `setNumPSs`).
        flinkHome: ignored; no Flink has a part in it.
        config: `debug_mode`: True keeps the work dirs of jobs and prints what their tasks print; `flink_python`: with engine="flink",
            an interpreter that has PyFlink, where this one has not. Other keys are ignored.
        engine: "local", an engine that a package adds, or "flink": on a Flink of this machine, that stays until another environment is chosen.
    Returns:
        the environment, which jobs take from now on.
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
    """Run jobs on a Flink cluster. Where this interpreter has PyFlink, the tables between batch operators are Flink's, and their SQL;
    else this process's.

    Args:
        host: of the cluster's REST service.
        port: of the cluster's REST service.
        parallelism: as for `useLocalEnv`.
        **options: of `akrunner.engines.flink.FlinkEngine`: `python`, `python_executable`, `options` and so on; `flinkHome`,
            `localIp`, `shipAlinkAlgoJar` and `config` of Alink are ignored.
    Returns:
        the environment, which jobs take from now on.
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
    """Forget everything: pending prints and sinks, intermediate tables, the parallelism."""
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
    """What holds for all environments. What is said of plugins is kept and given back, and nothing else: there are none."""

    _plugins: ClassVar[dict[str, Any]] = {"dir": "plugins", "url": "", "auto": False}

    @staticmethod
    def setPrintProcessInfo(value: bool) -> None:
        """Print what the tasks of jobs print.

        Args:
            value: whether.
        """
        current().echo = bool(value)

    @staticmethod
    def isPrintProcessInfo() -> bool:
        """Whether what the tasks of jobs print is printed.

        Returns:
            whether it is.
        """
        return current().echo

    @staticmethod
    def getFlinkVersion() -> str:
        """Of the PyFlink in this interpreter.

        Returns:
            its version, as "flink-1.20"; "" without one.
        """
        try:
            return "flink-" + ".".join(metadata.version("apache-flink").split(".")[:2])
        except metadata.PackageNotFoundError:
            return ""

    @staticmethod
    def getPluginDownloader() -> PluginDownloader:
        """A downloader that downloads nothing, and says which interpreter scripts run on.

        Returns:
            the downloader.
        """
        return PluginDownloader()

    @classmethod
    def setPluginDir(cls, pluginDir: str) -> None:
        """Nothing is looked for there.

        Args:
            pluginDir: given back by `getPluginDir`.
        """
        cls._plugins["dir"] = pluginDir

    @classmethod
    def getPluginDir(cls) -> str:
        """`ALINK_PLUGINS_DIR` comes first.

        Returns:
            that, or what `setPluginDir` was given.
        """
        return os.environ.get("ALINK_PLUGINS_DIR") or str(cls._plugins["dir"])

    @classmethod
    def setPluginUrl(cls, url: str) -> None:
        """Nothing is downloaded from it.

        Args:
            url: given back by `getPluginUrl`.
        """
        cls._plugins["url"] = url

    @classmethod
    def getPluginUrl(cls) -> str:
        """Nothing is downloaded from it.

        Returns:
            what `setPluginUrl` was given.
        """
        return str(cls._plugins["url"])

    @classmethod
    def setAutoPluginDownload(cls, autoPluginDownload: bool) -> None:
        """Nothing is downloaded, whatever is said.

        Args:
            autoPluginDownload: given back by `getAutoPluginDownload`.
        """
        cls._plugins["auto"] = bool(autoPluginDownload)

    @classmethod
    def getAutoPluginDownload(cls) -> bool:
        """Nothing is downloaded either way.

        Returns:
            what `setAutoPluginDownload` was given.
        """
        return bool(cls._plugins["auto"])

    isAutoPluginDownload = getAutoPluginDownload
