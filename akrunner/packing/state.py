"""What is kept in `OUT/.pack`, so that a run that was killed goes on, and the next one packs only what is new.

::

    OUT/.pack/lock                   held while somebody packs
    OUT/.pack/0001/plan.json         what is to be done; once it is there, the index beside it is whole: the plan has its checksum
                   index.arrow       the files, in the order they are written
                   train-00000.tfrecord, train-00000.tfrecord.json     a shard that is done, and what is in it, with its checksum
    OUT/dataset.json                 lists the parts that count; those it does not list are not finished
    OUT/.pack/dataset.json           the same, for the day on which that is gone or damaged

Each JSON file in `.pack` has a checksum of its own (`sealed`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from akrunner.checks import holds_no_files, is_within
from akrunner.errors import SinkError, WriteError
from akrunner.foreign import ours
from akrunner.io.packed import DESCRIPTION, MADE_BY, STATE, VERSION
from akrunner.packing import dataset, sealed
from akrunner.packing.result import counted
from akrunner.packing.shards import PARTIAL

PLAN, INDEX, LOCK = "plan.json", "index.arrow", "lock"
#: files that a warning names
_FEW = 3
#: the directory of a part that holds rows until they are written
BUCKETS = "buckets"
_PART = re.compile(r"[0-9]{4,}")
#: what every plan says, among other things
_SAID = {"kind", "settings", "shards", "rows"}
#: in a plan: the checksum of the index beside it
_SUM = "index"
#: in a plan: the number of its part
_NUMBER = "part"
#: what a run relies on of `dataset.json`, among other things
_TOLD = {"kind", "format", "columns", "labels", "splits", "formats", "settings", "parts", "dealt"}
_ANEW = "bring it back, or pack everything anew with overwrite=True (--overwrite)"


class State:
    """An output directory. Attributes: path; about: its `dataset.json`, None: nothing counts yet."""

    def __init__(self, path: str) -> None:
        """Look at it; nothing is made. Raises: SinkError: it holds something else, or cannot be written."""
        self.path = os.path.realpath(path)
        self._state = os.path.join(self.path, STATE)
        self._harmed = ""
        self._again: list[str] = []
        self._anew: list[str] = []
        with ours(SinkError, f"output: cannot look at {path}"):
            self.about = self._look()

    def _look(self) -> dict[str, Any] | None:
        if holds_no_files(self.path):
            raise SinkError(f"output: {self.path} is the system's own, and keeps no files; name another directory")
        if not os.path.lexists(self.path):
            above = os.path.dirname(self.path)
            while not os.path.lexists(above):
                above = os.path.dirname(above)
            if not os.path.isdir(above):
                raise SinkError(f"output: {above} is a file, so that there can be no {self.path}; name another directory")
            if not os.access(above, os.W_OK | os.X_OK):
                raise SinkError(f"output: nothing may be written in {above}")
            return None
        if not os.path.isdir(self.path):
            raise SinkError(f"output: {self.path} is a file; name a directory")
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise SinkError(f"output: nothing may be written in {self.path}")
        there = os.path.isdir(self._state)
        if there:
            self._check_own()
        held = [name for name in os.listdir(self.path) if name != STATE]
        found, about = self._described()
        if not there and found is None and held:
            raise SinkError(
                f"output: {self.path} holds what pack has not written ({sorted(held)[0]} ...); name a new or an empty directory"
            )
        if about is None and found is None and not self._counted_once():
            return None
        path = os.path.join(self.path, DESCRIPTION)
        if about is None and found is not None and not there and found.get("made_by") == MADE_BY:
            raise SinkError(
                f"output: {path} was edited (its checksum is not that of what it says), and what pack keeps in {self._state}, which has the copy, is gone: "
                "bring that back, or pack into another directory"
            )
        if about is None and found is not None and (not there or found.get("made_by", MADE_BY) != MADE_BY):
            raise SinkError(f"output: {path} is {'' if found else 'damaged, or '}not pack's; name another directory")
        if about is None:
            raise SinkError(
                f"output: {path} {'is gone' if found is None else 'is damaged'}, and {STATE} has nothing to write it from; bring it back, or name another directory"
            )
        if not there:
            raise SinkError(
                f"output: what pack keeps in {self._state} is gone, and without it nobody knows what is packed; bring it back, or name another directory"
            )
        if about.get("version") != VERSION:
            raise SinkError(f"output: {self.path} was packed by another version of akrunner; name another directory")
        return about

    def _check_own(self) -> None:
        """Raises: SinkError: a directory has the place of a file that is written again if it is gone."""
        for folder, name in (
            (self.path, DESCRIPTION),
            (self.path, dataset.LABELS),
            (self._state, DESCRIPTION),
            (self._state, LOCK),
        ):
            if os.path.isdir(path := os.path.join(folder, name)):
                raise SinkError(
                    f"output: {path} is damaged: it is a directory; bring the file back, or remove this: pack writes it again"
                )

    def _described(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """(what `dataset.json` has, {}: nothing that can be read, None: there is none; what counts, by it or, if it is gone or damaged, by its copy, None: by
        neither)."""
        try:
            found = dataset.read(self.path)
        except (ValueError, RecursionError):
            found = {}
        whole = sealed.read(os.path.join(self.path, DESCRIPTION)) is not None
        kept = sealed.read(os.path.join(self._state, DESCRIPTION))
        self._harmed = ""
        if found is not None and found.get("made_by") == MADE_BY:
            # whoever was killed while publishing had written the copy, and not this one
            ahead = kept is None or (kept.get("parts") != found.get("parts") and found.get("version") == VERSION)
            told = _TOLD <= found.keys() and whole
            if kept == found and not whole:
                # the words are the same, and not how they stand there: readers go by the checksum
                self._harmed = "was edited"
                return found, kept
            if kept == found or (ahead and (found.get("version") != VERSION or told)):
                return found, found
        if kept is not None:
            self._harmed = "was gone" if found is None else "was damaged"
        return found, kept

    def _counted_once(self) -> bool:
        """Whether a part has shards in their places of which nothing is kept besides: `dataset.json` had listed them."""
        for number in self._numbers():
            for shard in self.plan(number).get("shards", ()):
                kept = os.path.lexists(self.shard_path(number, shard) + ".json")
                if not kept and os.path.lexists(os.path.join(self.path, shard["file"])):
                    return True
        return False

    def check_apart(self, source: str) -> None:
        """Args: source: a local directory, or file, that is read. Raises: SinkError: the output lies in it."""
        if os.path.isdir(source) and is_within(self.path, os.path.realpath(source)):
            raise SinkError(
                f"output: {self.path} lies in the input {source}, and would be packed the next time; name a directory beside it"
            )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory, and keep others from packing into it. Raises: SinkError: somebody does."""
        with ours(SinkError, f"output: cannot write {self.path}", at=self.path):
            # names of files, which may be URLs with secrets in them, are the owner's
            os.makedirs(self._state, mode=0o700, exist_ok=True)
            os.chmod(self._state, 0o700)
            lock = open(os.open(os.path.join(self._state, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
            os.fchmod(lock.fileno(), 0o600)
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SinkError(f"output: another process packs into {self.path}") from None
            # what was there a moment ago may have become more
            self.about = self._look()
            self._tidy()
            yield

    def leave(self) -> None:
        """Remove what was made, if nothing is in it."""
        with contextlib.suppress(OSError):
            if os.listdir(self._state) == [LOCK] and os.listdir(self.path) == [STATE]:
                shutil.rmtree(self._state)
                os.rmdir(self.path)

    # -- parts

    def parts(self) -> list[int]:
        """The numbers of those that count."""
        return [int(one) for one in (self.about or {}).get("parts", ())]

    def folder(self, part: int) -> str:
        return os.path.join(self._state, f"{part:04d}")

    def _numbers(self) -> list[int]:
        names = os.listdir(self._state) if os.path.isdir(self._state) else ()
        return sorted(int(name) for name in names if _PART.fullmatch(name))

    def unfinished(self) -> int | None:
        """The part that was begun and does not count yet. What was begun before its plan was written is removed, what of it was
        damaged since, and what counts no longer."""
        found, parts = None, self.parts()
        for number in self._numbers():
            if number not in parts:
                begun = number > max([0, *parts])
                harm = self._harm(number)
                if begun and not harm:
                    found = number
                    continue
                if begun and self._has_plan_or_shards(number):
                    self.begins_anew(harm)
                self.drop(number)
        return found

    def _has_plan_or_shards(self, part: int) -> bool:
        """Whether a part was planned, and not only begun."""
        folder = self.folder(part)
        return os.path.isdir(folder) and any(name.endswith(".json") for name in os.listdir(folder))

    def next(self) -> int:
        return max([0, *self._numbers(), *self.parts()]) + 1

    def drop(self, part: int) -> None:
        """Remove a part, and what of it was in its place already."""
        folder = self.folder(part)
        plan = sealed.read(os.path.join(folder, PLAN))
        listed = self.listed()
        for shard in (plan or {}).get("shards", ()):
            if shard["file"] not in listed:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(self.path, shard["file"]))
        shutil.rmtree(folder, ignore_errors=True)

    def begin(self, part: int) -> str:
        """An empty directory for a part. Returns: its path."""
        folder = self.folder(part)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        return folder

    def plan(self, part: int) -> dict[str, Any]:
        return sealed.read(os.path.join(self.folder(part), PLAN)) or {}

    def has_index(self, part: int) -> bool:
        """Whether it was made of files that can be told apart."""
        return os.path.exists(os.path.join(self.folder(part), INDEX))

    def index(self, part: int) -> pa.Table:
        """Mapped, not read: the memory is the system's."""
        with pa.memory_map(os.path.join(self.folder(part), INDEX)) as source:
            return pa.ipc.open_file(source).read_all()

    def result(self, part: int, shard: dict[str, Any]) -> dict[str, Any] | None:
        """What is in a shard that is done; None: it is not."""
        path = self.shard_path(part, shard)
        found = sealed.read(path + ".json")
        if found is None or "rows" not in found:
            return None
        places = [one for one in (path, os.path.join(self.path, shard["file"])) if os.path.exists(one)]
        if found["rows"] and (not places or os.path.getsize(places[0]) != found["bytes"]):
            return None
        return found

    def is_done(self, part: int, shard: dict[str, Any]) -> bool:
        """Whether a run before this one has finished a shard, and every byte of it is as it was written."""
        found = self.result(part, shard)
        if not found or not found["rows"]:
            return found is not None
        path = self.shard_path(part, shard)
        return sealed.is_of(path if os.path.exists(path) else os.path.join(self.path, shard["file"]), found.get("sum"))

    def notes_again(self, part: int, shards: Iterable[dict[str, Any]]) -> None:
        """Note which of those that are made now a run before this one had finished, so that it can be said."""
        self._again += [shard["file"] for shard in shards if os.path.lexists(self.shard_path(part, shard) + ".json")]

    def begins_anew(self, why: str) -> None:
        """Note that what was begun cannot go on."""
        self._anew.append(why)

    def redone(self) -> list[str]:
        """What is to be said of what this run had to make a second time."""
        told = [f"what an earlier run had begun was packed from its beginning: {why}" for why in self._anew]
        if self._again:
            one, few = len(self._again) == 1, ", ".join(self._again[:_FEW]) + (" ..." if len(self._again) > _FEW else "")
            told.append(
                f"{counted(len(self._again), 'file')} that an earlier run had finished {'was' if one else 'were'} gone or damaged, and {'was' if one else 'were'} made again: {few}"
            )
        return told

    def shard_path(self, part: int, shard: dict[str, Any]) -> str:
        return os.path.join(self.folder(part), shard["file"].replace("/", "-"))

    def finished(self, part: int, shard: dict[str, Any], result: dict[str, Any]) -> None:
        """A shard is there: say what is in it."""
        sealed.write(self.folder(part), os.path.basename(self.shard_path(part, shard)) + ".json", result)

    def save(self, part: int, plan: dict[str, Any]) -> None:
        """A part's plan, with the checksum of the index, if there is one."""
        index = os.path.join(self.folder(part), INDEX)
        plan = {**plan, _NUMBER: part}
        sealed.write(self.folder(part), PLAN, {**plan, _SUM: sealed.sum_of(index) if os.path.exists(index) else None})

    def note(self, part: int, plan: dict[str, Any]) -> None:
        """Say more of a part than its plan did."""
        with ours(WriteError, f"output: cannot write {self.path}", at=self.path):
            sealed.write(self.folder(part), PLAN, plan)

    def clear(self, part: int) -> None:
        """Remove what a run that was killed had begun to write, and what is no file where one is to be."""
        folder = self.folder(part)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            if name.endswith(PARTIAL) and not os.path.isdir(path):
                with contextlib.suppress(OSError):
                    os.remove(path)
            elif name != BUCKETS and os.path.isdir(path):
                # it has the place of a shard, or of its record
                shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def _read(path: str) -> Any:
        """What a file of JSON has; None: there is none, or it is damaged."""
        try:
            with open(path, encoding="utf-8") as stream:
                return json.load(stream)
        except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
            return None

    # -- what counts

    def listed(self) -> set[str]:
        """The files `dataset.json` lists."""
        splits = (self.about or {}).get("splits", {})
        return {one["name"] for split in splits.values() for one in split["files"]}

    def check_files(self, verify: bool) -> None:
        """Args: verify: by all of its bytes, and not by its size alone. Raises: SinkError: a file that `dataset.json` lists is gone, or is no longer what was written."""
        for split in (self.about or {}).get("splits", {}).values():
            for one in split["files"]:
                path = os.path.join(self.path, one["name"])
                size = os.path.getsize(path) if os.path.isfile(path) else None
                if size != one["bytes"]:
                    what = "is gone" if size is None else f"has {size:,} bytes, and {one['bytes']:,} were written"
                    raise SinkError(f"output: {path} {what}; {_ANEW}")
                if verify and not sealed.is_of(path, one.get("checksum")):
                    what = (
                        "is damaged: its bytes are not those that were written"
                        if "checksum" in one
                        else "has no checksum, as an earlier akrunner has written it"
                    )
                    raise SinkError(f"output: {path} {what}; {_ANEW}")
        for part in self.parts():
            if harm := self._harm(part):
                raise SinkError(f"output: {harm}; {_ANEW}")
        for part in self._numbers():
            if part not in self.parts() and self._is_copy(part):
                raise SinkError(
                    f"output: {self.folder(part)} is a copy of another directory of {STATE}, whose rows would be packed twice; remove it: nothing counts that is in it"
                )

    def _is_copy(self, part: int) -> bool:
        """Whether a part that does not count was made by somebody else, of one that does, or that was begun."""
        plan, listed = self.plan(part), self.listed()
        return plan.get(_NUMBER, part) != part or any(shard["file"] in listed for shard in plan.get("shards", ()))

    def _harm(self, part: int) -> str:
        """What a part lacks of what is kept of it, or what of that is damaged; "": nothing."""
        path, index = (os.path.join(self.folder(part), name) for name in (PLAN, INDEX))
        plan = sealed.read(path)
        if plan is None and os.path.lexists(path) and isinstance(older := self._read(path), dict):
            if _SAID <= older.keys() and "checksum" not in older:
                return f"{path} has no checksum, as an earlier akrunner has written it"
        if plan is None or not _SAID <= plan.keys():
            return f"{path} {'is damaged' if os.path.lexists(path) else 'is gone'}"
        if plan.get(_NUMBER, part) != part:
            return f"{path} is that of another part"
        if not os.path.lexists(index):
            # tables that are not read from files have none
            return "" if "table" in plan and not plan.get("indexed") else f"{index} is gone"
        try:
            # what is as it was written was whole then
            return "" if plan.get(_SUM) == sealed.sum_of(index) else f"{index} is damaged"
        except OSError:
            return f"{index} is damaged"

    def lost(self) -> list[str]:
        """What is to be said of `dataset.json` where nothing may be written: that it is to be."""
        path = os.path.join(self.path, DESCRIPTION)
        return [f"{path} {self._harmed}; a run writes it again, as {STATE} has it"] if self._harmed else []

    def mended(self) -> list[str]:
        """Write again what is kept twice, and say so. Raises: SinkError: it is not."""
        if self.about is None:
            return []
        return [*self._mended_description(self.about), *self._mended_labels(self.about)]

    def _mended_description(self, about: dict[str, Any]) -> list[str]:
        path, what = os.path.join(self.path, DESCRIPTION), self._harmed
        with ours(SinkError, f"output: cannot write {path}", at=path):
            if what:
                sealed.write(self.path, DESCRIPTION, about, public=True)
            elif (kept := sealed.read(os.path.join(self._state, DESCRIPTION))) != about:
                if kept is None:
                    path = os.path.join(self._state, DESCRIPTION)
                    what = _harm(path)
                sealed.write(self._state, DESCRIPTION, about)
        self._harmed = ""
        return [f"{path} {what}, and was written again"] if what else []

    def _mended_labels(self, about: dict[str, Any]) -> list[str]:
        path, labels = os.path.join(self.path, dataset.LABELS), about.get("labels")
        found = self._read(path)
        if isinstance(found, list) and found == labels:
            return []
        what = "had other classes than were packed" if isinstance(found, list) else _harm(path)
        with ours(SinkError, f"output: cannot write {path}", at=path):
            dataset.write(self.path, dataset.LABELS, labels)
        return [f"{path} {what}, and was written again"]

    def generation(self, alone: bool) -> int:
        """How often all was packed anew, from 1 on. Args: alone: whether it is going to be."""
        return int((self.about or {}).get("generation", 1)) + (alone and self.about is not None)

    def namer(self, alone: bool) -> Callable[[str, int], str]:
        """(split, number of a new shard) -> the name of its file, without an ending: 00000 and on, 00000-2 and on when all was packed anew, so that no name
        ever means another file, and whoever reads what was there never gets rows of both."""
        generation = self.generation(alone)
        mark = f"-{generation}" if generation > 1 else ""
        first: dict[str, int] = {}

        def name_of(split: str, number: int) -> str:
            if split not in first:
                first[split] = self._next_number(split, mark)
            return f"{split}/{first[split] + number:05d}{mark}"

        return name_of

    def _next_number(self, split: str, mark: str) -> int:
        """Behind all that are there."""
        folder = os.path.join(self.path, split)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        names += [name.rpartition("/")[2] for name in self.listed() if name.startswith(split + "/")]
        stems = [name.partition(".")[0] for name in names]
        numbers = [stem.removesuffix(mark) for stem in stems if stem.endswith(mark)]
        return max([-1, *(int(one) for one in numbers if one.isdecimal())]) + 1

    def _tidy(self) -> None:
        """Remove the files that counted before all was packed anew, if whoever did that was killed in between."""
        for part in self.parts():
            self._remove(self.plan(part).get("removes", ()))

    def _remove(self, names: Iterable[str]) -> None:
        for name in set(names) - self.listed():
            with contextlib.suppress(OSError):
                os.remove(os.path.join(self.path, name))
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(self.path, os.path.dirname(name)))

    def describe(self, about: dict[str, Any]) -> None:
        """Say more of what counts, or something else."""
        with ours(WriteError, f"output: cannot write {self.path}", at=self.path):
            self._write(about)
        self.about = about

    def _write(self, about: dict[str, Any]) -> None:
        """The copy first: all that it lists is there."""
        sealed.write(self._state, DESCRIPTION, about)
        sealed.write(self.path, DESCRIPTION, about, public=True)

    def publish(self, part: int, about: dict[str, Any], alone: bool) -> None:
        """Give every shard its place, then say so in `dataset.json`. Args: alone: nothing that was there counts any longer."""
        with ours(WriteError, f"output: cannot write {self.path}", at=self.path):
            plan = self.plan(part)
            if alone:
                self.note(part, {**plan, "removes": sorted(self.listed())})
            for shard in plan["shards"]:
                source, target = self.shard_path(part, shard), os.path.join(self.path, shard["file"])
                if os.path.exists(source):
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    os.replace(source, target)
            dataset.write(self.path, dataset.LABELS, about["labels"])
            self._write(about)
            self.about = about
            if alone:
                self._tidy()
                for number in self._numbers():
                    if number not in self.parts():
                        shutil.rmtree(self.folder(number), ignore_errors=True)
            for name in os.listdir(self.folder(part)):
                if name not in (PLAN, INDEX):
                    shutil.rmtree(path) if os.path.isdir(path := os.path.join(self.folder(part), name)) else os.remove(path)


def _harm(path: str) -> str:
    """What has become of a file that cannot be read."""
    return "was damaged" if os.path.lexists(path) else "was gone"
