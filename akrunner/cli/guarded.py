"""What every command that runs a job has in common: how it ends, and its exit code."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

import typer

import akrunner
from akrunner.cli import show

if TYPE_CHECKING:
    from akrunner.api import Result

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

EPILOG = """
Exit codes: 0 the job succeeded; 1 it failed, the script's traceback is on stderr; 2 an argument or the input is wrong, nothing
was started; 124 --timeout ran out; 130 interrupted (Ctrl-C); 143 terminated,
or its Flink job was cancelled.
"""


def guarded(screen: show.Screen, job: Callable[[], "Optional[Result]"]) -> "Optional[Result]":
    """Run it; every way it can end has its exit code and its words."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return job()
    except akrunner.JobTimeoutError as e:
        screen.error(e)
        raise typer.Exit(EXIT_TIMEOUT) from None
    except akrunner.ConfigError as e:
        screen.error(e)
        raise typer.Exit(EXIT_USAGE) from None
    except akrunner.JobCancelledError as e:
        # as if it had been told itself: nobody is to start it again
        screen.error(e)
        raise typer.Exit(EXIT_TERMINATED) from None
    except akrunner.AkrunnerError as e:
        screen.error(e)
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        screen.note("interrupted; every task was stopped")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except _Terminated:
        screen.note("terminated; every task was stopped")
        raise typer.Exit(EXIT_TERMINATED) from None


class _Terminated(BaseException):
    pass


def _terminated(number: int, frame: Any) -> None:
    raise _Terminated


def pairs(given: List[str], option: str) -> Dict[str, str]:
    pairs = {}
    for one in given:
        key, sign, value = one.partition("=")
        if not sign or not key:
            raise akrunner.ConfigError(f"{option} {one}: write KEY=VALUE")
        pairs[key] = value
    return pairs
