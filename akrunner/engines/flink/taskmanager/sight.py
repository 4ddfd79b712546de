"""Says whether this machine sees the files, or the table of a database, that the host wants it to read, before any row flows."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.threads import Failed, started
from akrunner.foreign import in_words
from akrunner.io.pg_ranges import Ranges
from akrunner.io.shared import DISKS, Place, Store

#: seconds that a store may take to show its files; the host waits longer than that for an agent's answer
_SECONDS = 15.0


def place_from(word: pb.Store) -> Place | Ranges:
    """Return the place, or the table of a database, that `word_of` has turned into a message."""
    if not word.scheme:
        return DISKS
    settings, secrets = json.loads(word.settings), json.loads(word.secrets)
    return Ranges(settings, secrets) if word.scheme == Ranges.scheme else Store(word.scheme, settings, secrets)


def word_of(place: Place | Ranges) -> pb.Store:
    """Return what an agent is told of a place, or of a table of a database."""
    if not isinstance(place, (Store, Ranges)):
        return pb.Store()
    return pb.Store(scheme=place.scheme, settings=json.dumps(dict(place.settings)), secrets=json.dumps(dict(place.secrets)))


def unseen(place: Place | Ranges, files: Sequence[pb.File], failed: Failed) -> str:
    """Return half a sentence that says why files, or a table, cannot be read on this machine; "" if they can. Takes 15 seconds at most.

    Args:
        failed: called if the looking itself breaks.
    """
    found: list[str] = []
    over = threading.Event()

    def look() -> None:
        try:
            found.append(_first_unseen(place, files))
        finally:
            over.set()

    if not place.away:
        return _first_unseen(place, files)
    # a library that waits for a machine that does not answer may wait for minutes
    started("sight", failed, look)
    over.wait(_SECONDS)
    return found[0] if found else f"{place.scheme}:// has not answered within {_SECONDS:g} s"


def _first_unseen(place: Place | Ranges, files: Sequence[pb.File]) -> str:
    if isinstance(place, Ranges):
        return place.unseen()
    for file in files:
        name = place.shown(file.path)
        try:
            seen = place.seen(file.path)
            if place.away and seen.bytes:
                with place.open(file.path) as opened:
                    # who may see a file may not be allowed to read it
                    opened.read(1)
        except FileNotFoundError:
            return f"{name} is not there"
        # anything: pyarrow may be built without a store, or be too old for an argument, or find no Java
        except Exception as e:
            return f"cannot read {name}: {place.hidden(in_words(e))}"
        if seen.bytes != file.bytes:
            return f"{name} has {seen.bytes:,} bytes there, and {file.bytes:,} here"
    return ""
