"""The state in `OUT/.pack`, by which a run goes on where a killed one ended, and packs only what is new.

A part is what one run adds to the output.

::

    OUT/.pack/lock                   locked while a run packs
    OUT/.pack/0001/plan.json         the plan of part 1, with the checksum of the index: once it exists, the index is complete
                   index.arrow       the part's files, in the order in which they are written
                   train-00000.tfrecord, train-00000.tfrecord.json     a finished shard, and its record with its checksum
    OUT/dataset.json                 lists the parts that count; those it does not list are unfinished
    OUT/.pack/dataset.json           a copy, for the case that it is gone or damaged

Each JSON file in `.pack` has a checksum of its own (`sealed`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.checks import counted, holds_no_files, is_within, kind_in_words
from akrunner.errors import SinkError, WriteError
from akrunner.folders.words import quoted
from akrunner.foreign import ours
from akrunner.io.packed import DESCRIPTION, MADE_BY, STATE, VERSION
from akrunner.packing import dataset, sealed
from akrunner.packing.shards import PARTIAL

PLAN, INDEX, LOCK = "plan.json", "index.arrow", "lock"
#: how many files a warning names
_FEW = 3
#: the directory in a part's that holds rows of tables until they are written to shards
BUCKETS = "buckets"
_PART = re.compile(r"[0-9]{4,}")
#: keys that every plan has, among others
_SAID = {"kind", "settings", "shards", "rows"}
#: key in a plan: the checksum of the index beside it
_SUM = "index"
#: key in a plan: the number of its part
_NUMBER = "part"
#: keys of `dataset.json` that a run relies on, among others
_TOLD = {"kind", "format", "columns", "labels", "splits", "formats", "settings", "parts", "dealt"}
_ANEW = "bring it back, or pack everything anew with overwrite=True (--overwrite)"


class State:
    """An output directory, with what it has of earlier runs.

    Attributes:
        path: the directory.
        about: the content of its `dataset.json`; None: no part counts yet.
    """

    def __init__(self, path: str) -> None:
        """Look at the directory, and write nothing.

        Raises: SinkError: it holds files that `pack` did not write, or is read-only.
        """
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
                f"output: {path} was edited (its checksum is not that of what it says), and what pack keeps in {self._state}, "
                "which has the copy, is gone: bring that back, or pack into another directory"
            )
        if about is None and found is not None and (not there or found.get("made_by", MADE_BY) != MADE_BY):
            raise SinkError(f"output: {path} is {'' if found else 'damaged, or '}not pack's; name another directory")
        if about is None:
            raise SinkError(
                f"output: {path} {'is gone' if found is None else 'is damaged'}, and {STATE} has nothing to write it from; "
                "bring it back, or name another directory"
            )
        if not there:
            raise SinkError(
                f"output: what pack keeps in {self._state} is gone, and without it nobody knows what is packed; bring it "
                "back, or name another directory"
            )
        if about.get("version") != VERSION:
            raise SinkError(f"output: {self.path} was packed by another version of akrunner; name another directory")
        return about

    def _check_own(self) -> None:
        """Raise a SinkError if a directory, a pipe or the like is at the path of a file that a run writes again if missing."""
        for folder, name in (
            (self.path, DESCRIPTION),
            (self.path, dataset.LABELS),
            (self._state, DESCRIPTION),
            (self._state, LOCK),
        ):
            path = os.path.join(folder, name)
            # a link in the lock's place would have a file made, or its mode changed, wherever it leads
            linked = name == LOCK and os.path.islink(path)
            if linked or sealed.is_no_file(path):
                what = "a link" if linked else kind_in_words(os.stat(path).st_mode)
                raise SinkError(
                    f"output: {path} is damaged: it is {what}; bring the file back, or remove this: pack writes it again"
                )

    def _described(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Read `dataset.json` and its copy.

        Returns:
            (the content of `dataset.json`; {}: it cannot be read; None: it does not exist,
            the content that counts, which is the copy's if `dataset.json` is gone or damaged; None: neither can be read).
        """
        try:
            found = dataset.read(self.path)
        except (ValueError, RecursionError):
            found = {}
        whole = sealed.read(os.path.join(self.path, DESCRIPTION)) is not None
        kept = sealed.read(os.path.join(self._state, DESCRIPTION))
        self._harmed = ""
        if found is not None and found.get("made_by") == MADE_BY:
            # a run that was killed while it published a part may have written the copy, and not this file
            ahead = kept is None or (kept.get("parts") != found.get("parts") and found.get("version") == VERSION)
            told = _TOLD <= found.keys() and whole
            if kept == found and not whole:
                # the content is the same but is written differently; readers need the checksum to be right
                self._harmed = "was edited"
                return found, kept
            if kept == found or (ahead and (found.get("version") != VERSION or told)):
                return found, found
        if kept is not None:
            self._harmed = "was gone" if found is None else "was damaged"
        return found, kept

    def _counted_once(self) -> bool:
        """Whether some part was published, so that `dataset.json` must have listed it.

        This is so if a shard is at its final path in the output, and its record in the part's directory is gone.
        """
        for number in self._numbers():
            for shard in self.plan(number).get("shards", ()):
                kept = os.path.lexists(self.shard_path(number, shard) + ".json")
                if not kept and os.path.lexists(os.path.join(self.path, shard["file"])):
                    return True
        return False

    def check_apart(self, source: str) -> None:
        """Raise a SinkError if the output lies in the input. Args: source: the local directory or file that is read."""
        if os.path.isdir(source) and is_within(self.path, os.path.realpath(source)):
            raise SinkError(
                f"output: {self.path} lies in the input {source}, and would be packed the next time; name a directory beside it"
            )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory, and keep other runs from packing into it during the `with` block.

        Raises: SinkError: another process packs into it.
        """
        with ours(SinkError, f"output: cannot write {self.path}", at=self.path):
            # only the owner may read the state, as names of files may be URLs with secrets in them
            os.makedirs(self._state, mode=0o700, exist_ok=True)
            os.chmod(self._state, 0o700)
            lock = open(os.open(os.path.join(self._state, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
            os.fchmod(lock.fileno(), 0o600)
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SinkError(f"output: another process packs into {self.path}") from None
            # look again, as another run may have added something since
            self.about = self._look()
            self._tidy()
            yield

    def leave(self) -> None:
        """Remove the directory again, if nothing was written into it."""
        with contextlib.suppress(OSError):
            if os.listdir(self._state) == [LOCK] and os.listdir(self.path) == [STATE]:
                shutil.rmtree(self._state)
                os.rmdir(self.path)

    # -- parts

    def parts(self) -> list[int]:
        """Return the numbers of the parts that count."""
        return [int(one) for one in (self.about or {}).get("parts", ())]

    def folder(self, part: int) -> str:
        return os.path.join(self._state, f"{part:04d}")

    def _numbers(self) -> list[int]:
        names = os.listdir(self._state) if os.path.isdir(self._state) else ()
        return sorted(int(name) for name in names if _PART.fullmatch(name))

    def unfinished(self) -> int | None:
        """Return the part that was begun and does not count yet; None: there is none.

        Other parts that do not count are removed: those without a plan, those that were damaged, and those that counted once.
        """
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
        """Whether a part has a plan or finished shards, and was not only begun."""
        folder = self.folder(part)
        return os.path.isdir(folder) and any(name.endswith(".json") for name in os.listdir(folder))

    def next(self) -> int:
        return max([0, *self._numbers(), *self.parts()]) + 1

    def drop(self, part: int) -> None:
        """Remove a part, and those of its shards that are at their final paths in the output but do not count."""
        folder = self.folder(part)
        plan = sealed.read(os.path.join(folder, PLAN))
        listed = self.listed()
        for shard in (plan or {}).get("shards", ()):
            if shard["file"] not in listed:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(self.path, shard["file"]))
        shutil.rmtree(folder, ignore_errors=True)

    def begin(self, part: int) -> str:
        """Make an empty directory for a part, and return its path."""
        folder = self.folder(part)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        return folder

    def plan(self, part: int) -> dict[str, Any]:
        return sealed.read(os.path.join(self.folder(part), PLAN)) or {}

    def has_index(self, part: int) -> bool:
        """Whether a part has an index: it was made of files, which can be told apart."""
        return os.path.exists(os.path.join(self.folder(part), INDEX))

    def index(self, part: int) -> pa.Table:
        """Return a part's index, mapped into memory and not read, so that the system can take the memory back."""
        with pa.memory_map(os.path.join(self.folder(part), INDEX)) as source:
            return pa.ipc.open_file(source).read_all()

    def result(self, part: int, shard: dict[str, Any]) -> dict[str, Any] | None:
        """Return the record of a finished shard, judged by its size; None: the shard is not finished."""
        path = self.shard_path(part, shard)
        found = sealed.read(path + ".json")
        if found is None or "rows" not in found:
            return None
        places = [one for one in (path, os.path.join(self.path, shard["file"])) if os.path.exists(one)]
        if found["rows"] and (not places or os.path.getsize(places[0]) != found["bytes"]):
            return None
        return found

    def results(self, part: int, shards: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the records of shards that this run has finished, or found finished. Raises: WriteError: some are gone."""
        found = [one for shard in shards if (one := self.result(part, shard)) is not None]
        if len(found) < len(shards):
            raise WriteError(
                f"output: files that were packed are gone from {quoted(self.path)}: something else has removed them, and nothing was "
                "published; once nothing removes them any more, run the same command again: it goes on, or says what is gone and what to do"
            )
        return found

    def is_done(self, part: int, shard: dict[str, Any]) -> bool:
        """Whether an earlier run has finished a shard, and all its bytes are as they were written."""
        found = self.result(part, shard)
        if not found or not found["rows"]:
            return found is not None
        path = self.shard_path(part, shard)
        return sealed.is_of(path if os.path.exists(path) else os.path.join(self.path, shard["file"]), found.get("sum"))

    def has_left_out(self, part: int, shard: dict[str, Any]) -> bool:
        """Whether an earlier run has finished a shard without some of its files, as they were broken or could not be fetched."""
        found = self.result(part, shard) or {}
        return bool(found.get("bad") or found.get("unfetched"))

    def notes_again(self, part: int, shards: Iterable[dict[str, Any]]) -> None:
        """Note which of the shards that are written now an earlier run had finished, for a warning (`redone`)."""
        self._again += [shard["file"] for shard in shards if os.path.lexists(self.shard_path(part, shard) + ".json")]

    def begins_anew(self, why: str) -> None:
        """Note that an unfinished part cannot go on, for a warning (`redone`)."""
        self._anew.append(why)

    def redone(self) -> list[str]:
        """Return warnings about what this run had to pack a second time."""
        told = [f"what an earlier run had begun was packed from its beginning: {why}" for why in self._anew]
        if self._again:
            one, few = len(self._again) == 1, ", ".join(self._again[:_FEW]) + (" ..." if len(self._again) > _FEW else "")
            told.append(
                f"{counted(len(self._again), 'file')} that an earlier run had finished {'was' if one else 'were'} gone or "
                f"damaged, and {'was' if one else 'were'} made again: {few}"
            )
        return told

    def shard_path(self, part: int, shard: dict[str, Any]) -> str:
        return os.path.join(self.folder(part), shard["file"].replace("/", "-"))

    def finished(self, part: int, shard: dict[str, Any], result: dict[str, Any]) -> None:
        """Write the record of a finished shard. Args: result: what is in it."""
        sealed.write(self.folder(part), os.path.basename(self.shard_path(part, shard)) + ".json", result)

    def save(self, part: int, plan: dict[str, Any]) -> None:
        """Write a part's plan, with the checksum of its index if it has one."""
        index = os.path.join(self.folder(part), INDEX)
        plan = {**plan, _NUMBER: part}
        sealed.write(self.folder(part), PLAN, {**plan, _SUM: sealed.sum_of(index) if os.path.exists(index) else None})

    def note(self, part: int, plan: dict[str, Any]) -> None:
        """Replace a part's plan by one that says more."""
        with ours(WriteError, f"output: cannot write {self.path}", at=self.path):
            sealed.write(self.folder(part), PLAN, plan)

    def clear(self, part: int) -> None:
        """Remove the partial files of a part that a killed run left, and directories at paths where files belong."""
        folder = self.folder(part)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            if name.endswith(PARTIAL) and not os.path.isdir(path):
                with contextlib.suppress(OSError):
                    os.remove(path)
            elif name != BUCKETS and os.path.isdir(path):
                # it is at the path of a shard, or of a shard's record
                shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def _read(path: str) -> Any:
        """Return the content of a JSON file; None: it does not exist, or is damaged."""
        if sealed.is_no_file(path):
            return None
        try:
            with open(path, encoding="utf-8") as stream:
                return json.load(stream)
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    # -- what counts

    def listed(self) -> set[str]:
        """Return the names of the files that `dataset.json` lists."""
        splits = (self.about or {}).get("splits", {})
        return {one["name"] for split in splits.values() for one in split["files"]}

    def check_files(self, verify: bool) -> None:
        """Check that the files which `dataset.json` lists, and the state of their parts, are as they were written.

        Args: verify: whether to compare all bytes of a file, and not only its size.
        Raises: SinkError: a file is gone or has changed, or a part's state is damaged, or a copy of another part.
        """
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
                    f"output: {self.folder(part)} is a copy of another directory of {STATE}, whose rows would be packed "
                    "twice; remove it: nothing counts that is in it"
                )

    def _is_copy(self, part: int) -> bool:
        """Whether a part that does not count is a copy of another part, which a person must have made."""
        plan, listed = self.plan(part), self.listed()
        return plan.get(_NUMBER, part) != part or any(shard["file"] in listed for shard in plan.get("shards", ()))

    def _harm(self, part: int) -> str:
        """Return which file of a part's state is missing or damaged, in words; "": none."""
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
            # parts of tables that are not read from files have no index
            return "" if "table" in plan and not plan.get("indexed") else f"{index} is gone"
        if sealed.is_no_file(index):
            return f"{index} is damaged"
        try:
            # the checksum is enough: an index that is as it was written is complete
            return "" if plan.get(_SUM) == sealed.sum_of(index) else f"{index} is damaged"
        except OSError:
            return f"{index} is damaged"

    def lost(self) -> list[str]:
        """Return a warning for a dry run, which writes nothing, that a run will write `dataset.json` again."""
        path = os.path.join(self.path, DESCRIPTION)
        return [f"{path} {self._harmed}; a run writes it again, as {STATE} has it"] if self._harmed else []

    def mended(self) -> list[str]:
        """Write files again that were gone or damaged and whose content is known. Returns: warnings. Raises: SinkError."""
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
        """Return the number of the output's generation: 1, and one more each time that everything is packed anew.

        Args: alone: whether this run packs everything anew.
        """
        return int((self.about or {}).get("generation", 1)) + (alone and self.about is not None)

    def namer(self, alone: bool) -> Callable[[str, int], str]:
        """Return a function (split, number of a new shard) -> name of its file, without an ending.

        Names are 00000, 00001, ..., and in the second generation 00000-2, 00001-2, ...: a name never stands for another file
        later, and a program that reads the old files never gets rows of both generations.
        """
        generation = self.generation(alone)
        mark = f"-{generation}" if generation > 1 else ""
        first: dict[str, int] = {}

        def name_of(split: str, number: int) -> str:
            if split not in first:
                first[split] = self._next_number(split, mark)
            return f"{split}/{first[split] + number:05d}{mark}"

        return name_of

    def _next_number(self, split: str, mark: str) -> int:
        """Return the number behind those of all shards of a split that exist or are listed."""
        folder = os.path.join(self.path, split)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        names += [name.rpartition("/")[2] for name in self.listed() if name.startswith(split + "/")]
        stems = [name.partition(".")[0] for name in names]
        numbers = [stem.removesuffix(mark) for stem in stems if stem.endswith(mark)]
        return max([-1, *(int(one) for one in numbers if one.isdecimal())]) + 1

    def _tidy(self) -> None:
        """Remove files that counted before everything was packed anew, and what parts that count needed to be finished.

        The run that published a part removes them itself, unless it is killed before; then the next run does.
        """
        for part in self.parts():
            self._remove(self.plan(part).get("removes", ()))
            with contextlib.suppress(OSError):
                self._clear_published(part)

    def _remove(self, names: Iterable[str]) -> None:
        for name in set(names) - self.listed():
            with contextlib.suppress(OSError):
                os.remove(os.path.join(self.path, name))
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(self.path, os.path.dirname(name)))

    def describe(self, about: dict[str, Any]) -> None:
        """Write another content of `dataset.json`."""
        with ours(WriteError, f"output: cannot write {self.path}", at=self.path):
            self._write(about)
        self.about = about

    def _write(self, about: dict[str, Any]) -> None:
        """Write the copy of `dataset.json`, then `dataset.json`; all files that they list are at their final paths already."""
        sealed.write(self._state, DESCRIPTION, about)
        sealed.write(self.path, DESCRIPTION, about, public=True)

    def publish(self, part: int, about: dict[str, Any], alone: bool) -> None:
        """Move every shard of a part to its final path, then write `dataset.json`.

        Args: about: the new content of `dataset.json`; alone: whether only this part counts from now on.
        """
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
            self._clear_published(part)

    def _clear_published(self, part: int) -> None:
        """Remove the records of a part's shards, and everything else that no later run needs."""
        folder = self.folder(part)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name not in (PLAN, INDEX):
                shutil.rmtree(path) if os.path.isdir(path := os.path.join(folder, name)) else os.remove(path)


def _harm(path: str) -> str:
    """Return what has happened to a file that cannot be read, in words."""
    return "was damaged" if os.path.lexists(path) else "was gone"
