"""New models for a prediction stream while it runs.

::

    the watched path --the watcher's thread looks--> model opened, checked --> a private directory: 1/, 2/, ...
    --a thread of each worker looks--> loaded beside the model in use, which answers until then
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.checks import check_path, check_seconds, shown
from akrunner.errors import AkrunnerError, ConfigError, ModelError
from akrunner.foreign import in_words, ours
from akrunner.io.ak import ak_source
from akrunner.io.paths import local_path
from akrunner.model import SAVED_MODEL, Model, new_folder

Key = tuple[Any, ...]

#: Alink's name of a model of a model stream: its time as digits, to the second and with a fraction
_ID = re.compile(r"\d{15,23}")
_TIMES = ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")
_FILES = (".zip", ".ak", ".tar", ".tar.gz", ".tgz")
_LONGEST_LOG = 1 << 16
_INSTEAD = (
    "copy new models to a directory on this machine, under another name first, or start the stream anew with the new model"
)


@dataclass(frozen=True)
class Watch:
    """Where new models appear, and how often to look.

    Attributes:
        path: a model (a SavedModel's directory, a zip, an .ak file) that is replaced; a directory in which more models appear;
            or the root directory of a model stream of Alink.
        seconds: time between two looks.
        since: models from this time on are taken, "2026-01-31 12:00:00"; None: from now on.
        from_table: makes a model from the rows of an .ak file.
    """

    path: str
    seconds: float = 10.0
    since: str | None = None
    from_table: Callable[[pa.Table], Model] = Model.from_table

    @classmethod
    def of(cls, given: Any, seconds: Any) -> Watch:
        """Make a watch from the arguments that the user gave. Raises: ConfigError: an argument is wrong."""
        if isinstance(given, Watch):
            watch = given
        else:
            watch = cls(check_path("watch", given), seconds)
        check_seconds("watch_seconds", watch.seconds)
        if watch.seconds <= 0:
            raise ConfigError(f"watch_seconds={shown(watch.seconds)}: give more than 0")
        watch.begin()
        return cls(local_path(watch.path, "watch", _INSTEAD), watch.seconds, watch.since, watch.from_table)

    def begin(self) -> datetime.datetime | None:
        """Return `since` as a time, None for None. Raises: ConfigError: it is no time."""
        return None if self.since is None else time_of(self.since, "modelStreamStartTime")


def time_of(text: str, parameter: str) -> datetime.datetime:
    """Parse a time. Raises: ConfigError: the text is no time; the error names the parameter."""
    told = re.sub(r"(\.\d{6})\d+$", r"\1", text.strip())
    for form in _TIMES:
        try:
            return datetime.datetime.strptime(told, form)
        except ValueError:
            continue
    raise ConfigError(f"{parameter}={shown(text)}: write it as 2026-01-31 12:00:00")


@dataclass(frozen=True)
class Found:
    """A model that may be taken.

    Attributes:
        key: orders models by time: a later model has a greater key.
        name: its name in messages.
        path: its path.
        settled: whether it is certainly complete.
    """

    key: Key
    name: str
    path: str
    settled: bool


def look(watch: Watch) -> list[Found]:
    """Return the models that are at the watched path, in the order of their keys; [] if the path does not exist yet."""
    path = watch.path
    if os.path.isfile(path) or _saved(path):
        return [_of_path(path)] if os.path.exists(path) else []
    if not os.path.isdir(path):
        return []
    if os.path.isdir(os.path.join(path, "conf")):
        return _of_stream(path)
    names = [name for name in os.listdir(path) if not name.startswith((".", "_"))]
    found = [os.path.join(path, name) for name in names]
    return sorted((_of_path(one) for one in found if one.endswith(_FILES) or _saved(one)), key=lambda one: one.key)


def _saved(path: str) -> bool:
    return any(os.path.isfile(os.path.join(path, name)) for name in SAVED_MODEL)


def _of_path(path: str) -> Found:
    # the key is made of all files of a directory: while a file is still being copied, the key changes between two looks
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names] or [path]
    states = [os.stat(one) for one in files]
    size, number = sum(state.st_size for state in states), max(state.st_ino for state in states)
    return Found((max(state.st_mtime_ns for state in states), os.path.basename(path), size, number), path, path, False)


def _of_stream(root: str) -> list[Found]:
    """Return the models of a model stream of Alink: a model is complete when its directory and its log are both there."""
    names = [
        name for name in os.listdir(root) if _ID.fullmatch(name) and os.path.isfile(os.path.join(root, "conf", name + ".log"))
    ]
    return sorted(
        (
            Found((name[:14], name[14:].ljust(9, "0")), os.path.join(root, name), os.path.join(root, name), True)
            for name in names
        ),
        key=lambda one: one.key,
    )


def opened(watch: Watch, found: Found) -> Model:
    """Open a model that was found. Raises: ModelError, SourceError: it is no model."""
    if not found.settled and not found.path.endswith(".ak"):
        return Model.from_saved_model(found.path)
    source = ak_source(found.path)
    table = pa.Table.from_batches(list(source.batches()), source.schema)
    if found.settled:
        log = os.path.join(os.path.dirname(found.path), "conf", os.path.basename(found.path) + ".log")
        with ours(ModelError, f"watch: cannot read {log}"), open(log, encoding="utf-8") as f:
            told = json.loads(f.read(_LONGEST_LOG))
        if told.get("count") != table.num_rows:
            raise ModelError(f"watch: {found.path} has {table.num_rows} rows, and its log tells of {told.get('count')}")
    return watch.from_table(table)


class Watcher:
    """A thread that looks for models while a stream runs, and passes them on to the workers in `folder`.

    Args: watch: where to look; check: raises ModelError for a model that does not fit the stream.
    """

    def __init__(self, watch: Watch, check: Callable[[Model], None]) -> None:
        self._watch, self._check = watch, check
        self.folder = new_folder()
        self._number = 0
        self._told: dict[str, None] = {}
        self._stop = threading.Event()
        self._before: dict[Key, Found] = {}
        self._last = self._first_key()
        self._thread = threading.Thread(target=self._run, name="akrunner-watch", daemon=True)

    def _first_key(self) -> Key | None:
        """Return the key that a new model's key must exceed; None: every model is new."""
        begin = self._watch.begin()
        if os.path.isdir(os.path.join(self._watch.path, "conf")):
            at = begin or datetime.datetime.now()
            return (at.strftime("%Y%m%d%H%M%S"), f"{at.microsecond:06d}" + "000" if begin is None else f"{at.microsecond:06d}")
        if begin is not None:
            return (int(begin.timestamp() * 1e9),)
        there = look(self._watch)
        return there[-1].key if there else None

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stop.set()
        self._thread.join()
        leftovers.drop(self.folder)

    def _run(self) -> None:
        while not self._stop.wait(self._watch.seconds):
            try:
                self._look()
                self._answers()
            except OSError as e:
                self._say(f"watch: cannot look at {self._watch.path}: {e.strerror}")

    def _look(self) -> None:
        found = look(self._watch)
        new = [one for one in found if self._last is None or self._is_new(one)]
        # a model that may be incomplete must have the same key in two looks
        ready = [one for one in new if one.settled or one.key in self._before]
        self._before = {one.key: one for one in new}
        if not ready:
            return
        before, self._last = self._last, ready[-1].key
        try:
            model = opened(self._watch, ready[-1])
            self._check(model)
            self._hand_on(model)
        except OSError as e:
            self._last = before  # a full disk, too many files: the next look tries again
            self._say(f"watch: {ready[-1].name} is not taken yet: {_gist(e)}; rows go on with the model before")
        except (AkrunnerError, ValueError, LookupError, TypeError, AttributeError) as e:
            self._say(f"watch: {ready[-1].name} is not taken: {_gist(e)}; rows go on with the model before")

    def _is_new(self, one: Found) -> bool:
        last = self._last or ()
        # a replaced model may be older than the one before, and a directory may have become a model stream, with other keys
        if (one.path == self._watch.path and len(last) > 1) or (last and type(last[0]) is not type(one.key[0])):
            return one.key != last
        return one.key > last

    def _hand_on(self, model: Model) -> None:
        self._number += 1
        place = os.path.join(self.folder, str(self._number))
        try:
            shutil.copytree(model.path, place + ".partial")
            os.rename(place + ".partial", place)
        except BaseException:
            shutil.rmtree(place + ".partial", ignore_errors=True)
            raise
        old = os.path.join(self.folder, str(self._number - 2))
        shutil.rmtree(old, ignore_errors=True)

    def _answers(self) -> None:
        """Warn of models that a worker could not load."""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".failed") and name not in self._told:
                self._told[name] = None
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    self._say(f"watch: a new model could not be loaded: {f.read(2000)}; rows go on with the model before")

    def _say(self, text: str) -> None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _gist(error: BaseException) -> str:
    """Return the first line of an error's text."""
    text = str(error.args[0]) if isinstance(error, AkrunnerError) and error.args else in_words(error)
    return text.splitlines()[0] if text else type(error).__name__


WatchLike = str | os.PathLike[str] | Watch
