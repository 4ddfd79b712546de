"""`akrunner.doctor`: it finds what may make jobs fail on this machine, or explains how one job ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from akrunner.checks import check_flag, check_path, shown
from akrunner.checkup import disks, limits, network, pythons
from akrunner.checkup.beside import Check, looked
from akrunner.checkup.lines import BROKEN, Checkup, Line
from akrunner.errors import ConfigError
from akrunner.options.told import told
from akrunner.sequences import SequenceNotStr

__all__ = ["Checkup", "Line", "doctor"]

PathLike = str | os.PathLike[str]
#: how many seconds the explanation of a job's directory may take, as it may be on a slow disk
_JOB_SECONDS = 30.0


@dataclass(frozen=True)
class DoctorArguments:
    """The arguments of `doctor`, which `akrunner.options` describes."""

    # options: written by scripts/gen-options
    work_dir: PathLike | None = None
    python_env: PathLike | SequenceNotStr[PathLike] | None = None
    flink_master: str | None = None
    flink_python: PathLike | None = None
    quick: bool = False
    # end of what scripts/gen-options writes


# options: written by scripts/gen-options
@told("doctor")
def doctor(
    work_dir: PathLike | None = None,
    *,
    python_env: PathLike | SequenceNotStr[PathLike] | None = None,
    flink_master: str | None = None,
    flink_python: PathLike | None = None,
    quick: bool = False,
) -> Checkup:
    """Check this machine, or explain what became of a job. The checks run at the same time, each with a time limit.

    Args:
        work_dir: the work directory that a job has kept (`debug=True`, `work_dir=`), the directory with the logs of a job that
            failed, or a path in one of them: the job is explained. None: the machine is checked.
        python_env: the interpreters to check, one or several, each as for `run`; None: the one that jobs take by default.
        flink_master: REST address of a Flink cluster to check, as for `akrunner.engines.flink.FlinkEngine`; None: no cluster is
            checked.
        flink_python: interpreter that has PyFlink; None: this one.
        quick: do not import TensorFlow, which takes seconds.
    Returns:
        lines that say "ok", "look here" or "broken", and what to do; `print` shows them. What cannot be checked has a line, too.
    Raises:
        ConfigError: an argument is wrong; `work_dir` is not the directory of a job, or does not exist.
    """
    return looked_over(
        DoctorArguments(
            work_dir=work_dir,
            python_env=python_env,
            flink_master=flink_master,
            flink_python=flink_python,
            quick=quick,
        ),
    )


# end of what scripts/gen-options writes


def looked_over(given: DoctorArguments) -> Checkup:
    """Run the checks, as `akrunner.doctor` says. Raises: ConfigError: as `akrunner.doctor` does."""
    folder = None if given.work_dir is None else check_path("work_dir", given.work_dir)
    envs = _environments(given.python_env)
    master = given.flink_master
    if master is not None:
        _check_master(master)
    python = None
    if given.flink_python is not None:
        python = os.path.expanduser(check_path("flink_python", given.flink_python))
    check_flag("quick", given.quick)
    if folder is None:
        return Checkup(tuple(looked(_of_machine(envs, master, python, given.quick))))
    if given.python_env is not None or master is not None or given.flink_python is not None or given.quick:
        raise ConfigError(
            "work_dir: a job's directory is explained by itself; python_env=, flink_master=, flink_python= and quick= look at "
            "the machine"
        )
    return _of_job(folder)


def _of_job(folder: str) -> Checkup:
    from akrunner.checkup.job import explained

    found: list[Checkup] = []

    wrong: list[ConfigError] = []

    def look() -> Sequence[Line]:
        try:
            found.append(explained(folder))
        except ConfigError as e:
            wrong.append(e)
        return found[0].lines if found else ()

    lines = looked([Check("job", look, _JOB_SECONDS)])
    if wrong:
        raise wrong[0]
    if found:
        return Checkup(tuple(lines), found[0].job)
    return Checkup(tuple(Line(line.about, BROKEN, line.found, line.do) for line in lines))


def _of_machine(envs: Sequence[str | None], master: str | None, python: str | None, quick: bool) -> list[Check]:
    from akrunner.checkup import services

    def environment(env: str | None) -> Check:
        late = "an environment on a local disk; --quick leaves out the import of TensorFlow"
        return Check(
            "TensorFlow" if env is None else f"TensorFlow of {env}",
            lambda: pythons.environment(env, not quick),
            # longer than the limits within the check, which itself reports a late interpreter and ends its process
            pythons.PROBE_SECONDS + 5 + (0 if quick else pythons.IMPORT_SECONDS),
            late,
        )

    return [
        Check("Python", pythons.own),
        *map(environment, envs),
        Check("memory", limits.memory),
        Check("cores", limits.cores),
        Check("limits", limits.allowed),
        Check("processes", limits.processes),
        Check("temp directory", disks.temp),
        Check("disks", lambda: [line for place in disks.places() for line in disks.looked_at(place)]),
        Check("current directory", disks.current),
        Check("shared memory", disks.shared_memory),
        Check("clock", disks.clock),
        Check("ports", network.ports),
        Check("names", network.names, 15.0, "no name server answers: /etc/resolv.conf, /etc/hosts"),
        Check("proxy", network.proxies),
        Check(
            "Flink",
            lambda: services.flink(master, python or sys.executable, named=python is not None),
            90.0,
            "the cluster, or the interpreter with PyFlink, does not answer",
        ),
        Check("credentials", services.credentials),
        Check("packages", services.packages),
        Check("tools", services.tools, 15.0),
        Check("warm workers", services.warm, 15.0, "akrunner warm stop ends them"),
    ]


def _environments(given: PathLike | SequenceNotStr[PathLike] | None) -> list[str | None]:
    if given is None:
        return [None]
    if isinstance(given, (str, os.PathLike)):
        return [check_path("python_env", given)]
    if not isinstance(given, (list, tuple)):
        raise ConfigError(f"python_env must be a path or a name, or a list of them, not {shown(given)}")
    return [check_path("python_env", one) for one in given] or [None]


def _check_master(master: str) -> None:
    """Check the address of a Flink cluster. Raises: ConfigError: it is no address."""
    from akrunner.engines.flink.rest import Address

    if not isinstance(master, str):
        raise ConfigError(f"flink_master must be the REST address of a cluster, 'host:port' or a URL, not {shown(master)}")
    Address.of(master)
