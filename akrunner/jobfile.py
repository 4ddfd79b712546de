"""Job files: a verb's arguments, written in a TOML file that is given in place of the script, or the model.

::

    verb = "train"                      # may be left out
    script = "train.py"                 # paths are relative to the file
    source = "data/*.parquet"
    num_workers = 2
    model_out = "${MODELS}/model.zip"
    substitute = ["MODELS"]             # the variables that ${NAME} may stand for; without it ${...} is text

    [user_params]
    lr = 0.1
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from akrunner import argument_files
from akrunner.checks import check_path, check_replaces_nothing, has_long_number, nearest_file, shown
from akrunner.errors import CallError, ConfigError
from akrunner.foreign import ours
from akrunner.options import VERBS, Option, misfit, named, of_command, of_verb
from akrunner.wire.near import nearest

P = ParamSpec("P")
R = TypeVar("R")

ENDING = ".toml"
#: keys that are about the file itself, and no options
VERB, SUBSTITUTE = "verb", "substitute"
#: verbs -> the option in whose place the file is given
HEADS = {
    "run": "script",
    "train": "script",
    "stream": "script",
    "plan": "script",
    "predict": "model",
    "predict_stream": "model",
}
#: the keyword argument by which a function can be given the file
JOB = "job"
JOB_TEXT = "a job file (`job.toml`) that says it all; what is given beside it wins over what it says."
#: verbs -> the commands for them
_COMMANDS = {"run": "run", "train": "train", "stream": "stream", "predict": "predict", "predict_stream": "predict"}
#: options that only a command line can have, and no file
OF_THE_LINE = ("help", "help_all", "dry_run", "dry_run_rows")
#: options whose values are Python objects, which a file cannot hold
_NOT_IN_FILES = ("observer",)
#: options whose values in the file and in the call (or on the command line) are merged
MERGED = ("user_params", "env", "defaults")
#: merged options -> the command's option for files with such keys; a key given directly wins over the same key in such a file
FILES = {"user_params": "params_file", "env": "env_file"}
#: how many keys of one place a message names
_NAMED = 5
#: options for interpreters, which may be names instead of paths: `python_env` takes a name of akrunner's (tf1.15) or of a
#: program on PATH, `flink_worker_python` the name of a program on the TaskManagers' PATH
_PYTHON, _FAR_PYTHON = "python_env", "flink_worker_python"
#: the option that takes a directory, or a word
_BAD_ROWS = "bad_rows"
_ENVIRONMENT = re.compile(r"tf[0-9][0-9.]*")
#: bytes of the longest job file
_LONGEST = 1 << 20
#: how deep tables and lists may be nested
_DEEPEST = 100
#: how many characters of a wrong value an error shows
_SHOWN = 100
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: an error of Python's TOML reader -> plainer words
_OF_TOML = {
    "Cannot overwrite a value": "a key is given twice",
    "Illegal character '\\n'": "a text in quotes does not end on its line",
    "Invalid value": "that is no value; text stands in quotes",
}
#: types of the options whose texts are paths, or are paths if they have a "/" (`_whole` decides)
_PATHS = ("ScriptLike", "ModelLike", "PathLike", "PathLike | None", "SequenceNotStr[PathLike]", "WatchLike | None", "Any")


@dataclass(frozen=True)
class JobFile:
    """The contents of a job file.

    Attributes:
        path: absolute path of the file.
        verb: the verb that the file names, "" if it names none.
        options: the verb's options, with absolute paths.
        lines: key -> its line, counted from 1; also for keys of a table: "user_params.lr".
    """

    path: str
    verb: str
    options: Mapping[str, Any]
    lines: Mapping[str, int]

    def where(self, key: str) -> str:
        """Return the file's name and the line of a key: "job.toml:3"."""
        return f"{os.path.basename(self.path)}:{self.lines.get(key, 1)}"


def is_job_file(given: Any) -> bool:
    """Whether a value given as a script, or model, is the name of a job file: whether it ends in .toml."""
    try:
        path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    except Exception:
        # the check of the script's path will say what is wrong with it
        return False
    return isinstance(path, str) and path.lower().endswith(ENDING)


def read(path: Any, verb: str, known: Sequence[str] = ()) -> JobFile:
    """Read and check a job file.

    Args:
        path: the file, as the user gave it.
        verb: the verb that is called.
        known: names of further options that the file may have beside the verb's.
    Raises: ConfigError: the file does not exist, is no TOML, or has a key or a value that the verb does not take; the error
        names the line.
    """
    name = os.path.abspath(os.path.expanduser(check_path("script", path)))
    if not os.path.exists(name):
        raise ConfigError(f"there is no job file {path}{nearest_file(os.fspath(path))}")
    with ours(ConfigError, f"job file {name}"):
        data = argument_files.read(name, _LONGEST + 1)
        if len(data) > _LONGEST:
            raise ConfigError(f"job file {name} has more than {_LONGEST:,} bytes")
        text = argument_files.decoded(data)
        found = _parsed(text, name)
    lines = _lines(text)
    deep = next((key for key, value in found.items() if _is_deep(value)), None)
    if deep is not None:
        raise ConfigError(f"{name}:{lines.get(deep, 1)}: {deep} is nested more than {_DEEPEST} deep")
    said = found.pop(VERB, "")
    if said not in ("", *HEADS) or said == "plan":
        raise ConfigError(
            f"{name}:{lines.get(VERB, 1)}: verb is {shown(said)}; it is run, train, stream, predict or predict_stream{_near(said)}"
        )
    meant = said or "run" if verb == "plan" else verb
    if said and said != meant and {said, meant} != {"predict", "predict_stream"}:
        raise ConfigError(
            f"{name}:{lines[VERB]}: the job is of {said}, not of {meant}: akrunner {said.partition('_')[0]} {path}"
        )
    variables = _variables(found.pop(SUBSTITUTE, []), f"{name}:{lines.get(SUBSTITUTE, 1)}")
    file = JobFile(name, said, {}, lines)
    taken = {one.name: one for one in of_verb(meant) if one.name not in _NOT_IN_FILES}
    options = {**{one: named(one) for one in known}, **taken}
    values: dict[str, Any] = {}
    for key, value in found.items():
        at = f"{name}:{lines.get(key, 1)}"
        if isinstance(value, dict) and key not in {*taken, *known} and set(value) & {*taken, *known}:
            raise ConfigError(
                f"{at}: [{key}] is no option: write what stands in it ahead of the first [...], without that line"
            )
        if key not in taken and key not in known:
            raise ConfigError(f"{at}: {misfit([key], meant, [*taken, *known, VERB, SUBSTITUTE])}")
        value = _substituted(value, variables)
        _check_kind(at, options[key], value)
        inside = value if isinstance(value, dict) else {}
        places = {one: f"{name}:{lines.get(f'{key}.{one}', lines.get(key, 1))}" for one in inside}
        _check_digits(at, key, value, places)
        if key in ("env", "user_params"):
            value = _texts(places, value) if key == "env" else _params(places, value)
        values[key] = _whole(options[key], value, os.path.dirname(name))
    head = HEADS[meant]
    if head not in values:
        raise ConfigError(f'{name}: the file names no {head}: {head} = "..."')
    if is_job_file(values[head]):
        raise ConfigError(f"{name}:{lines.get(head, 1)}: {head} is another job file; name the {head} itself")
    return JobFile(name, file.verb, values, lines)


def _parsed(text: str, name: str) -> dict[str, Any]:
    """Parse TOML. Raises: ConfigError: the text is no TOML; the error names the line, if it is known."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        told, at, place = str(e).partition(" (at line ")
        # `place` is "4, column 16)"; or it is empty, if the message ends in "(at end of document)"
        line = place.partition(",")[0] if at else ""
        why = _OF_TOML.get(told, told[:1].lower() + told[1:])
        raise ConfigError(f"{name}:{line or text.count(chr(10)) + 1}: the file is no TOML: {why}") from None
    except ValueError:
        # Python reads no number of so many digits
        long = next((at for at, one in enumerate(text.splitlines(), 1) if re.search(r"[0-9_]{4300}", one)), 1)
        raise ConfigError(f"{name}:{long}: a number has thousands of digits; write it as text") from None
    except RecursionError:
        raise ConfigError(f"job file {name}: a value is nested more than {_DEEPEST} deep") from None


def check_kept(file: str, values: Mapping[str, Any]) -> None:
    """Check that a job does not replace its own job file with an output.

    Args: file: path of the job file; values: the job's options, from the file and from the call.
    Raises: ConfigError: `output`, `model_out` or `report` is the job file.
    """
    for name in ("output", "model_out", "report"):
        written = values.get(name)
        if isinstance(written, (str, os.PathLike)):
            check_replaces_nothing(name, written, [("the job file itself", file)])


def _is_deep(value: Any) -> bool:
    """Whether tables and lists are nested more than `_DEEPEST` deep."""
    inside = [value]
    for _ in range(_DEEPEST):
        inside = [
            one
            for held in inside
            for one in (held.values() if isinstance(held, dict) else held if isinstance(held, list) else ())
            if isinstance(one, (dict, list))
        ]
    return bool(inside)


def head_of(verb: str) -> str:
    """Return the option in whose place a verb (or its `plan_` verb) takes a job file, "" if it takes none."""
    return HEADS.get(verb.removeprefix("plan_"), "")


def given(value: Any) -> Any:
    """Return the script, or model, unchanged. For type checkers: it is never None, as `from_file` requires it or a job file."""
    return value


def from_file(verb: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that lets a verb's function take a job file, in place of its script or model, or as `job=`.

    Arguments given beside the file win over the file's values.
    """
    head = HEADS[verb]
    names = next(one.positional for one in VERBS if one.name == verb)

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **options: P.kwargs) -> R:
            if options.get(JOB, "") is None:
                options = {name: value for name, value in options.items() if name != JOB}  # type: ignore[assignment]
            has_head = bool(args) or head in options
            if JOB in options:
                if has_head:
                    raise ConfigError(f"job= and {head}= are both given; a job file says its {head} itself")
                if not is_job_file(options[JOB]):
                    raise ConfigError(f"job must be a job file, a name that ends in {ENDING}, not {shown(options[JOB])}")
                # pass the file on under the name of the option in whose place it is given
                options = {head if name == JOB else name: value for name, value in options.items()}  # type: ignore[assignment]
            elif not has_head and misfit(options, verb, [one.name for one in of_verb(verb)]) is None:
                raise CallError(f"akrunner.{function.__name__}: {head}= is missing, or a job file in its place (job=)")
            first = args[0] if args else options.get(head)
            if not is_job_file(first):
                return function(*args, **options)
            beside: dict[str, Any] = {**dict(zip(names, args)), **options}
            del beside[head]
            file = read(first, str(beside.get(VERB) or verb))
            both = [name for name in MERGED if file.options.get(name) and isinstance(beside.get(name), Mapping)]
            joined = {name: {**file.options[name], **beside[name]} for name in both}
            whole: dict[str, Any] = {**file.options, **beside, **joined}
            check_kept(file.path, whole)
            if verb == "plan" and file.verb:
                whole.setdefault(VERB, file.verb)
            try:
                made = function(**whole)  # type: ignore[call-arg]
            except ConfigError as e:
                givers = {name: {key: "" if key in beside[name] else name for key in joined[name]} for name in both}
                raise located(e, file, beside, givers)
            if not function.__name__.startswith("plan"):
                return made
            return dataclasses.replace(made, given=tuple(_origins(whole, file, beside, joined)))  # type: ignore[type-var]

        return called

    return wrapped


def _origins(
    whole: Mapping[str, Any], file: JobFile, beside: Mapping[str, Any], joined: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return for each option of a call where its value came from: "num_workers: the call"."""
    here = dict.fromkeys(beside, "the call")
    for name in joined:
        theirs = beside[name]
        here[name] = contributions(
            {"the call": list(theirs), "the job file": [key for key in file.options[name] if key not in theirs]}
        )
    return [f"{name}: {here.get(name, 'the job file')}" for name in whole if name != VERB]


def contributions(places: Mapping[str, Sequence[str]]) -> str:
    """Return which places gave which keys, "-p (lr) and the job file (x, y)", or the place's name alone if only one gave any.

    Args: places: name of each place -> the keys that it gave.
    """
    told = [(place, keys) for place, keys in places.items() if keys]
    if len(told) == 1:
        return told[0][0]
    words = [
        f"{place} ({', '.join(keys[:_NAMED])}{f' and {len(keys) - _NAMED} more' if len(keys) > _NAMED else ''})"
        for place, keys in told
    ]
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])


def _lines(text: str) -> dict[str, int]:
    """Return the line of each key of a TOML text; a key of a table is named "user_params.lr"."""
    found: dict[str, int] = {}
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        table = re.match(r"\s*\[\s*[\"']?([^]\"'.]+)", line)
        key = re.match(r"\s*[\"']?([^][\"'=#.]+?)[\"']?\s*[.=]", line)
        if table:
            inside = table[1].strip()
            found.setdefault(inside, number)
        elif key and not inside:
            found.setdefault(key[1], number)
            own = re.match(r"\s*[\"']?[A-Za-z0-9_-]+[\"']?\s*\.\s*[\"']?([A-Za-z0-9_-]+)", line)
            if own:
                found.setdefault(f"{key[1]}.{own[1]}", number)
        elif key:
            found.setdefault(f"{inside}.{key[1]}", number)
    return found


def _near(verb: Any) -> str:
    """Return a hint that names the verb nearest to a word that is no verb."""
    return nearest(verb, [one for one in HEADS if one != "plan"])


def _variables(names: Any, at: str) -> dict[str, str]:
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f'{at}: substitute lists the environment variables that ${{NAME}} may stand for: ["DAY", "BUCKET"]')
    for one in names:
        if one not in os.environ:
            raise ConfigError(
                f"{at}: the environment variable {one} is not set, and the job file says that it is needed (substitute)"
            )
        if not os.environ[one]:
            # with an empty value, "${DAY}.csv" would be a hidden file, and "out/${RUN}" the directory of all runs
            raise ConfigError(
                f"{at}: the environment variable {one} is set and empty, and the job file says that it is needed (substitute)"
            )
    return {one: os.environ[one] for one in names}


def _substituted(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace ${NAME} in all texts of a value by the variables' values; variables that are not listed stay as they are."""
    if isinstance(value, str) and variables:
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [_substituted(one, variables) for one in value]
    if isinstance(value, dict):
        return {key: _substituted(one, variables) for key, one in value.items()}
    return value


def kinds_of(option: Option) -> tuple[str, ...]:
    """Return the types that an option's value may have in a job file, by their names in JSON Schema."""
    kind = option.type.removesuffix(" | None")
    if option.many and not option.verbs:
        # an option of the command alone, which can be given several times on a command line
        return ("string", "array")
    if kind in ("bool", "int", "float"):
        return ({"bool": "boolean", "int": "integer", "float": "number"}[kind],)
    if kind.startswith("Sequence"):
        return ("array",)
    if kind.startswith("Mapping"):
        return ("object",)
    if kind in ("SchemaLike", "SplitLike", "CsvLike"):
        return ("string", "object")
    if kind.startswith("int | str"):
        return ("string", "integer")
    return ("string", "array") if kind == "Any" else ("string",)


_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list of texts",
    "object": "a table",
    "string": "text",
}


def _check_kind(at: str, option: Option, value: Any) -> None:
    kinds = kinds_of(option)
    right = {
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "array": isinstance(value, list) and all(isinstance(one, str) for one in value),
        "object": isinstance(value, dict),
        "string": isinstance(value, str),
    }
    if not any(right[kind] for kind in kinds):
        raise ConfigError(f"{at}: {option.name} = {_written(value)}: give {' or '.join(_WORDS[kind] for kind in kinds)}")
    # the functions themselves check the range of their options
    if not option.verbs and option.least is not None and value < option.least:
        raise ConfigError(f"{at}: {option.name} = {_written(value)}: there must be at least {option.least}")


def _check_digits(at: str, key: str, value: Any, places: Mapping[str, str]) -> None:
    """Check that Python can write the numbers of a value as text: its TOML reader reads longer ones, in hexadecimal digits.

    Args: at: the line of the key, "job.toml:3"; places: as for `_texts`, if the value is a table.
    Raises: ConfigError: a number has thousands of digits.
    """
    for name, inner in value.items() if isinstance(value, dict) else ():
        if has_long_number(inner):
            how = "write it as text" if key in MERGED else "give a smaller one"
            raise ConfigError(f"{places[name]}: {key}: {name} = {_written(inner)}: a number has thousands of digits; {how}")
    if has_long_number(value):
        raise ConfigError(f"{at}: {key} = {_written(value)}: a number has thousands of digits; give a smaller one")


def _texts(places: Mapping[str, str], variables: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables as texts, with numbers written as text.

    Args: places: name -> the line of the variable, "job.toml:3".
    Raises: ConfigError: a value is neither text nor a number.
    """
    for name, value in variables.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ConfigError(f'{places[name]}: env: {name} = {_written(value)}: an environment variable is text: {name} = "1"')
    return {name: str(value) for name, value in variables.items()}


def _params(places: Mapping[str, str], params: Mapping[str, Any]) -> Any:
    """Return params that JSON can hold, with dates and times as their texts.

    Args: places: name -> the line of the param, as for `_texts`.
    Raises: ConfigError: a number is nan or inf.
    """
    for name, value in params.items():
        try:
            json.dumps(without_times(value), allow_nan=False)
        except ValueError:
            raise ConfigError(
                f"{places[name]}: user_params: {name} = {_written(value)}: JSON, in which a script gets its params, has no "
                "nan and no inf; write it as text, and make it a number in the script"
            ) from None
    return without_times(params)


def _written(value: Any) -> str:
    """Return a value about as the TOML file has it, cut to its first `_SHOWN` characters."""
    if isinstance(value, list):
        made = f"[{', '.join(map(_written, value))}]"
    elif isinstance(value, dict):
        made = f"{{{', '.join(f'{key} = {_written(one)}' for key, one in value.items())}}}"
    elif isinstance(value, (bool, str)):
        made = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, int):
        # Python writes no more than some thousand digits
        made = hex(value) if value.bit_length() > _SHOWN * 4 else str(value)
    else:
        made = str(without_times(value))
    return made[:_SHOWN]


def without_times(value: Any) -> Any:
    """Return a value that JSON can hold: TOML's dates and times become texts (ISO 8601), however deep they are nested."""
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value


def located(
    error: ConfigError, file: JobFile, elsewhere: Collection[str], givers: Mapping[str, Mapping[str, str]]
) -> ConfigError:
    """Add the job file's line to an error, if the error begins with an option, or its flag, whose value came from the file.

    Args:
        error: the error, which is changed and returned.
        elsewhere: options that were also given outside of the file.
        givers: for each merged option: key -> the option of the file that gave the key, "" if it came from outside of the file.
    """
    words = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    begins = re.match(r"(--[a-z-]+|[a-z_]+)(?=\b(\[[^\]]*\])?[=: (])", words)
    if begins is None:
        return error
    flag = begins[0]
    name = next((one for one in file.options if flag[:2] == "--" and flag in named(one).words), flag)
    key = key_of(words[len(flag) :], givers.get(name, ()))
    if key is not None:
        place = givers[name][key]
    else:
        # an error about a value from the command line names the flag, an error about a value of the file the name in the file
        is_own = name not in elsewhere or (name in FILES.values() and flag == name)
        place = name if name in file.options and is_own else ""
    if place:
        line = file.lines.get(f"{place}.{key}", file.lines.get(place, 1))
        # what are no lines of a file are the values of a run that was kept (`of_values`)
        where = f"{file.path}:{line}" if file.lines else file.path
        error.args = (f"{where}: {name}{words[len(flag) :]}", *error.args[1:])
    return error


def key_of(words: str, keys: Iterable[str]) -> str | None:
    """Return which of an option's keys an error is about: the first it has in quotes, or else without quotes; None: no key."""
    for form in (repr, str):
        places = [(at, -len(key), key) for key in keys if (at := re.search(rf"(?<!\w){re.escape(form(key))}(?!\w)", words))]
        if places:
            return min((at.start(), longer, key) for at, longer, key in places)[2]
    return None


def _whole(option: Option, value: Any, folder: str) -> Any:
    """Return an option's value with absolute paths: the paths in a job file are relative to the file's directory, `folder`."""
    if option.type not in _PATHS:
        return value
    if isinstance(value, list):
        return [_whole(option, one, folder) for one in value]
    if not isinstance(value, str) or value in ("", "-") or "://" in value or value.startswith("/"):
        return value
    if value.startswith("~"):
        return os.path.expanduser(value)
    path = os.path.join(folder, value)
    return value if "/" not in value and _is_called(option.name, value, path) else path


def placed(name: str, value: Any, folder: str) -> Any:
    """Return an option's value with absolute paths. Args: folder: the directory to which relative paths in it are relative."""
    return _whole(named(name), value, folder)


def of_values(path: str, verb: str, values: Mapping[str, Any]) -> JobFile:
    """Return values that are those of a job file, without a file. Args: path: what errors call it; values: have absolute paths."""
    return JobFile(path, verb, dict(values), {})


def _is_called(option: str, value: str, path: str) -> bool:
    """Whether a word without a slash is the name of an interpreter, or says what to do, and is no path. Args: path: the path it
    would be."""
    if option == _BAD_ROWS:
        return value in ("fail", "skip")
    if option == _FAR_PYTHON:
        # the name is looked up on the PATH of another machine
        return True
    return option == _PYTHON and (
        _ENVIRONMENT.fullmatch(value) is not None or (not os.path.exists(path) and shutil.which(value) is not None)
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of job files, for editors."""
    properties: dict[str, Any] = {
        VERB: {
            "enum": ["run", "train", "stream", "predict", "predict_stream"],
            "description": "What is done; the command may say it.",
        },
        SUBSTITUTE: {
            "type": "array",
            "items": {"type": "string"},
            "description": "Environment variables that ${NAME} may stand for in texts of this file.",
        },
    }
    rules = []
    for verb in HEADS:
        own = of_verb(verb)
        if verb in _COMMANDS:
            # a file may also have the options that only the command has
            own += tuple(one for one in of_command(_COMMANDS[verb]) if one.name not in OF_THE_LINE)
            names = sorted({VERB, SUBSTITUTE, *(one.name for one in own if one.name not in _NOT_IN_FILES)})
            rules.append(
                {"if": {"properties": {VERB: {"const": verb}}, "required": [VERB]}, "then": {"propertyNames": {"enum": names}}}
            )
        for one in own:
            if one.name in _NOT_IN_FILES or one.name in properties:
                continue
            kinds: list[str] = list(kinds_of(one))
            made: dict[str, Any] = {
                "type": kinds if len(kinds) > 1 else kinds[0],
                "description": one.text or one.help_in(_COMMANDS.get(verb, "")),
            }
            if one.choices:
                made["enum"] = list(one.choices)
            if one.least is not None:
                made["minimum"] = one.least
            if one.most is not None:
                made["maximum"] = one.most
            if one.above is not None:
                made["exclusiveMinimum"] = one.above
            if "array" in kinds:
                made["items"] = {"type": "string"}
            properties[one.name] = made
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A job of akrunner",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "allOf": rules,
    }
