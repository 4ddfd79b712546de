"""What the rules of `advice` share: an advice, the shares of time they go by, and where a pipeline stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.engines.inputs import blame
from akrunner.engines.inputs.blame import Blamed
from akrunner.engines.inputs.unseen import wait_share

#: share of the time below which nothing is said of a thing
WORTH_SAYING = 0.1
#: of what could be won at best, what is promised
PROMISED = 0.5
TUNED = "num_parallel_calls=tf.data.AUTOTUNE"
SOURCES = ("TFRecord", "TextLine", "FixedLengthRecord", "Sleep", "CSV", "Range", "TensorSlice")


#: what a share is one of: the time of all steps but the first; that of the looks at Python's lines; that of `main`
STEPS, LOOKS, MAIN = "of the steps' time", "of the time since the first step", "of main's time"


@dataclass(frozen=True)
class Advice:
    """Attributes: rule: its name; share: of the time that goes there; of: which time that is; saves: of it, what the change wins at least (if it is likely, by which
    it is only ranked); what: goes wrong where; change:
    what to do; likely: nobody has looked, and it follows from what the pipeline is made of: what would tell for sure, else ""."""

    rule: str
    share: float
    saves: float
    what: str
    change: str
    likely: str = ""
    of: str = STEPS

    @property
    def words(self) -> str:
        """One sentence."""
        words = f"{self.what}: {self.change}"
        return f"most likely because {words}; {self.likely} tells for sure" if self.likely else words


def whole(record: Mapping[str, Any]) -> float:
    """Seconds of the steps, or of `main` where no steps are known."""
    steps = float(record["wait"] + record["between"])
    return steps if record["known"] and record["by"] and steps > 0 else float(record["main"])


def base(record: Mapping[str, Any]) -> str:
    """In words, what `whole` is."""
    return STEPS if record["known"] and record["by"] and record["wait"] + record["between"] > 0 else MAIN


def for_it(record: Mapping[str, Any]) -> float:
    """Of the time, how much is waiting for the pipeline that is waited for most."""
    return wait_share(record) * float(record.get("part", 1.0))


def of_passes(node: Blamed, record: Mapping[str, Any]) -> float:
    """Of the waiting, how much there was in the passes in which a node works: behind a cache, it is in the first only."""
    return first_pass(record) if behind(node, blame.cache_of(record), record) else 1.0


def behind(node: Blamed, cache: int | None, record: Mapping[str, Any]) -> bool:
    return cache is not None and any(one == node.facts for one in blame.chain_of(record)[cache + 1 :])


def first_pass(record: Mapping[str, Any]) -> float:
    """Of the waiting, how much there was in the first of several passes."""
    nodes = blame.chain_of(record)
    filled = next((one for one in record["pipelines"] if one["nodes"] == nodes and one.get("filled", 0.0) > 0), None)
    if filled is not None:
        return min(1.0, float(filled["filled"]) / max(float(filled["waited"]), 1e-9))
    whole_wait = sum(wait for _, _, wait, _ in record["windows"])
    left, waited = _batches_of_a_pass(record), 0.0
    for _, batches, wait, _ in record["windows"]:
        part = min(1.0, left / batches) if batches else 1.0
        waited += wait * part
        left -= batches * part
        if left <= 0:
            break
    return waited / whole_wait if whole_wait > 0 else 0.0


def _batches_of_a_pass(record: Mapping[str, Any]) -> float:
    """How many of the batches one pass has. Of `task_config`'s images it is known: a script may end before it has gone through its rows as often as it asked for."""
    given, rows = record.get("given"), record.get("rows")
    if given and rows and any(one.get("ours") and one.get("images") for one in blame.chain_of(record)):
        return float(record["batches"] * min(1.0, given / rows))
    return float(record["batches"] / blame.times(record))


def line_of_python(record: Mapping[str, Any]) -> str:
    """Where the Python of a generator or a map is, if somebody has seen it."""
    seen = [line for line in record["lines"] if not line["main"]]
    return f" (Python at {blame.place(seen[0]['at'])})" if seen else ""


def outermost(record: Mapping[str, Any]) -> list[str]:
    """The kinds of the outermost nodes that somebody has looked at."""
    return [blame.outermost([kind for kind, _ in blame.kinds(node["path"])]) for node in record["nodes"]]


def is_ahead(record: Mapping[str, Any]) -> bool:
    """Whether batches are made ahead by a prefetch at the end. It need not be drawn from in a look: its name is there all the same; and what only takes some of its batches
    stands above it."""
    chain = [blame.plain(node["node"]) for node in blame.chain_of(record)]
    return "Prefetch" in {*outermost(record), blame.outermost([kind for kind in chain if kind not in ("Take", "Skip")])}
