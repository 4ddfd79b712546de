"""A look at an input pipeline -> which of its nodes the script waits for, and what is known of each.

::

    Root::Prefetch::BatchV2::Map::FlatMap[0]::TFRecord      a node's path in the trace: what it draws from stands behind it
    Batch (train.py:15), Map (train.py:14), TFRecord (:4)   the script's datasets, the outermost first
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: nodes that only hand on what others have made
_PASSIVE = {
    "Root", "Model", "Prefetch", "Options", "Repeat", "FlatMap", "Zip", "Take", "Skip", "Concatenate", "Shard", "Rebatch", "MaxIntraOpParallelism",
    "PrivateThreadPool", "AssertNext", "Optimize", "FiniteTake", "EmptyRepeat", "MemoryCache", "MemoryCacheReader", "Interleave",
}  # fmt: skip
HOW = {"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool", "AssertNext", "Optimize"}
_NODE = re.compile(r"(?P<parallel>Parallel)?(Finite|Forever)?(?P<kind>[A-Za-z]+?)(V\d+|Impl)?(\[\d+\])?$")
#: those that read several datasets
SEVERAL = ("FlatMap", "Interleave")
#: nodes that TensorFlow makes of two of the script's, the outer one first
FUSED = {"MapAndBatch": ("Batch", "Map"), "ShuffleAndRepeat": ("Repeat", "Shuffle")}
#: of what is waited for, what a node must have to be named
_WORTH_NAMING = 0.15


@dataclass(frozen=True)
class Blamed:
    """One node.

    Attributes: kind: Map, Batch, Shuffle...; path; at: "train.py:31", "" where it is none of the script's; share: of all that is waited for;
        call: seconds of one call; calls: of it for one element of the whole; parallel: whether it runs several calls at once; facts: what its
        dataset was told; source: line of the flat_map or interleave that it is in; ours: `task_config` made it, not
        the script; above: kinds of the nodes that draw from it.
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
        """Whether it runs one call at a time: it was not told to run several, or to run one."""
        return not self.parallel or self.facts.get("parallel") == 1

    @property
    def where(self) -> str:
        """In words."""
        return f"`{self.kind}`" + (f" at {place(self.at)}" if self.at else "")


def place(at: str) -> str:
    """File and line for people."""
    path, _, line = at.rpartition(":")
    return f"{os.path.basename(path)}:{line}"


def kinds(path: str) -> list[tuple[str, bool]]:
    """The nodes of a path: (kind, whether it is a parallel one)."""
    found = []
    for part in path.split("::"):
        match = _NODE.match(part)
        kind, parallel = (match["kind"], bool(match["parallel"])) if match else (part, False)
        found.append((kind, parallel))
    return found


def outermost(nodes: Sequence[str]) -> str:
    """The kind of the first node that does something, "": there is none. Others only say how."""
    return next((kind for kind in nodes if kind not in HOW), "")


def hands_on(name: str) -> bool:
    """Whether a kind of dataset only hands on what others have made, or puts it together."""
    return plain(name) in _PASSIVE | {"Batch", "PaddedBatch", "Shuffle", "Cache", "TensorSlice", "Tensor", "Range"}


def chain_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The datasets of the pipeline that the script waits for; of several, `several.narrowed` says which one that is. None: nobody knows."""
    pipelines = record["pipelines"]
    return list(pipelines[0]["nodes"]) if len(pipelines) == 1 else []


def tuned(record: Mapping[str, Any], what: str) -> bool:
    """Whether TensorFlow may run this pipeline's maps in parallel (`maps`), or make batches ahead (`ahead`), by itself: not where its options say otherwise, nor behind
    `task_config.dataset()`, which does without the tuner, and makes its own batches ahead."""
    pipelines = record["pipelines"]
    if len(pipelines) == 1 and what not in pipelines[0].get("tunes", (what,)):
        return False
    ours = any(one.get("ours") and plain(one["node"]) == "Prefetch" for one in chain_of(record))
    return bool(record.get("tunes", True)) and not ours


def reader_of(node: Blamed, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The interleave or flat_map that reads a node's dataset, {}: there is none, or nobody knows which."""
    return next((one for one in chain_of(record) if one["at"] == node.source and plain(one["node"]) in SEVERAL), {})


def passes(record: Mapping[str, Any]) -> bool:
    """Whether the rows are gone through more than once."""
    nodes = chain_of(record)
    again = any(_repeats(node) and node.get("count", -1) != 1 for node in nodes)
    return again or any(one["nodes"] == nodes and one["passes"] > 1 for one in record["pipelines"])


def times(record: Mapping[str, Any]) -> int:
    """How often the rows are gone through; 2: more than once, and nobody knows how often."""
    nodes = chain_of(record)
    again = [int(node.get("count", -1)) for node in nodes if _repeats(node)]
    found = max([one["passes"] for one in record["pipelines"] if one["nodes"] == nodes], default=1)
    for count in again:
        found *= max(2, count) if count != 1 else 1
    return int(found)


def cache_of(record: Mapping[str, Any]) -> int | None:
    """The place in the chain of the cache that later passes are read from, None: there is none. What stands behind it works in the first pass only."""
    nodes = chain_of(record)
    if not passes(record):
        return None
    repeat = next((place for place, node in enumerate(nodes) if _repeats(node) and node.get("count", -1) != 1), None)
    for place, node in enumerate(nodes):
        # with TensorFlow 1's behaviour it serves one iterator: what repeats has to draw from it
        within = repeat is not None and repeat < place
        if plain(node["node"]) == "Cache" and (within or record.get("keeps", True) or node.get("file")):
            return place
    return None


def repeat_below(node: Blamed, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The repeat that a node draws its rows from, None: there is none. A cache behind such a node is never read: no row comes a second time."""
    nodes = chain_of(record)
    place = next((place for place, one in enumerate(nodes) if one == node.facts), len(nodes))
    return next((one for one in nodes[place + 1 :] if _repeats(one) and one.get("count", -1) != 1), None)


def _repeats(node: Mapping[str, Any]) -> bool:
    return plain(node["node"]) in ("Repeat", "ShuffleAndRepeat")


def calls_python(node: Mapping[str, Any]) -> bool:
    """Whether a dataset calls Python: a generator, or a map with a `py_function`."""
    return bool(node.get("python")) or plain(node["node"]) == "Generator"


def plain(name: str) -> str:
    """A kind of dataset without what says how it does it."""
    return kinds(name)[0][0]


def blamed(record: Mapping[str, Any]) -> list[Blamed]:
    """The nodes that are waited for, most first; none: nobody has looked."""
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
        facts = _facts(of_path, deep, chain)
        several = [index for index, (name, _) in enumerate(of_path[:-1]) if name in SEVERAL]
        read = _facts(of_path[: several[-1] + 1], deep, chain) if several else {}
        source, ours = read.get("at", ""), bool(facts.get("ours") or (read.get("ours") and not facts))
        # fused with its batch, a map is called for each of the batch's rows
        rows = next((one["rows"] for one in chain if "rows" in one), 1) if kind == "MapAndBatch" else 1
        found.append(
            Blamed(
                "Map" if kind == "MapAndBatch" else kind, path, facts.get("at", ""), seconds / total, seconds / max(1, calls[path] * rows),
                calls[path] * rows / draws, parallel or facts.get("node", "").startswith("Parallel"), facts, source, ours, tuple(name for name, _ in of_path[:-1]),
            )
        )  # fmt: skip
    return found


def _summed(nodes: Sequence[Mapping[str, Any]], what: str) -> dict[str, float]:
    """By path; the datasets of a flat_map, [0], [1]..., are one: [0]."""
    found: dict[str, float] = {}
    for node in nodes:
        path = re.sub(r"\[\d+\]", "[0]", node["path"])
        found[path] = found.get(path, 0) + node[what]
    return found


def active(nodes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds in which each node itself worked: who hands on does not, and who works in threads of its own waits while what it draws from works."""
    own, found = _summed(nodes, "own"), {}
    for path, seconds in own.items():
        kind, parallel = kinds(path)[-1]
        if kind in _PASSIVE:
            continue
        below = sum(other for name, other in own.items() if name.startswith(path + "::"))
        found[path] = 0.0 if parallel and below >= 0.5 * seconds else seconds
    return found


def depths(path: str) -> list[int]:
    """For each node of a path: how many functions of interleaves and flat_maps have given the dataset it belongs to."""
    found, depth = [], 0
    for part in path.split("::"):
        found.append(depth)
        depth += part.endswith("]") and kinds(part)[0][0] in SEVERAL
    return found


def _facts(of_path: Sequence[tuple[str, bool]], depths: Sequence[int], chain: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is known of the last node of a path: the script's dataset of that kind that comes next after those of the nodes above."""
    position = 0
    last: dict[str, Any] = {}
    # newer ones of TensorFlow prefetch at the end by themselves: that node is none of the script's
    added = outermost([kind for kind, _ in of_path]) == "Prefetch" != outermost([plain(one["node"]) for one in chain])
    for (kind, _), depth in zip(of_path, depths):
        last = {}
        if added and kind == "Prefetch":
            added = False
            continue
        for one in FUSED.get(kind, (kind,)):
            alike = [index for index in range(position, len(chain)) if plain(chain[index]["node"]) == one]
            # of what lies in a function, or of all where nobody has looked into it
            there = [index for index in alike if chain[index].get("depth", 0) == depth] or (alike if depth else [])
            if there:
                position, last = there[0] + 1, dict(chain[there[0]])
    return last
