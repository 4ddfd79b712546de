"""The parts that the rules of `advice` share: the type of a piece of advice, the shares of time that the rules use, and
facts about a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.engines.inputs import blame
from akrunner.engines.inputs.blame import Blamed
from akrunner.engines.inputs.unseen import TOO_SHORT, in_steps, wait_share

#: share of the time below which a cause is not mentioned
WORTH_SAYING = 0.1
#: the part that is promised of the gain that is possible at best
PROMISED = 0.5
TUNED = "num_parallel_calls=tf.data.AUTOTUNE"
SOURCES = ("TFRecord", "TextLine", "FixedLengthRecord", "Sleep", "CSV", "Range", "TensorSlice")


#: the time that a share is a part of: that of all steps but the first; that of the looks at Python's lines; that of `main`
STEPS, LOOKS, MAIN = "of the steps' time", "of the time since the first step", "of main's time"


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    Attributes:
        rule: the name of the rule that gives the advice.
        share: the share of the time that is lost there.
        saves: the share of the time that the change wins at least. If the advice is only likely, it is only sorted by this.
        what: what is wrong, and where.
        change: what to do.
        likely: "" if the cause is known. If no look was made, and the cause only follows from what the pipeline is made
            of: what would tell for sure.
        of: the time that the shares are parts of.
    """

    rule: str
    share: float
    saves: float
    what: str
    change: str
    likely: str = ""
    of: str = STEPS

    @property
    def words(self) -> str:
        """The advice as one sentence."""
        words = f"{self.what}: {self.change}"
        return f"most likely because {words}; {self.likely} tells for sure" if self.likely else words


def whole(record: Mapping[str, Any]) -> float:
    """Return the time of the steps in seconds, or that of `main` if no steps are known."""
    steps = float(record["wait"] + record["between"])
    return steps if record["known"] and record["by"] and steps > 0 else float(record["main"])


def base(record: Mapping[str, Any]) -> str:
    """Return in words which time `whole` returns."""
    return STEPS if record["known"] and record["by"] and record["wait"] + record["between"] > 0 else MAIN


def spent(record: Mapping[str, Any], what: str) -> tuple[float, int]:
    """Return (seconds, how often) of something other than reading and computing, in the time that `whole` returns."""
    if base(record) == STEPS:
        return in_steps(record, what)
    return float(record["spent"].get(what, 0.0)), record.get("times", {}).get(what, 0)


def for_it(record: Mapping[str, Any]) -> float:
    """Return the share of the time that is waiting for the pipeline that the script waits for most; 0 if the steps took so
    little time that their shares tell nothing, however late the first batch was."""
    return 0.0 if brief(record) else wait_share(record) * float(record.get("part", 1.0))


def brief(record: Mapping[str, Any]) -> bool:
    """Whether the steps, without the first batch, took too little time for a judgement by shares of it."""
    return float(record["wait"] + record["between"]) < TOO_SHORT


def of_passes(node: Blamed, record: Mapping[str, Any]) -> float:
    """Return the share of the waiting in the passes in which a node works. A node behind a cache works in the first pass
    only."""
    return first_pass(record) if behind(node, blame.cache_of(record), record) else 1.0


def behind(node: Blamed, cache: int | None, record: Mapping[str, Any]) -> bool:
    return cache is not None and any(one == node.facts for one in blame.chain_of(record)[cache + 1 :])


def first_pass(record: Mapping[str, Any]) -> float:
    """Return the share of the waiting that was in the first of several passes."""
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
    """Return how many of the batches one pass has, if the script went through as many passes as are known, or else planned.

    For images of `task_config` this follows from the number of rows: a script may end before it has gone through its rows
    as often as it asked for.
    """
    given, rows = record.get("given"), record.get("rows")
    if given and rows and any(one.get("ours") and one.get("images") for one in blame.chain_of(record)):
        return float(record["batches"] * min(1.0, given / rows))
    return float(record["batches"] / (blame.times(record) or blame.planned(record)))


def line_of_python(record: Mapping[str, Any]) -> str:
    """Return words for the line of the Python in a generator or a map, if a look has seen it; else "".

    If several nodes call Python, it is not known which of them calls that line.
    """
    if sum(map(blame.calls_python, blame.chain_of(record))) > 1:
        return ""
    seen = [line for line in record["lines"] if not line["main"]]
    return f" (Python at {blame.place(seen[0]['at'])})" if seen else ""


def outermost(record: Mapping[str, Any]) -> list[str]:
    """Return the kinds of the outermost nodes that a look has seen."""
    return [blame.outermost([kind for kind, _ in blame.kinds(node["path"])]) for node in record["nodes"]]


def is_ahead(record: Mapping[str, Any]) -> bool:
    """Whether a prefetch at the end makes batches ahead.

    A look may see nothing drawn from it, but shows its name all the same. Nodes that only take some of its batches may
    stand above it.
    """
    chain = [blame.plain(node["node"]) for node in blame.chain_of(record)]
    return "Prefetch" in {*outermost(record), blame.outermost([kind for kind in chain if kind not in ("Take", "Skip")])}
