"""Finds, from a look at an input pipeline, the nodes that the script waits for, and what is known of each.

::

    Root::Prefetch::BatchV2::Map::FlatMap[0]::TFRecord      a node's path in the trace: each node draws from the one behind it
    Batch (train.py:15), Map (train.py:14), TFRecord (:4)   the script's datasets, the outermost first
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: nodes that only hand on what other nodes have made
_PASSIVE = {
    "Root", "Model", "Prefetch", "Options", "Repeat", "FlatMap", "Zip", "Take", "Skip", "Concatenate", "Shard", "Rebatch", "MaxIntraOpParallelism",
    "PrivateThreadPool", "AssertNext", "Optimize", "FiniteTake", "EmptyRepeat", "MemoryCache", "MemoryCacheReader", "Interleave",
}  # fmt: skip
HOW = {"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool", "AssertNext", "Optimize"}
_NODE = re.compile(r"(?P<parallel>Parallel)?(Finite|Forever)?(?P<kind>[A-Za-z]+?)(V\d+|Impl)?(\[\d+\])?$")
#: nodes that read several datasets
SEVERAL = ("FlatMap", "Interleave")
#: nodes that TensorFlow makes of two of the script's datasets -> these two, the outer one first
FUSED = {"MapAndBatch": ("Batch", "Map"), "ShuffleAndRepeat": ("Repeat", "Shuffle")}
#: nodes that may end before what they draw from ends; nodes that make another number of rows of those that they are given
_CUTS, _RECOUNTS = ("Take", "TakeWhile", "Zip"), (
    *SEVERAL, "Unbatch", "Zip", "Concatenate", "Filter", "Skip", "Shard", "Window",
)  # fmt: skip
#: share of the waiting that a node must have to be named
_WORTH_NAMING = 0.15


@dataclass(frozen=True)
class Blamed:
    """One node of a pipeline that the script waits for.

    Attributes:
        kind: Map, Batch, Shuffle...
        path: its path in the trace.
        at: the line that made it, "train.py:31"; "" if no line of the script did.
        share: its share of all the waiting.
        call: seconds of one call.
        calls: how often it is called for one element of the whole pipeline.
        parallel: whether it runs several calls at once.
        facts: what its dataset was told.
        source: the line of the flat_map or interleave that it is in; "" if it is in none.
        ours: whether `task_config`, not the script, made it.
        above: the kinds of the nodes that draw from it.
    """

    kind: str
    path: str
    at: str
    share: float
    call: float
    calls: float
    parallel: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    ours: bool = False
    above: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it runs one call at a time, because it was not told to run several, or was told to run one."""
        return not self.parallel or self.facts.get("parallel") == 1

    @property
    def where(self) -> str:
        """The node and its place in words."""
        return f"`{self.kind}`" + (f" at {place(self.at)}" if self.at else "")


def place(at: str) -> str:
    """Return a line, given as "path:line", as file name and line for people."""
    path, _, line = at.rpartition(":")
    return f"{os.path.basename(path)}:{line}"


def kinds(path: str) -> list[tuple[str, bool]]:
    """Return for each node of a path its kind, and whether it is a parallel node."""
    found = []
    for part in path.split("::"):
        match = _NODE.match(part)
        kind, parallel = (match["kind"], bool(match["parallel"])) if match else (part, False)
        found.append((kind, parallel))
    return found


def outermost(nodes: Sequence[str]) -> str:
    """Return the kind of the first node that does something; "" if there is none. The nodes in `HOW` only set options."""
    return next((kind for kind in nodes if kind not in HOW), "")


def hands_on(name: str) -> bool:
    """Whether a kind of dataset only hands on, or puts together, what others have made."""
    return plain(name) in _PASSIVE | {"Batch", "PaddedBatch", "Shuffle", "Cache", "TensorSlice", "Tensor", "Range"}


def chain_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the datasets of the pipeline that the script waits for; empty if it is not known which one that is.
    `several.narrowed` finds it if there are several."""
    pipelines = record["pipelines"]
    return list(pipelines[0]["nodes"]) if len(pipelines) == 1 else []


def tuned(record: Mapping[str, Any], what: str) -> bool:
    """Whether TensorFlow may run this pipeline's maps in parallel (`maps`), or make batches ahead (`ahead`), by itself.

    It may not if the pipeline's options say otherwise, nor in `task_config.dataset()`, which does without TensorFlow's
    tuner and makes its own batches ahead.
    """
    pipelines = record["pipelines"]
    if len(pipelines) == 1 and what not in pipelines[0].get("tunes", (what,)):
        return False
    ours = any(one.get("ours") and plain(one["node"]) == "Prefetch" for one in chain_of(record))
    return bool(record.get("tunes", True)) and not ours


def reader_of(node: Blamed, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the interleave or flat_map that reads a node's dataset; {} if there is none, or it is not known which one does."""
    return next((one for one in chain_of(record) if one["at"] == node.source and plain(one["node"]) in SEVERAL), {})


def of_a_stream(record: Mapping[str, Any]) -> bool:
    """Whether the rows of a pipeline are those of a stream, which come once: each epoch (`checkpoint()`) has other ones, so that
    nothing can be kept or repeated."""
    return record.get("given", 0) is None and any(one.get("ours") for one in chain_of(record))


def passes(record: Mapping[str, Any]) -> bool:
    """Whether the script goes, or may go, through the same rows more than once."""
    often = times(record)
    return not of_a_stream(record) and (often is None or often > 1)


def times(record: Mapping[str, Any]) -> float | None:
    """Return how often the script has gone through the rows, at least; None if that is not known.

    A dataset that repeats its rows says only how often it would do so: a script may leave it in the first pass.
    """
    nodes = chain_of(record)
    same = [one for one in record["pipelines"] if one["nodes"] == nodes]
    ended = max([int(one.get("ended", 0)) for one in same], default=0)
    iterators = max([int(one["passes"]) for one in same], default=1)
    if record["by"] == "session" and iterators > 1:
        # Keras makes some in a graph that it does not draw from, and goes through the rows by one of them again and again
        iterators = ended
    again = [place for place, node in enumerate(nodes) if _repeats(node) and node.get("count", -1) != 1]
    if not again:
        return iterators or None
    counts = [int(nodes[place].get("count", -1)) for place in again]
    cut = any(plain(node["node"]) in _CUTS for node in nodes[: again[-1]])
    whole = min(iterators, ended)
    if min(counts) > 0 and not cut and whole:
        return max(iterators, whole * math.prod(counts))
    given, rows = record.get("given"), _of_task(record)
    if given and rows:
        return max(iterators, float(rows / given))
    return iterators if iterators > 1 else None


def _of_task(record: Mapping[str, Any]) -> int | None:
    """Return how many of the task's own rows the script has drawn, at most; None if it is not known, or the rows are others."""
    nodes = chain_of(record)
    # rows of several pipelines are counted together; and the script may make another number of rows
    if "place" in record or not any(one.get("ours") for one in nodes):
        return None
    if any(plain(one["node"]) in _RECOUNTS and not one.get("ours") for one in nodes):
        return None
    rows: int | None = record.get("rows")
    batched = [int(one["rows"]) for one in nodes if plain(one["node"]) == "Batch" and one.get("rows", 0) > 0]
    # a map may make several rows of one, but no batches
    return rows if rows is None or not batched else min(rows, int(record["batches"]) * math.prod(batched))


def planned(record: Mapping[str, Any]) -> int:
    """Return how often the script would go through the rows if it left no dataset before its end; 2 if it would do so again
    and again."""
    nodes = chain_of(record)
    counts = [int(node.get("count", -1)) for node in nodes if _repeats(node)]
    iterators = max([int(one["passes"]) for one in record["pipelines"] if one["nodes"] == nodes], default=1)
    return iterators * math.prod(max(2, count) if count != 1 else 1 for count in counts)


def cache_of(record: Mapping[str, Any]) -> int | None:
    """Return the place, in the chain, of the cache that later passes are read from; None if there is none. The nodes
    behind it work in the first pass only."""
    nodes = chain_of(record)
    if not passes(record):
        return None
    repeat = next((place for place, node in enumerate(nodes) if _repeats(node) and node.get("count", -1) != 1), None)
    for place, node in enumerate(nodes):
        # under TensorFlow 1's behaviour a cache serves one iterator only, so the repeat has to draw from it
        within = repeat is not None and repeat < place
        if plain(node["node"]) == "Cache" and (within or record.get("keeps", True) or node.get("file")):
            return place
    return None


def repeat_below(node: Blamed, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the repeat that a node draws its rows from; None if there is none. A cache behind such a node is never read,
    because no row comes a second time."""
    nodes = chain_of(record)
    place = next((place for place, one in enumerate(nodes) if one == node.facts), len(nodes))
    return next((one for one in nodes[place + 1 :] if _repeats(one) and one.get("count", -1) != 1), None)


def _repeats(node: Mapping[str, Any]) -> bool:
    return plain(node["node"]) in ("Repeat", "ShuffleAndRepeat")


def calls_python(node: Mapping[str, Any]) -> bool:
    """Whether a dataset calls Python: a generator, or a map with a `py_function`."""
    return bool(node.get("python")) or plain(node["node"]) == "Generator"


def plain(name: str) -> str:
    """Return a kind of dataset without the parts of its name that say how it works."""
    return kinds(name)[0][0]


def blamed(record: Mapping[str, Any]) -> list[Blamed]:
    """Return the nodes that the script waits for, those with the largest share first; empty if no look was made."""
    calls, own = _summed(record["nodes"], "calls"), active(record["nodes"])
    total = sum(own.values())
    draws = sum(count for path, count in calls.items() if "::" not in path) or 1
    chain = chain_of(record)
    found = []
    for path, seconds in sorted(own.items(), key=lambda one: -one[1]):
        if total <= 0 or seconds / total < _WORTH_NAMING:
            continue
        of_path, deep = kinds(path), depths(path)
        kind, parallel = of_path[-1]
        facts = _facts(of_path, deep, chain, _maps_below(path, own))
        several = [index for index, (name, _) in enumerate(of_path[:-1]) if name in SEVERAL]
        read = _facts(of_path[: several[-1] + 1], deep, chain, 0) if several else {}
        source, ours = read.get("at", ""), bool(facts.get("ours") or (read.get("ours") and not facts))
        # a map that is fused with its batch is called for each of the batch's rows
        rows = next((one["rows"] for one in chain if "rows" in one), 1) if kind == "MapAndBatch" else 1
        found.append(
            Blamed(
                "Map" if kind == "MapAndBatch" else kind, path, facts.get("at", ""), seconds / total, seconds / max(1, calls[path] * rows),
                calls[path] * rows / draws, parallel or facts.get("node", "").startswith("Parallel"), facts, source, ours,
                tuple(name for name, _ in of_path[:-1]),
            )
        )  # fmt: skip
    return found


def _summed(nodes: Sequence[Mapping[str, Any]], what: str) -> dict[str, float]:
    """Return a number of each node, by path. The datasets of a flat_map, [0], [1]..., are added up as [0]."""
    found: dict[str, float] = {}
    for node in nodes:
        path = re.sub(r"\[\d+\]", "[0]", node["path"])
        found[path] = found.get(path, 0) + node[what]
    return found


def active(nodes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the seconds in which each node worked itself.

    A node that only hands on has none. A node that works in threads of its own (a parallel map, and any that is fused with its
    batch) counts as waiting while the node that it draws from works.
    """
    own, found = _summed(nodes, "own"), {}
    for path, seconds in own.items():
        kind, parallel = kinds(path)[-1]
        if kind in _PASSIVE:
            continue
        below = sum(other for name, other in own.items() if name.startswith(path + "::"))
        if below < 0.5 * seconds:
            found[path] = seconds
        elif kind == "MapAndBatch":
            # how many of its calls run at once is not in its name: what it has beyond the other's time is its own
            found[path] = max(0.0, seconds - below)
        else:
            found[path] = 0.0 if parallel else seconds
    return found


def depths(path: str) -> list[int]:
    """Return for each node of a path how many functions of interleaves and flat_maps its dataset is nested in."""
    found, depth = [], 0
    for part in path.split("::"):
        found.append(depth)
        depth += part.endswith("]") and kinds(part)[0][0] in SEVERAL
    return found


def _maps_below(path: str, paths: Iterable[str]) -> int:
    """Return how many maps follow one another directly below a node of a look."""
    longer = [kinds(other[len(path) + 2 :]) for other in paths if other.startswith(path + "::")]
    return max((_maps_first([kind for kind, _ in some]) for some in longer), default=0)


def _maps_first(of_kinds: Iterable[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda kind: kind == "Map", of_kinds))


def _without_left_out(there: list[int], chain: Sequence[Mapping[str, Any]], maps: int) -> list[int]:
    """Return the places of maps without those that TensorFlow has left out, as they do next to nothing (`unbatch` makes
    such a map).

    Args:
        there: the places at which a map of a path may be.
        maps: how many maps follow one another in the path, from that one on.
    """
    run = [place for place in there if all(plain(one["node"]) in ("Map", "Restructured") for one in chain[there[0] : place])]
    while len(run) > maps and chain[run[0]].get("light"):
        run = run[1:]
    return [place for place in there if place >= run[0]]


def _facts(
    of_path: Sequence[tuple[str, bool]], depths: Sequence[int], chain: Sequence[Mapping[str, Any]], below: int
) -> dict[str, Any]:
    """Return what is known of the last node of a path: the script's dataset of its kind that comes next after the
    datasets of the nodes above it.

    Args:
        below: how many maps follow one another directly below the path.
    """
    position = 0
    last: dict[str, Any] = {}
    # newer versions of TensorFlow add a prefetch at the end: that node is none of the script's
    added = outermost([kind for kind, _ in of_path]) == "Prefetch" != outermost([plain(one["node"]) for one in chain])
    for index, ((kind, _), depth) in enumerate(zip(of_path, depths)):
        last = {}
        behind = [name for name, _ in of_path[index + 1 :]]
        maps = 1 + _maps_first(behind) + (below if _maps_first(behind) == len(behind) else 0)
        if added and kind == "Prefetch":
            added = False
            continue
        for one in FUSED.get(kind, (kind,)):
            alike = [index for index in range(position, len(chain)) if plain(chain[index]["node"]) == one]
            # datasets in a function, or all datasets if the function was not looked into
            there = [index for index in alike if chain[index].get("depth", 0) == depth] or (alike if depth else [])
            if there and one == "Map":
                there = _without_left_out(there, chain, maps)
            if there:
                position, last = there[0] + 1, dict(chain[there[0]])
    return last
