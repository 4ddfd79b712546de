"""Runs a kept run again, with the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from akrunner import verbs
from akrunner.errors import ConfigError, noting
from akrunner.history.record import with_numbers
from akrunner.jobfile import HEADS, MERGED, placed
from akrunner.options import named, of_verb
from akrunner.runs.looking import Run, get
from akrunner.serving import verbs as predictions

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "run": verbs.run,
    "train": verbs.train,
    "stream": verbs.stream,
    "predict": predictions.predict,
    "predict_stream": predictions.predict_stream,
}


@noting
def rerun(run: str | Run, **options: Any) -> Any:
    """Run a job again with the arguments of a run that was kept. Relative paths are those of the directory in which it was called.

    Args:
        run: as for `akrunner.runs.get`.
        options: arguments that are others this time, as for the verb's function; of `user_params`, `env` and `defaults` the keys
            that are given are others.
    Returns:
        what the verb's function returns: `Result`, or of a stream `StreamJob`.
    Raises:
        ConfigError: there is no such run; or a value was not kept, as it was a secret or an object of Python: the error names it; and
            whatever the verb's function raises.
    """
    found = get(run)
    values, verb = values_of(found), found.verb
    known = {one.name for one in of_verb(verb)}
    lacking = [where for where in found.left_out if not _is_given(where, options)]
    if lacking:
        raise ConfigError(f"{found.id} cannot be repeated as it was: {lacking_words(found, lacking, python=True)}")
    beyond = [name for name in values if name not in known and name not in options]
    if beyond:
        flags = ", ".join(named(name).words[0] for name in beyond)
        raise ConfigError(
            f"{found.id} was started by a command with {flags}, which akrunner.{verb} does not take: repeat it by `akrunner rerun {found.id}`"
        )
    if values.get("engine", "local") != "local" and "engine" not in options:
        raise ConfigError(f"engine: {found.id} ran on {found.engine}; give the engine again, or engine='local'")
    merged = {
        name: {**values[name], **options[name]} for name in MERGED if name in values and isinstance(options.get(name), Mapping)
    }
    return _FUNCTIONS[verb](**{**values, **options, **merged})


def values_of(run: Run) -> dict[str, Any]:
    """Return the arguments that were kept of a run, with whole paths; keys whose values were left out are not among them.

    Raises: ConfigError: the run is none of a verb that can be repeated.
    """
    if run.verb not in HEADS:
        raise ConfigError(f"{run.id} is a run of {run.verb}, which cannot be repeated: give its command again")
    values: dict[str, Any] = {}
    for name, value in with_numbers(run.arguments, run.not_finite).items():
        if name in run.left_out:
            continue
        gone = {where.partition(".")[2] for where in run.left_out if where.startswith(f"{name}.")}
        # a secret within a value hides the whole value of its key
        kept = (
            {key: one for key, one in value.items() if not any(f"{where}.".startswith(f"{key}.") for where in gone)}
            if gone
            else value
        )
        if not gone or kept:
            values[name] = placed(name, kept, run.cwd)
    return values


def _is_given(where: str, options: Mapping[str, Any]) -> bool:
    name, _, key = where.partition(".")
    if name not in options:
        return False
    return not key or not isinstance(options[name], Mapping) or key.partition(".")[0] in options[name]


def lacking_words(run: Run, lacking: list[str], python: bool) -> str:
    """Return what is missing for a repetition, and how to give it. Args: python: for a program, and not for the command line."""
    told = []
    for where in lacking:
        name, _, key = where.partition(".")
        key = key.partition(".")[0]
        why = run.left_out[where]
        because = "it is a secret, and was not kept" if why == "secret" else why
        if python:
            give = f"{name}={{{key!r}: ...}}" if key else f"{name}=..."
        else:
            words = named(name).words
            flag = words[0] if words else "the script's arguments behind --" if name == "script_args" else name.upper()
            give = f"{flag} for the key {key}" if key else flag
        told.append(f"give {give} ({because})")
    return "; ".join(told)
