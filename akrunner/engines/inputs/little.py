"""Tells whether the input has so little to do that steps that draw their batches themselves need not wait for it.

It goes by the kinds of its nodes, how often each is called for a batch, and the clocks that are always on. Nodes that may
take long (images, files of the script's own, loops, Python) never count as little by their kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from akrunner.engines.inputs import blame, likely, unseen

#: nodes that hand on each row that they are given; those in `blame.HOW`, which only set options, count too
_PASSES = {
    "Prefetch",
    "Repeat",
    "Take",
    "Zip",
    "Concatenate",
    "Shuffle",
    "Cache",
    "Batch",
    "Unbatch",
    "Restructured",
    "Rebatch",
    "TensorSlice",
    "Tensor",
    "Range",
}
#: the nodes by which `task_config` reads the rows: their file, or a generator, which is timed
_OURS = ("TFRecord", "Generator", *blame.SEVERAL)
#: seconds that a node takes at most, on a busy machine: to hand on a row; to parse a row; for one call of a map; for each
#: operation of such a call
_ROW, _PARSED, _CALL, _OPERATION = 4e-6, 5e-6, 100e-6, 5e-6
#: seconds to begin a pass
_PASS = 0.05
#: the share of a step that making a batch may take: if batches are made ahead, and if they are not
_AHEAD, _NOT_AHEAD = 0.25, 0.1
#: bytes a second from disks above which the script may be waiting for a disk; the share of the time that waiting for rows may
#: take
_DISK, _FOR_ROWS = 1e6, 0.02


def does_little(record: Mapping[str, Any]) -> bool:
    """Whether the input has so little to do. False if nothing computes: the script waits for something then."""
    steps, batches = float(record["wait"] + record["between"]), record["batches"]
    disk = record.get("disk")
    if unseen.unsure(record) or steps <= 0 or not batches or not record["pipelines"] or disk is None or disk > _DISK * steps:
        return False
    if record["spent"].get("pipe", 0.0) > _FOR_ROWS * steps or unseen.nothing_computes(record):
        return False
    # Python that the pipeline calls has a clock of its own, whatever node calls it
    python = record.get("python", {})
    heard = (python.get("steps", 0.0) + python.get("calls", 0) * likely.CALL) / batches
    for one in record["pipelines"]:
        made, step = _takes(one, batches), steps / batches
        ahead = any(blame.plain(node["node"]) == "Prefetch" for node in one["nodes"])
        if made is None or made + heard > (_AHEAD if ahead else _NOT_AHEAD) * step:
            return False
    return True


def _takes(pipeline: Mapping[str, Any], batches: int) -> float | None:
    """Return the seconds that one of a pipeline's batches takes at most; None if that is not known.

    Args:
        batches: the number of all batches.
    """
    nodes: list[Mapping[str, Any]] = pipeline["nodes"]
    took = 0.0
    if not any(node["at"] for node in nodes):
        # a pipeline that Keras itself makes over arrays in memory: slices of whole batches
        python = any(map(blame.calls_python, nodes))
        return None if python else _CALL * len(nodes)
    batched = [node.get("rows", 0) for node in nodes if blame.plain(node["node"]) == "Batch"]
    if any(rows <= 0 for rows in batched):
        return None
    # how often a node is called for one batch; the nodes behind all batching are called once for each row
    calls, rows = 1, math.prod(batched)
    for node in nodes:
        kind = blame.plain(node["node"])
        if kind == "Map" and node.get("light"):
            took += calls * (_CALL + node["ops"] * _OPERATION) + rows * _PARSED * bool(node.get("parses"))
        elif kind in _PASSES or kind in blame.HOW or (kind in _OURS and node.get("ours")):
            took += calls * _ROW
        else:
            return None
        calls *= node["rows"] if kind == "Batch" else 1
        if kind == "Shuffle":
            took += pipeline["passes"] * max(0, node.get("buffer", 0)) * _ROW / batches
    return took + float(pipeline["passes"]) * _PASS / batches
