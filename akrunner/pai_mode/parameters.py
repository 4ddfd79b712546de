"""PAI's -D parameters, in one table: what each one means on PAI, and what it does here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from akrunner.errors import ConfigError
from akrunner.pai_mode.words import Command

#: how similar (0 to 1) an unknown name must be to one in the table to be taken for a slip; PAI's parameters that are not in the
#: table are less similar than that
_NEAR = 0.75


@dataclass(frozen=True)
class Parameter:
    """One -D parameter of PAI.

    Attributes:
        name: its name, without -D.
        meaning: what it means on PAI.
        default: its default on PAI.
        here: what it does here.
        warning: what the user is told if the parameter is given; "" if it does here what it does on PAI.
        silent: values for which there is no warning, because they have no effect on PAI either.
    """

    name: str
    meaning: str
    default: str
    here: str
    warning: str = ""
    silent: tuple[str, ...] = ("",)


_NO_QUOTA = "there is no service here that deals out machines"
_NO_ROLE = "nobody asks for a role here: buckets are directories, or read with the credentials of this machine"
_NO_NETWORK = "tasks run on this machine, or on your Flink cluster, with the network and the disks those have"

PARAMETERS: dict[str, Parameter] = {
    one.name: one
    for one in (
        Parameter("script", "the code: a .py, or a .tar.gz, .tgz or .zip", "required", "the same; also a path of this machine"),
        Parameter("entryFile", "the file of the archive that is run", "none; required for an archive", "the same"),
        Parameter("tables", "input tables, separated by commas", "none", "the same; --tables"),
        Parameter("outputs", "output tables, separated by commas; they must exist", "none", "the same, but a partition that "
        "is not there is made, with a warning; --outputs"),
        Parameter(
            "buckets",
            "OSS directories the script reads, separated by commas",
            "none",
            "directories of this machine (--oss-root, `akrunner tables`); --buckets names them",
        ),
        Parameter(
            "checkpointDir",
            "OSS directory for the model",
            "none",
            "a directory of this machine that stays from run to run; --checkpointDir names it",
        ),
        Parameter("hyperParameters", "file of key=value lines", "none", "each becomes a flag, --key=value"),
        Parameter("userDefinedParameters", "flags of the script, as one text", "none", "the same"),
        Parameter(
            "cluster",
            "JSON: how many ps, worker, chief and evaluator, and what each may use",
            "one worker",
            "as many processes; cpu and gpu as far as this machine has them, memory is not limited",
        ),
        Parameter(
            "gpuRequired",
            "cards of a single worker, times 100",
            "100",
            "as many as there are; without any it runs on the processor",
        ),
        Parameter("workerCount", "workers of a job without parameter servers", "1", "num_workers"),
        Parameter("jobName", "a name in the history of jobs", "none", "shown by the plan"),
        Parameter("maxTrainingTimeInHour", "ends the job", "0: none", "timeout"),
        Parameter(
            "enableDynamicCluster",
            "a worker that dies is started again",
            "false",
            "true: after a failure the job is started again, up to 3 times (--max-restarts)",
        ),
        Parameter(
            "arn", "the RAM role by which OSS is reached", "none", "not needed", f"arn is not used: {_NO_ROLE}"
        ),
        Parameter("ossHost", "endpoint of buckets named without one", "none", "not needed by local buckets"),
        Parameter("tags", "words the job is found by", "none", "shown by the plan"),
        Parameter(
            "maxHungTimeBeforeGCInSeconds",
            "seconds a card may idle before the job is taken down",
            "3600",
            "stall_timeout (--stall-timeout); 0: the job reports which task waits for which, and goes on",
        ),
        Parameter(
            "allOrNothing",
            "whether all tasks start together or none",
            "false",
            "always so",
        ),
        Parameter(
            "autoStrategy",
            "PAI chooses how to distribute the model",
            "false",
            "not there",
            "autoStrategy is not there: PAI's TensorFlow would have distributed the model by itself; the script runs as it is "
            "written",
            ("", "false", "False"),
        ),
        Parameter("volumes", "disks mounted into the tasks", "none", "not there", f"volumes are not mounted: {_NO_NETWORK}"),
        Parameter("vpcRegion", "the region of a private network", "none", "not there", f"vpcRegion is not used: {_NO_NETWORK}"),
        Parameter("vpcId", "a private network", "none", "not there", f"vpcId is not used: {_NO_NETWORK}"),
        Parameter(
            "useSparseClusterSchema",
            "whether a task is told of those only that it talks to",
            "false",
            "not there",
            "useSparseClusterSchema is not there: every task is told of all",
            ("", "false", "False"),
        ),
        Parameter(
            "oversubscription", "whether cards nobody uses are lent", "false", "not there",
            f"oversubscription means nothing here: {_NO_QUOTA}", ("", "false", "False"),
        ),
        Parameter(
            "python", "which Python the image has", "2.7", "not used; --python-env",
            "python is not used: the environment is chosen by -name, or by python_env= (--python-env)",
        ),
        Parameter(
            "enableDockerFusion", "how tasks are packed into machines", "false", "not there",
            f"enableDockerFusion means nothing here: {_NO_QUOTA}", ("", "false", "False"),
        ),
        Parameter("priority", "which job waits for which", "1", "not there", f"priority means nothing here: {_NO_QUOTA}"),
        Parameter("lifecycle", "days tables that are made are kept", "28", "accepted; nothing is deleted"),
    )
}  # fmt: skip

#: other spellings -> the parameter: from products on top of PAI, from the console, and frequent mistakes
_SAME_WORDS = {
    "entry_file": "entryFile",
    "checkpoint_dir": "checkpointDir",
    "model_dir": "checkpointDir",
    "hyperparams": "hyperParameters",
}


def known(command: Command) -> tuple[Mapping[str, str], list[str]]:
    """Return the parameters of a command that PAI has, and warnings about the parameters and options that have no effect here.

    Raises:
        ConfigError: a name is similar to a parameter of PAI, and is taken for a misspelling; or a parameter is given twice.
    """
    found: dict[str, str] = {}
    warnings: list[str] = []
    by_case = {name.lower(): name for name in PARAMETERS}
    for given, value in command.parameters.items():
        name = by_case.get(given.lower())
        if name is None:
            meant = _SAME_WORDS.get(given) or next(iter(difflib.get_close_matches(given, PARAMETERS, 1, _NEAR)), "")
            if meant:
                raise ConfigError(f"line {command.line}: PAI has no parameter -D{given}; did you mean -D{meant}?")
            warnings.append(f"-D{given} is passed over: PAI-TensorFlow has no such parameter")
            continue
        if name in found:
            raise ConfigError(f"line {command.line}: -D{name} is given twice; which value is meant?")
        found[name] = value.strip()
        about = PARAMETERS[name]
        if about.warning and found[name] not in about.silent:
            warnings.append(about.warning)
    for name in command.others:
        warnings.append(f"-{name} is passed over: it is for PAI's service")
    return found, warnings


def truth(name: str, text: str) -> bool:
    """Parse a parameter's yes or no, as people write it: true, 1, yes; false, 0, no, "". Raises: ConfigError: it is neither."""
    if text.lower() in ("", "false", "0", "no"):
        return False
    if text.lower() in ("true", "1", "yes"):
        return True
    raise ConfigError(f"-D{name}={text}: write true or false")


def number(name: str, text: str, least: int = 0) -> int:
    """Parse a parameter's whole number. Raises: ConfigError: the text is not a whole number, or it is less than `least`."""
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"-D{name}={text!r} must be a whole number") from None
    if value < least:
        raise ConfigError(f"-D{name}={value}: there must be at least {least}" if least else f"-D{name}={value}: 0 or more")
    return value
