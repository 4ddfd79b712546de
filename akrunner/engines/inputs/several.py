"""Finds, of several pipelines (a training's, a validation's), the one that the script waits for, and which nodes of a
look belong to it.

A node is named by its path (`Root::Prefetch::MapAndBatch::Range`), and each of two pipelines may have a node with the
same path. What is not known is not guessed: advice about a line of the other pipeline would be wrong, and so would the
gain that it promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.engines.inputs import blame, likely

#: share of the time that timed Python must take for its pipeline to be the one that the script waits for
_MOSTLY = 0.5
#: datasets -> the argument with which they do nothing; TensorFlow leaves them out then
_LEFT_OUT = {"Repeat": 1, "Take": -1, "Skip": 0, "Shard": 1, "Prefetch": 0}
#: datasets with several inputs; a path shows only one of these
_BRANCHES = (*blame.SEVERAL, "Zip", "Concatenate", "DirectedInterleave", "SampleFromDatasets")


def narrowed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as if its script had only the pipeline that it waits for.

    `part` is set to the share of the waiting that is for that pipeline. If it is not known which pipeline that is, the
    result has no pipelines. `mixed` is set if other pipelines call Python too, so that Python's clock counts them
    together. A record that is narrowed already is not changed.
    """
    pipelines = record["pipelines"]
    if len(pipelines) < 2 or "part" in record:
        return dict(record)
    waited = [float(one.get("waited", 0.0)) for one in pipelines]
    whose = [_whose(node, record) for node in record["nodes"]]
    spent = [_spent(record["nodes"], whose, place) for place in range(len(pipelines))]
    some, whole = (waited, sum(waited)) if sum(waited) > 0 else (spent, _spent(record["nodes"], whose, None))
    place = some.index(max(some))
    if whole <= 0:
        found = _with_python(record)
        return _only(record, found, whose, 1.0)
    return _only(record, place if some[place] > 0 else None, whose, some[place] / whole)


def each(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a record for each pipeline, as if there were no other, and no look had been made."""
    return [_only(record, place, [], 1.0) for place in range(len(record["pipelines"]))]


def _only(record: Mapping[str, Any], place: int | None, whose: Sequence[int | None], part: float) -> dict[str, Any]:
    if place is None:
        return {**record, "pipelines": [], "nodes": [], "part": part, "place": -1}
    nodes = [node for node, of in zip(record["nodes"], whose) if of == place and "::" in node["path"]]
    # the outermost node has the same path in all pipelines: it is called as often as the nodes that it draws from
    outer = {node["path"].partition("::")[0] for node in nodes}
    draws = sum(node["calls"] for node in nodes if node["path"].count("::") == 1)
    nodes = [*({"path": path, "own": 0.0, "calls": draws} for path in sorted(outer) if draws), *nodes]
    lines = record["lines"]
    mixed = sum(any(map(blame.calls_python, one["nodes"])) for one in record["pipelines"]) > 1
    if mixed:
        # it is not known which pipeline's Python was seen at these lines
        lines = [line for line in lines if line["main"]]
    narrow = {
        "pipelines": [record["pipelines"][place]],
        "nodes": nodes,
        "lines": lines,
        "part": part,
        "place": place,
        "mixed": mixed,
    }
    return {**record, **narrow}


def _spent(nodes: Sequence[Mapping[str, Any]], whose: Sequence[int | None], place: int | None) -> float:
    """Return the seconds in which the nodes of a pipeline worked themselves.

    Args:
        place: the pipeline's index; None for all pipelines.
    """
    return sum(blame.active([node for node, of in zip(nodes, whose) if place is None or of == place]).values())


def _with_python(record: Mapping[str, Any]) -> int | None:
    """Return the index of the only pipeline that calls Python, if its Python, which is timed, takes most of the time. For
    other pipelines it is not known which one the script waits for."""
    called = [place for place, one in enumerate(record["pipelines"]) if any(map(blame.calls_python, one["nodes"]))]
    whole = float(record["wait"] + record["between"])
    took = float(record.get("python", {}).get("steps", 0.0))
    return called[0] if len(called) == 1 and took >= _MOSTLY * whole > 0 else None


def _whose(node: Mapping[str, Any], record: Mapping[str, Any]) -> int | None:
    """Return the index of the pipeline that a node of a look belongs to; None if that is not known.

    A look sees the pipeline that the steps drew from, and what other pipelines do meanwhile in threads of their own.
    """
    fitting = [place for place, one in enumerate(record["pipelines"]) if fits(node["path"], one["nodes"], record)]
    of = node.get("of")
    if of is not None and of < len(record["pipelines"]) and (of in fitting or not fitting):
        return int(of)
    return fitting[0] if len(fitting) == 1 else None


def fits(path: str, chain: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> bool:
    """Whether a node of a trace may belong to a pipeline: the nodes above it are the first ones of the pipeline, in
    order, without a gap."""
    wanted = _wanted(path)
    own = [one for one in chain if blame.plain(one["node"]) not in blame.HOW]
    ahead = bool(wanted) and wanted[0][0] == "Prefetch"
    has_one = bool(own) and blame.plain(own[0]["node"]) == "Prefetch"
    if ahead and not has_one and record.get("tunes", True):
        # TensorFlow has added this prefetch itself
        wanted = wanted[1:]
    position, branched = 0, False
    for kind, depth in wanted:
        found = _next(kind, depth, own, position, branched)
        if found is None and kind == "FlatMap" and _next_is_file(own, position):
            # to read files by their names, TensorFlow adds a FlatMap itself
            branched = True
            continue
        if found is None:
            return False
        position, branched = found + 1, branched or kind in _BRANCHES
    return True


def _next(kind: str, depth: int, own: Sequence[Mapping[str, Any]], position: int, branched: bool) -> int | None:
    for place in range(position, len(own)):
        one = own[place]
        here, deep = blame.plain(one["node"]), one.get("depth", 0)
        # datasets in a function that was not looked into are listed with the others
        if here == kind and (deep == depth or branched):
            return place
        if not branched and not _may_be_missing(here, one) and deep <= depth:
            return None
    return None


def _next_is_file(own: Sequence[Mapping[str, Any]], position: int) -> bool:
    return any(blame.plain(one["node"]) in likely.FILES for one in own[position : position + 1])


def _may_be_missing(kind: str, one: Mapping[str, Any]) -> bool:
    return kind in _LEFT_OUT and one.get("count", one.get("buffer")) in (_LEFT_OUT[kind], None)


def _wanted(path: str) -> list[tuple[str, int]]:
    """Return the datasets of a path, each with its depth in functions. A node that TensorFlow has fused of two datasets
    gives two."""
    found = []
    for (kind, _), depth in zip(blame.kinds(path), blame.depths(path)):
        if kind not in blame.HOW:
            kind = "Cache" if "Cache" in kind else kind
            found += [(one, depth) for one in blame.FUSED.get(kind, (kind,))]
    return found
