"""Whether the input of steps that draw their batches themselves has so little to do that they need not wait for it: by what its nodes are, how often each is called for a
batch, and the clocks that are always on. What may take long (images, files of the script's own, loops, Python) is never little by its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from akrunner.engines.inputs import blame, likely, unseen

#: nodes that hand on each row that they are given, beside those that only say how
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
#: what `task_config` reads the rows by: their file, or a generator, which is timed
_OURS = ("TFRecord", "Generator", *blame.SEVERAL)
#: seconds that a node takes at most, on a busy machine: for a row that it hands on; to take one apart; for a call of a map, and each of its operations
_ROW, _PARSED, _CALL, _OPERATION = 4e-6, 5e-6, 100e-6, 5e-6
#: to begin a pass
_PASS = 0.05
#: of a step, what the making of a batch may take: where batches are made ahead, and where they are not
_AHEAD, _NOT_AHEAD = 0.25, 0.1
#: bytes a second from disks, from which on a disk may be what is waited for; of the time, what waiting for rows may take
_DISK, _FOR_ROWS = 1e6, 0.02


def does_little(record: Mapping[str, Any]) -> bool:
    """Whether that is so. Where nothing computes, something is waited for all the same."""
    steps, batches = float(record["wait"] + record["between"]), record["batches"]
    disk = record.get("disk")
    if unseen.unsure(record) or steps <= 0 or not batches or not record["pipelines"] or disk is None or disk > _DISK * steps:
        return False
    if record["spent"].get("pipe", 0.0) > _FOR_ROWS * steps or unseen.nothing_computes(record):
        return False
    # a clock of its own tells of all Python that is called, whoever calls it
    python = record.get("python", {})
    heard = (python.get("steps", 0.0) + python.get("calls", 0) * likely.CALL) / batches
    for one in record["pipelines"]:
        made, step = _takes(one, batches), steps / batches
        ahead = any(blame.plain(node["node"]) == "Prefetch" for node in one["nodes"])
        if made is None or made + heard > (_AHEAD if ahead else _NOT_AHEAD) * step:
            return False
    return True


def _takes(pipeline: Mapping[str, Any], batches: int) -> float | None:
    """Seconds that one of a pipeline's batches takes at most, None: nobody knows. Args: batches: there were in all."""
    nodes: list[Mapping[str, Any]] = pipeline["nodes"]
    took = 0.0
    if not any(node["at"] for node in nodes):
        # Keras's own over arrays in memory: slices of whole batches
        python = any(map(blame.calls_python, nodes))
        return None if python else _CALL * len(nodes)
    batched = [node.get("rows", 0) for node in nodes if blame.plain(node["node"]) == "Batch"]
    if any(rows <= 0 for rows in batched):
        return None
    # how often a node is called for a batch; behind all that batch, once for each row
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
