"""Checks of single arguments: each takes a value and returns it as a plain value, or raises if its parameter does not take it.

An error names the parameter and never shows a value that may be a secret. No check opens, makes or starts anything. No check
trusts its value: an object's own methods may raise.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from akrunner.errors import AkrunnerError, ConfigError
from akrunner.foreign import LONG_NUMBER, is_of_digits, redacted
from akrunner.urls import unclear
from akrunner.wire.near import nearest

#: no machine and no cluster can run so many tasks; a larger number is a mistake, and no code may count up to it
MOST_TASKS = 100_000
#: thirty years; an operating system cannot wait much longer
MOST_SECONDS = 1e9
_MOST_COUNT = 2**31 - 1
_LONGEST_PATH = 4096
STDIN = "/dev/stdin"
_STDIN = (STDIN, "/dev/fd/0", "/proc/self/fd/0")
_LONGEST_NAME = 255
#: characters that people do not put in the names of files
_NO_PATH = re.compile(r"[{}\[\]<>\"'`;|*]|-----|://")
#: a path from the root, the current directory or home, or a file name with an ending: an access key looks like none of these
_PATH = re.compile(r"/|~|\.\.?(/|$)|[\w./ -]{0,200}\.[a-z]{1,5}$")
#: bytes of the longest text that Linux takes in the environment or among the arguments of a process
_LONGEST_VARIABLE = 128 << 10
_DEEPEST = 200
_MOST_PARAMS_BYTES = 64 << 20
#: bits of a whole number, some 3,600 digits; Python writes no number of more than 4,300 digits as text
_LONGEST_WHOLE = 12_000
#: what is said of a longer one
_THOUSANDS = "a number of thousands of digits"
#: digits of the largest number that a text may hold: more rows than any table has, and it fits into 64 bits
MOST_DIGITS = 18
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]-]{1,253}")
#: environment variables that akrunner sets itself: with other values, a task's processes would not be found, or a task would
#: join another cluster
OURS = ("AKRUNNER_JOB", "TF_CONFIG")
#: characters of all of a script's arguments together
_MOST_ARGUMENTS = 1 << 20


def of_type(value: Any) -> str:
    """Return the type of a value with its article: "a list", "an int"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def shown(value: Any) -> str:
    """Return a short text for any value, to show in an error, without secrets."""
    try:
        text = repr(value)
    except Exception:
        text = _THOUSANDS if isinstance(value, int) else of_type(value)
    text = redacted(text)
    return text if len(text) <= 80 else text[:60] + f"... ({len(text)} characters)"


def why_not(error: ValueError) -> str:
    """Return the words of an error of `json`: of a number with too many digits, our own."""
    return f"{LONG_NUMBER}; write it as text" if is_of_digits(error) else str(error)


def has_long_number(value: Any) -> bool:
    """Whether a value is a whole number of thousands of digits, or a list or dict of plain values that holds one."""
    if isinstance(value, Mapping):
        return any(map(has_long_number, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(has_long_number, value))
    return isinstance(value, int) and value.bit_length() > _LONGEST_WHOLE


def whole_of(text: str) -> int | None:
    """Return the whole number that ASCII digits write; None if the text is no such number, or has more than 18 digits."""
    digits = text.lstrip("0")
    return int(digits or "0") if text.isascii() and text.isdigit() and len(digits) <= MOST_DIGITS else None


def _check_digits(name: str, value: Any) -> None:
    """Raises: ConfigError: the value is a whole number of thousands of digits."""
    if isinstance(value, int) and has_long_number(value):
        raise ConfigError(f"{name} is {_THOUSANDS}; give text")


def counted(number: int, what: str) -> str:
    """Return a number with its noun, such as "1 file", "2,000 files"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def path_shown(value: str, nothing: str = "something that is no path") -> str:
    """Return the value of an environment variable that should hold a path, to show to people.

    The value may be a secret by mistake, so it is returned only if it exists as a file or clearly looks like a path.
    Args: nothing: the text to return otherwise.
    """
    if not value.isprintable() or len(value) > _LONGEST_PATH:
        return nothing
    if os.path.lexists(value):
        return value
    plain = all(len(part) <= _LONGEST_NAME for part in value.split("/")) and not _NO_PATH.search(value)
    return value if plain and _PATH.match(value) else nothing


def whole_number(name: str, value: numbers.Integral) -> int:
    """Return a whole number as a plain int. Raises: ConfigError: its own methods raise."""
    try:
        return int(value)
    except Exception as e:
        raise ConfigError(f"{name} must be a whole number: its __int__ raised {type(e).__name__}") from e


def check_count(name: str, value: Any, least: int, most: int = _MOST_COUNT) -> int:
    """Return a whole number as a plain int. Raises: ConfigError: the value is no whole number, or not in least..most."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ConfigError(f"{name} must be a whole number, not {shown(value)}")
    whole = whole_number(name, value)
    if whole < least:
        raise ConfigError(f"{name}={shown(whole)}: " + (f"there must be at least {least}" if least else "0 or more"))
    if whole > most:
        raise ConfigError(f"{name}={shown(whole)}: the most is {most}")
    return whole


def check_seconds(name: str, value: Any, none: bool = False, zero: bool = False) -> float | None:
    """Return seconds as a plain number above 0. Args: none: None is allowed; zero: 0 is allowed.

    Raises: ConfigError: the value is no such number, or more than thirty years.
    """
    if value is None and none:
        return None
    needed = "0 or more" if zero else "more than 0"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ConfigError(f"{name}={shown(value)}: give seconds, {needed}")
    try:
        seconds = whole_number(name, value) if isinstance(value, numbers.Integral) else float(value)
    except ConfigError:
        # it is a ValueError, too
        raise
    except (OverflowError, ValueError):
        seconds = math.inf
    except Exception as e:
        raise ConfigError(f"{name} must be seconds: its __float__ raised {type(e).__name__}") from e
    # so that NaN is refused: it is neither below nor above any number, and a wait for NaN seconds would never end
    if not (seconds > 0 or (zero and seconds == 0)):
        raise ConfigError(f"{name}={shown(value)}: give seconds, {needed}")
    if seconds > MOST_SECONDS:
        raise ConfigError(f"{name}={shown(value)}: give at most {MOST_SECONDS:.0f} seconds" + (", or None for no limit" * none))
    return seconds


def check_flag(name: str, value: Any) -> bool:
    """Return the value. Raises: ConfigError: it is neither True nor False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, not {shown(value)}")
    return value


def check_choice(name: str, value: Any, known: Sequence[str], what: str = "give one of") -> None:
    """Check that a value is one of the `known` words. Raises: ConfigError: it is not; the error names the nearest one."""
    if not isinstance(value, str) or value not in known:
        near = nearest(value, known)
        raise ConfigError(f"{name}={shown(value)}: {what} {', '.join(known)}{near}")


def check_text(name: str, value: Any, kind: type[AkrunnerError] = ConfigError) -> str:
    """Return text that is not empty and that a file system, a shell and a log can hold.

    Raises: `kind`: the value is no such text.
    """
    if not isinstance(value, str):
        raise kind(f"{name} must be text, not {shown(value)}")
    if not value.strip():
        raise kind(f"{name} is empty")
    _check_characters(name, value, kind)
    return str(value)


def check_path(name: str, value: Any, kind: type[AkrunnerError] = ConfigError) -> str:
    """Return a path, or URL, as text. Raises: `kind`: the value is no path, or no file system can have such a path."""
    if isinstance(value, (bytes, bytearray)):
        raise kind(f"{name} must be a path as text, not bytes: write os.fsdecode(path)")
    if not isinstance(value, (str, os.PathLike)):
        raise kind(f"{name} must be a path, not {shown(value)}" + ("; write it to a file" if callable(value) else ""))
    try:
        path = os.fspath(value)
    except Exception as e:
        raise kind(f"{name} must be a path: its __fspath__ raised {type(e).__name__}") from e
    if not isinstance(path, str):
        raise kind(f"{name} must be a path as text, not {type(path).__name__}")
    if not path.strip():
        raise kind(f"{name} is empty: give a path")
    _check_characters(name, path, kind)
    size = len(os.fsencode(path))
    if size > _LONGEST_PATH:
        raise kind(f"{name} is a path of {size} bytes; the longest is {_LONGEST_PATH}: {shown(path)}")
    if "://" not in path and any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.split(os.sep)):
        raise kind(f"{name}: a name in the path is longer than {_LONGEST_NAME} bytes: {shown(path)}")
    check_url(name, path, kind)
    return str(path)


def check_stdin(name: str, path: str, kind: type[AkrunnerError] = ConfigError) -> None:
    """Check that a path that is to be read does not mean a stdin that is closed.

    If stdin is closed, akrunner's command puts an empty file in its place, and in another process its file descriptor belongs
    to whichever file the process opened first.
    Raises: `kind`: the path means stdin, and stdin is closed.
    """
    if path not in _STDIN:
        return
    try:
        os.fstat(0)
    except OSError:
        is_there = False
    else:
        # None if stdin was closed when Python started
        is_there = sys.stdin is not None
    if not is_there:
        raise kind(f"{name}: stdin is closed")


def check_url(name: str, path: str, kind: type[AkrunnerError] = ConfigError) -> None:
    """Check a path before a library sees it. Raises: `kind`: it is a URL whose user, password and host cannot be told apart."""
    why = unclear(path)
    if why:
        raise kind(f"{name}: {why}")


def check_paths(name: str, value: Any, kind: type[AkrunnerError] = ConfigError) -> list[str]:
    """Return a list of paths as texts. Raises: `kind`: the value is no list of paths."""
    if isinstance(value, (str, os.PathLike)):
        raise kind(f"{name} must be a list of paths; give [{shown(value)}]")
    return [check_path(f"{name}[{i}]", one, kind) for i, one in enumerate(_listed(name, value, "paths", kind))]


def check_names(name: str, value: Any) -> list[str] | None:
    """Return names of columns, given as a list or as one text with commas; None for None.

    Raises: ConfigError: the value is neither, or a name is there twice.
    """
    if value is None:
        return None
    given = (
        [part.strip() for part in value.split(",")] if isinstance(value, str) else _listed(name, value, "names", ConfigError)
    )
    if not all(isinstance(one, str) and one and "\0" not in one for one in given) or len(set(given)) != len(given):
        raise ConfigError(f"{name}={shown(given)}: give names, each once")
    return given


def _listed(name: str, value: Any, of: str, kind: type[AkrunnerError]) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes, bytearray)):
        raise kind(f"{name} must be a list of {of}, not {shown(value)}")
    if isinstance(value, (set, frozenset)):
        # a set has another order in each run
        raise kind(f"{name} must be a list of {of}, not {of_type(value)}: their order matters, and it has none; give [...]")
    try:
        return list(value)
    except Exception as e:
        raise kind(f"{name} must be a list of {of}: going through it raised {type(e).__name__}") from e


def check_host(name: str, value: Any, empty: bool = True) -> None:
    """Check a host's name or IP address. Args: empty: whether "" is allowed, which means every address.

    Raises: ConfigError: the value is neither a host's name nor an address.
    """
    if not isinstance(value, str) or not ((empty and value == "") or _HOST.fullmatch(value)):
        raise ConfigError(f"{name}={shown(value)}: give a host name or an IP address, without a port")


def check_environment(name: str, env: Any) -> dict[str, str]:
    """Return environment variables as a dict, with numbers written as text. The values may be secrets, and no error shows them.

    Raises: ConfigError: no process can be given such variables, or one of them is set by akrunner itself.
    """
    items = [(key, _written(f"{name}: {shown(key)}", value)) for key, value in _items(name, env)]
    for key, value in items:
        if not isinstance(key, str) or not isinstance(value, str):
            what = (
                f"a name of type {type(key).__name__}"
                if not isinstance(key, str)
                else f"{shown(key)} has a value of type {type(value).__name__}"
            )
            raise ConfigError(f"{name}: {what}: names and values must be text")
        if not key or "=" in key or key.split() != [key]:
            has = "a =" if "=" in key else "a blank"
            raise ConfigError(f"{name}: {shown(key)} is no name of a variable" + (f"; it has {has}" if key else ""))
        for text, what in ((key, "the name"), (value, "the value of")):
            try:
                size = len(os.fsencode(text))
            except UnicodeError:
                raise ConfigError(f"{name}: {what} {shown(key)} has characters that no encoding has") from None
            if "\0" in text:
                raise ConfigError(f"{name}: {what} {shown(key)} has a NUL character")
            if size > _LONGEST_VARIABLE - 1000:
                raise ConfigError(
                    f"{name}: {what} {shown(key)} has {size} bytes, and a variable can have {_LONGEST_VARIABLE}; give it in a "
                    "file (user_files=)"
                )
        if key in OURS:
            raise ConfigError(f"{name}: {key} is set by akrunner itself, for each task; leave it out")
    return dict(items)


def _written(name: str, value: Any) -> Any:
    """Return a number as its text, any other value unchanged. Raises: ConfigError: the number has thousands of digits."""
    _check_digits(name, value)
    return str(value) if type(value) in (int, float) else value


def check_arguments(name: str, given: Any) -> tuple[str, ...]:
    """Return the arguments that follow a program's name on a command line as texts, with numbers and paths written as text.

    Raises: ConfigError: the value is no list of such arguments, or they are longer than 1 MiB together.
    """
    if isinstance(given, str):
        raise ConfigError(f"{name} must be a list, one text for each word: give shlex.split({shown(given)})")
    found = []
    for i, one in enumerate(_listed(name, given, "texts", ConfigError)):
        if isinstance(one, bool) or not isinstance(one, (str, int, float, os.PathLike)):
            raise ConfigError(f"{name}[{i}] must be a text, as on a command line, not {of_type(one)}")
        _check_digits(f"{name}[{i}]", one)
        text = check_path(f"{name}[{i}]", one) if isinstance(one, os.PathLike) else str(one)
        _check_characters(f"{name}[{i}]", text, ConfigError)
        found.append(text)
    if sum(map(len, found)) > _MOST_ARGUMENTS:
        raise ConfigError(f"{name} has more than {_MOST_ARGUMENTS >> 20} MiB; give so much in a file (user_files=)")
    return tuple(found)


def check_settings(name: str, given: Any) -> dict[str, str]:
    """Return a program's own settings as a dict of texts. Raises: ConfigError: the value is no dict of texts."""
    items = _items(name, given)
    for key, value in items:
        if not (isinstance(key, str) and isinstance(value, str)) or "\0" in key + value:
            raise ConfigError(f"{name}: {shown(key)}: names and values must be text")
    return dict(items)


def _items(name: str, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{name} must be a dict, not {shown(value) if not isinstance(value, (str, bytes)) else type(value).__name__}"
        )
    try:
        return list(value.items())
    except Exception as e:
        raise ConfigError(f"{name} must be a dict: going through it raised {type(e).__name__}") from e


def check_params(name: str, given: Any) -> dict[str, Any]:
    """Return params that JSON can hold, as plain dicts and lists. The values may be secrets, and no error shows them.

    Raises: ConfigError: JSON cannot hold a value; the message has the keys that lead to it.
    """
    _items(name, given)
    where: list[tuple[str, Any, int]] = [(name, given, 0)]
    seen = 0
    while where:
        path, value, depth = where.pop()
        seen += 1
        if depth > _DEEPEST:
            raise ConfigError(f"{_cut(path)}: nested more than {_DEEPEST} deep, or in itself; give it in a file (user_files=)")
        if seen > _MOST_PARAMS_BYTES // 8:
            _too_large(name)
        if isinstance(value, Mapping):
            for key, inner in _items(path, value):
                if not isinstance(key, str):
                    _check_digits(f"{_cut(path)} has a key that", key)
                    raise ConfigError(
                        f"{_cut(path)} has the key {shown(key)}: JSON has only text for keys; write {str(key)!r}"
                        if isinstance(key, (bool, int, float))
                        else f"{_cut(path)} has {of_type(key)} for a key: JSON has only text"
                    )
                where.append((f"{path}[{_short(key)}]", inner, depth + 1))
        elif isinstance(value, (list, tuple)):
            where.extend((f"{path}[{i}]", inner, depth + 1) for i, inner in enumerate(value) if not isinstance(inner, str))
        else:
            _check_scalar(path, value)
    try:
        text = json.dumps(given, allow_nan=False, default=dict)
    except (TypeError, ValueError, RecursionError) as e:
        raise ConfigError(f"{name} must hold JSON values only (text, numbers, lists, dicts): {type(e).__name__}") from e
    if len(text) > _MOST_PARAMS_BYTES:
        _too_large(name)
    plain: dict[str, Any] = json.loads(text)
    return plain


class KeyTwice(ValueError):
    """A JSON object has a key twice; Python's `json` would take the last one without an error."""


def once_each(given: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's pairs as a dict, for `json.loads(object_pairs_hook=)`. Raises: KeyTwice: a key is there twice."""
    found = dict(given)
    if len(found) < len(given):
        raise KeyTwice(next(key for number, (key, _) in enumerate(given) if key in dict(given[:number])))
    return found


def _check_scalar(path: str, value: Any) -> None:
    if value is None or isinstance(value, (bool, str)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"{_cut(path)} is {float(value)}: JSON has no such number; leave it out, or give text")
        return
    if isinstance(value, int):
        _check_digits(_cut(path), value)
        return
    hint = ""
    if type(value).__module__.partition(".")[0] == "numpy":
        hint = "; write .item()" if getattr(value, "ndim", 1) == 0 else "; write .tolist()"
    elif isinstance(value, (set, frozenset)):
        hint = "; write sorted(...)"
    elif callable(value):
        hint = "; put the function into the script, or a file beside it"
    raise ConfigError(f"{_cut(path)} is {of_type(value)}: give what JSON has (text, numbers, lists, dicts){hint}")


def _too_large(name: str) -> NoReturn:
    raise ConfigError(f"{name} would be more than {_MOST_PARAMS_BYTES >> 20} MiB as JSON; give so much in a file (user_files=)")


def is_within(path: str, directory: str) -> bool:
    """Whether a path is `directory`, or lies in it. Both must be absolute paths without symbolic links."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _check_characters(name: str, text: str, kind: type[AkrunnerError]) -> None:
    if "\0" in text:
        raise kind(f"{name} has a NUL character: {shown(text)}")
    try:
        os.fsencode(text)
    except UnicodeError:
        raise kind(f"{name} has characters that no encoding has: {shown(text)}") from None


def _short(key: str) -> str:
    return repr(key) if len(key) <= 40 else repr(key[:40])[:-1] + "...'"


def _cut(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:100]} ... {path[-60:]}"


def kind_in_words(mode: int) -> str:
    """Return words for what a path that is no regular file is: "a pipe". Args: mode: `st_mode` of `os.stat`."""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}
    return kinds.get(stat.S_IFMT(mode), "a device")


#: how alike two file names must be (of 1) for one to be suggested for the other; high, as a common ending is already a large
#: part of short names
ALIKE = 0.75


def nearest_file(path: str) -> str:
    """Return what an error adds to "there is no FILE".

    Args: path: the file, as the user gave it: what is suggested begins with the same directory.
    Returns: `"; did you mean 'x'?"` if a file beside it has almost this name; that this user may not look into the directory,
        if that is why the file is not seen; else "".
    """
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(path)))
    try:
        os.stat(os.path.join(folder, name))
    except PermissionError:
        return ", as far as this user may look: a directory above it is closed to this user"
    except (OSError, ValueError):
        pass
    try:
        # the name itself is there if it is a link that leads nowhere
        beside = {*os.listdir(folder)} - {name}
    except (OSError, ValueError):
        return ""
    return nearest(name, sorted(beside), ALIKE, before=path.rstrip("/").removesuffix(name))


def check_replaces_nothing(
    name: str,
    written: str | os.PathLike[str],
    others: Iterable[tuple[str, str | os.PathLike[str] | None]],
    kind: type[AkrunnerError] = ConfigError,
) -> None:
    """Check that a file to be written does not replace another file of the job.

    Args:
        name: the option that says where the file is written.
        written: the path of the file.
        others: (what it is in words, path or None) of each other file of the job.
    Raises: `kind`: `written` is one of the others.
    """
    place = os.fspath(written)
    for what, other in others:
        if other is not None and _is_same_file(os.fspath(other), place):
            raise kind(
                f"{name}: {redacted(place)} is {what}, which would be replaced; write to another place "
                f"(--{name.replace('_', '-')})"
            )


def _is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to the same file, and it exists."""
    try:
        return os.path.samefile(os.path.expanduser(one), os.path.expanduser(other))
    except (OSError, ValueError):
        return False


def holds_no_files(path: str) -> bool:
    """Whether a path leads into /proc, /sys or /dev (but not /dev/shm), where an output is lost or cannot be written."""
    real = os.path.realpath(path)
    return not is_within(real, "/dev/shm") and any(is_within(real, folder) for folder in ("/proc", "/sys", "/dev"))
