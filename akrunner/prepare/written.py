"""A check of the files and directories that a job writes: none replaces, or is lost in, another one, or one that the job reads.

::

    output, model_out          are put in place as a whole, when the job succeeds: nothing else may be written in them
    report, metrics_file       files, which are written, or replaced, whatever becomes of the job
    bad_rows, tensorboard, checkpoint_dir, work_dir, mlflow      directories, to which files are added

Only names are compared, before anything is made. The job itself compares its output with its input, its script and its user files
(`akrunner.prepare.job`), when it knows all their files.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from akrunner.checks import check_replaces_nothing, is_within
from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.io.unfinished import is_passed_over

#: options that name what is put in place as a whole, and what only it may hold
_WHOLE = {"output": "the rows", "model_out": "the model", "report": "the page", "metrics_file": "the metrics"}
#: options that name a directory to which files are added
_ADDED = ("bad_rows", "tensorboard", "checkpoint_dir", "work_dir", "mlflow")
#: options of `_WHOLE` and `_ADDED` that the job compares with its input itself
_COMPARED = ("output", "bad_rows")
#: values of `_ADDED` that are words, and no directories
_WORDS = {"bad_rows": ("fail", "skip"), "mlflow": ("databricks", "databricks-uc", "uc")}
#: databases that are one file: three slashes and a path, as in SQLAlchemy
_DATABASE = re.compile(r"(?:sqlite|duckdb):///([^?]+)", re.IGNORECASE)
_FILE = re.compile(r"(?:file|local)://(.+)", re.IGNORECASE | re.DOTALL)
_SHEET = re.compile(r"\?sheet=[^?]+$")
_STREAM = "files://"


def check_written(given: Mapping[str, Any], read: Iterable[tuple[str, Any]] = ()) -> None:
    """Check that what a job writes is apart from its other files.

    Args:
        given: a verb's arguments, or the values of a command's options, by name. Their other checks may be still to come.
        read: (what it is in words, path) of further files that are read.
    Raises: ConfigError: two options name one file, or what one writes would lie in what another one puts in place as a whole, or
        replace or join what is read.
    """
    written = dict(_written(given))
    if not written:
        return
    _check_each_other(written)
    apart = {name: place for name, place in written.items() if name not in _COMPARED}
    if apart:
        _check_read(apart, given, read)


def _written(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (option, path without links) of each file and directory on this machine that is written."""
    for name in (*_WHOLE, *_ADDED):
        value = given.get(name)
        place = _place(value) if not (isinstance(value, str) and value in _WORDS.get(name, ())) else None
        if place is not None:
            yield name, place


def _check_each_other(written: Mapping[str, str]) -> None:
    for whole, holds in _WHOLE.items():
        for name, place in written.items() if whole in written else ():
            if name == whole or not is_within(place, written[whole]):
                continue
            if place == written[whole]:
                raise ConfigError(
                    f"{_shown(name)}: {redacted(place)} is what {_shown(whole)} names, too, and each would replace the other; give "
                    "each a place of its own"
                )
            raise ConfigError(
                f"{_shown(name)}: {redacted(place)} lies in {redacted(written[whole])}, where {_shown(whole)} puts {holds} and nothing "
                "else may be; name a place beside it"
            )


def _check_read(written: Mapping[str, str], given: Mapping[str, Any], read: Iterable[tuple[str, Any]]) -> None:
    """Check that what is written replaces nothing that is read, and does not lie among the input."""
    files = [
        ("the script", given.get("script")),
        ("the model", given.get("model")),
        ("what requirements= names", given.get("requirements")),
        *read,
    ]
    sources = _listed(given.get("source"))
    sent = [("one of user_files=", one) for one in _listed(given.get("user_files"))]
    for name, place in written.items():
        # a model may be trained further, and replaced: it is sent to the tasks before they start
        others = [(what, _place(one)) for what, one in (*files, *(sent if name != "model_out" else ()))]
        check_replaces_nothing(name, place, [(what, one) for what, one in others if one is not None])
        for source in sources:
            _check_input(name, place, source)


def _check_input(name: str, written: str, source: Any) -> None:
    """Check that a file, or directory, is not, and does not lie in, or match, what is read. Args: written: its path without links."""
    text = os.fspath(source)
    if isinstance(text, str) and text.lower().startswith(_STREAM):
        _check_arriving(name, written, text)
        return
    place = _place(source)
    if place is not None and not os.path.exists(place) and isinstance(text, str):
        place = _place(_SHEET.sub("", text))
    if place is None:
        return
    if place == written:
        check_replaces_nothing(name, written, [("the input", place)])
    # what is hidden in a directory is no data
    elif is_within(written, place) and not any(map(is_passed_over, os.path.relpath(written, place).split(os.sep))):
        raise ConfigError(
            f"{name}: {redacted(written)} lies in the input directory {redacted(place)}: the next run would read it, too"
        )
    elif glob.has_magic(place) and not os.path.lexists(place) and fnmatch.fnmatch(written, place):
        raise ConfigError(f"{name}: {redacted(written)} matches the input {redacted(place)}: the next run would read it, too")


def _check_arriving(name: str, written: str, url: str) -> None:
    """Check that a file does not arrive among those of a stream of files. Raises: SourceError: the URL is wrong."""
    # the check of a plain job does without streams
    from akrunner.io.streams.files import arrives

    if name not in _ADDED and arrives(url, written):
        raise ConfigError(
            f"{name}: {redacted(written)} lies in the directory in which files arrive ({redacted(url.partition('?')[0])}), and would be "
            "read as one of them; write to another directory, or name the files to read (?pattern=*.csv)"
        )


def _listed(value: Any) -> list[Any]:
    """Return the paths that an argument gives, one or several; none if it gives something else, such as rows."""
    many = value if isinstance(value, (list, tuple)) else [value]
    return [*many] if all(isinstance(one, (str, os.PathLike)) for one in many) else []


def _place(value: Any) -> str | None:
    """Return the path on this machine that a value names, absolute and without links; None: it names none there."""
    try:
        text = os.fspath(value)
        if not isinstance(text, str) or not text.strip() or text == "-":
            return None
        if "://" in text:
            found = _FILE.fullmatch(text) or _DATABASE.match(text)
            if found is None or "::" in text:
                return None
            text = found[1]
        real = os.path.realpath(os.path.expanduser(text))
    except Exception:
        # its own check says what is wrong with it
        return None
    # a pipe, a terminal and /dev/null are not replaced
    return real if os.path.isfile(real) or os.path.isdir(real) or not os.path.exists(real) else None


def _shown(name: str) -> str:
    """Return an option in words, such as "bad_rows (--bad-rows)"."""
    return f"{name} (--{name.replace('_', '-')})"
