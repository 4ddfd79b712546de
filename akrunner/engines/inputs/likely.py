"""Names the node that a script most likely waits for if no look was made, from what its pipeline is made of and what was
timed.

TensorFlow's profiler runs on request only (`profile_input`), because it can end a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from akrunner.engines.inputs import blame, unseen
from akrunner.engines.inputs.blame import Blamed

#: share of the waiting that Python called by the pipeline must take to be what the script waits for
_MUCH = 0.5
#: the share that it must take to be one of several causes of the waiting, as its clock shows it all the same
_SOME = 0.1
#: share of the cost of its calls that its clock must show for it to count as a fact
_TOLD = 0.25
#: seconds that each call of Python takes at least and no clock sees: TensorFlow turns tensors into arrays, and waits for its
#: turn
CALL = 50e-6
#: share of the time that the calls of Python must take together for several of them to have run at once
_SEVERAL = 1.5
#: share of the time that work beside the script must take to be what holds the script up
_ALL = 0.9
#: share of a core that is used if something computes on it
_AT_WORK = 0.7
#: a call that takes fewer seconds than this is cheap; cheap calls matter from so many for one batch on
CHEAP, MANY = 300e-6, 8
#: datasets that read files
FILES = ("TFRecord", "TextLine", "FixedLengthRecord", "CSV")


#: facts about maps whose work is worth keeping
_REPEATED = ("decodes", "parses", "splits", "reads")


class Suspect(NamedTuple):
    """A node that the script may wait for.

    Attributes:
        node: the node.
        timed: whether clocks say so, and not only the node's kind.
    """

    node: Blamed
    timed: bool


def suspect(record: Mapping[str, Any]) -> Suspect | None:
    """Return what the script waits for most; None if only a look can tell."""
    return max(suspects(record), key=lambda one: (one.node.share, one.timed), default=None)


def suspects(record: Mapping[str, Any]) -> list[Suspect]:
    """Return what the script waits for: Python that is timed, and a suspect for the rest of the waiting. Empty if only a
    look can tell."""
    chain = blame.chain_of(record)
    works = [one for one in chain if not blame.hands_on(one["node"])]
    waited = _waited(record)
    ours = [one for one in works if one.get("ours")]
    # `task_config` made all nodes that work, or has waited for rows itself
    if ours and (len(ours) == len(works) or record["spent"].get("pipe", 0.0) >= _MUCH * waited):
        return [Suspect(as_blamed(ours[0], record), False)]
    python, left = _of_python(record)
    if left <= _MUCH:
        return [python] if python is not None else []
    other = _by_kind(_drawn_from(works, chain, record), chain, record)
    rest = [Suspect(replace(other, share=left), False)] if other is not None else []
    return [python, *rest] if python is not None else rest


def _waited(record: Mapping[str, Any]) -> float:
    return float(record["wait"] if record["known"] else record["wait"] + record["between"])


def _of_python(record: Mapping[str, Any]) -> tuple[Suspect | None, float]:
    """Return the Python that the pipeline calls, if the script waits for it, else None; and the share of the waiting that
    it leaves to others.

    One clock counts the Python of all nodes. If several call Python, it is not known which of them takes the time: one that
    runs a call at a time may hold up another one that runs eight, or the other way round.
    """
    chain, waited, python = blame.chain_of(record), _waited(record), record.get("python", {})
    some = [one for one in chain if not blame.hands_on(one["node"]) and blame.calls_python(one)]
    if not some or waited <= 0:
        return None, 1.0
    if len(some) > 1:
        return None, max(0.0, 1.0 - python_costs(record))
    called = some[0]
    node = as_blamed(called, record, source=_source(called, chain))
    took, costs = python.get("steps", 0.0) / waited, python_costs(record)
    unheard = python.get("calls", 0) * CALL / waited
    # the calls together took more time than there was
    at_once = (
        node.parallel
        or _within_parallel(called, chain)
        or python.get("steps", 0.0) > _SEVERAL * (record["wait"] + record["between"])
    )
    if at_once:
        much = took + unheard >= _MUCH
        return (Suspect(replace(node, parallel=True), False), 0.0) if much else (None, 1.0)
    if took >= (_MUCH if _is_hidden(called, record) else max(_SOME, _TOLD * min(1.0, costs))):
        return Suspect(replace(node, share=min(1.0, took)), True), max(0.0, 1.0 - costs)
    return (Suspect(node, False), 0.0) if took + unheard >= _MUCH else (None, 1.0)


def _is_hidden(called: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether the time that Python takes may be no part of the waiting: the node that draws from it works at the same
    time, and may be slower; or it is partly another pipeline's time."""
    chain = [one for one in blame.chain_of(record) if _kind(one) not in blame.HOW]
    above = chain[: next(place for place, one in enumerate(chain) if one is called or one == called)]
    # a prefetch at the end makes batches ahead in one go
    inner = [
        one
        for place, one in enumerate(above)
        if any(_kind(outer) not in ("Prefetch", "Take", "Skip") for outer in above[:place])
    ]
    meanwhile = any(_kind(one) == "Prefetch" for one in inner) or any(_parallel(one) for one in above)
    return bool(record.get("mixed")) or meanwhile


def python_costs(record: Mapping[str, Any]) -> float:
    """Return the share of the waiting that Python called by the pipeline costs in all.

    That is the time by its clock, the time of each call that no clock sees, and, beside short steps, the turns, which
    cost its computing time once more. It may be more than 1.
    """
    waited, python = _waited(record), record.get("python", {})
    if waited <= 0:
        return 0.0
    turns = unseen.python_computes(record) * float(record["wait"] + record["between"]) if unseen.short(record) else 0.0
    return float(python.get("steps", 0.0) + turns + python.get("calls", 0) * CALL) / waited


def _by_kind(works: list[dict[str, Any]], chain: list[dict[str, Any]], record: Mapping[str, Any]) -> Blamed | None:
    """Return the node that is slow by its kind; None if there is none."""
    for fits in (_reads, _alone, _cheap, _busy):
        found = [one for one in works if fits(one, record)]
        if found:
            return as_blamed(max(found, key=_weight), record)
    sources = [one for one in works if _kind(one) in FILES and _source(one, chain) and not _within_parallel(one, chain)]
    if sources and not any("ops" in one for one in works):
        return as_blamed(sources[0], record, source=_source(sources[0], chain))
    return None


def repeats(facts: Mapping[str, Any]) -> bool:
    """Whether a node does work that is worth keeping from one pass to the next."""
    return any(facts.get(what) for what in _REPEATED)


def repeated(record: Mapping[str, Any]) -> Blamed | None:
    """Return the node that decodes, parses, takes text apart or reads files; None if there is none. Of several, it is the
    outermost one.

    None also if it does little, and a map that draws from it may do much: that map's work would have to be kept.
    """
    chain = blame.chain_of(record)[: blame.cache_of(record)]
    works = next((place for place, one in enumerate(chain) if repeats(one)), None)
    if works is None:
        return None
    little = chain[works].get("light") and any(_kind(one) == "Map" and not one.get("light") for one in chain[:works])
    return None if little else as_blamed(chain[works], record)


def python_at_work(record: Mapping[str, Any]) -> Suspect | None:
    """Return, for steps of which it is not known how long they wait, the Python that the pipeline calls, if it takes so
    much of the time that the steps wait for it; else None."""
    chain = blame.chain_of(record)
    some = [one for one in chain if blame.calls_python(one)]
    whole = float(record["wait"] + record["between"])
    # of several nodes that call Python, it is not known which one takes the time
    if len(some) != 1 or whole <= 0:
        return None
    called = some[0]
    node = as_blamed(called, record, source=_source(called, chain))
    share = record.get("python", {}).get("steps", 0.0) / whole
    if node.parallel or _within_parallel(called, chain):
        return None
    ahead = blame.tuned(record, "ahead") or any(_kind(one) == "Prefetch" for one in chain)
    return Suspect(replace(node, share=min(1.0, share)), True) if share >= (_ALL if ahead else _MUCH) else None


def _kind(node: Mapping[str, Any]) -> str:
    return blame.plain(node["node"])


def _drawn_from(works: list[dict[str, Any]], chain: list[dict[str, Any]], record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes that work in each pass. A node behind a cache works in the first pass only."""
    return [one for one in works if any(one is other for other in chain[: blame.cache_of(record)])]


def opens_files(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a map opens files, and waits for them.

    A map that also decodes them, while the cores are busy, waits for its decoding: files that were read a moment ago, or
    are read ahead, take little time.
    """
    if not node.get("reads") or node.get("ours"):
        return False
    return not (node.get("decodes") and _at_work(record, _parallel(node)))


def _reads(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """As `opens_files`, if no look was made: if one map only opens the files, and another one decodes, the second may
    take all the time."""
    decoded = any(one.get("decodes") for one in blame.chain_of(record))
    return opens_files(node, record) and not (decoded and _at_work(record, _parallel(node)))


def _at_work(record: Mapping[str, Any], parallel: bool) -> bool:
    """Whether a task computes all the time, as far as the node's calls can: on one core, or, if it is parallel, on half
    of the cores or more."""
    used = record.get("used")
    if used is None:
        return not _idle(record)
    return bool(used >= _AT_WORK * (max(1.0, 0.5 * record["cores"]) if parallel else 1.0))


def _busy(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a map decodes on all cores."""
    return bool(node.get("decodes")) and _parallel(node) and not node.get("ours") and not _idle(record)


def _idle(record: Mapping[str, Any]) -> bool:
    """Whether half of the cores have nothing to do."""
    return record["idle"] is not None and record["idle"] >= 0.5 * record["cores"]


def _is_somebodys(node: Mapping[str, Any]) -> bool:
    """Whether a line of the script made the node, so that the user can change it.

    Keras makes such maps too, and TensorFlow makes them in calls of other names (`unbatch`).
    """
    return bool(node["at"]) and not node.get("ours") and not node.get("made_by")


def _alone(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a map runs one call at a time. Newer versions of TensorFlow run several by themselves, if the calls do not
    depend on each other."""
    if _kind(node) != "Map" or not _is_somebodys(node) or blame.calls_python(node):
        return False
    # it was told to run one call, and does
    told = node.get("parallel") == 1
    return told or (not _parallel(node) and (bool(node.get("stateful")) or not blame.tuned(record, "maps")))


def _cheap(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a map is called for each row, and has little time for each."""
    if _kind(node) != "Map" or not _is_somebodys(node) or blame.calls_python(node) or node.get("decodes"):
        return False
    made = as_blamed(node, record)
    return made.call < CHEAP and made.calls >= MANY


def _parallel(node: Mapping[str, Any]) -> bool:
    return str(node["node"]).startswith("Parallel") and node.get("parallel") != 1


def _weight(node: Mapping[str, Any]) -> Any:
    return bool(node.get("decodes")), bool(node.get("parses") or node.get("splits")), node.get("ops", 0)


def _source(node: Mapping[str, Any], chain: list[dict[str, Any]]) -> str:
    """Return the line of the flat_map or interleave that a node is in; "" if it is in none."""
    reader = _reader(node, chain)
    return str(reader["at"]) if reader is not None else ""


def _within_parallel(node: Mapping[str, Any], chain: list[dict[str, Any]]) -> bool:
    """Whether a node is in an interleave that reads several at once, however many functions lie between: a generator is
    in a flat_map of its own."""
    return any(_parallel(reader) for reader in readers(node, chain))


def _reader(node: Mapping[str, Any], chain: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    return next(iter(readers(node, chain)), None)


def readers(node: Mapping[str, Any], chain: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the interleaves and flat_maps that a node is in, the innermost first."""
    before = chain[: next((place for place, one in enumerate(chain) if one is node or one == node), 0)]
    depth, found = node.get("depth", 0), []
    for one in reversed(before):
        if one.get("depth", 0) < depth and _kind(one) in blame.SEVERAL:
            depth = one.get("depth", 0)
            found.append(one)
    return found


def as_blamed(node: Mapping[str, Any], record: Mapping[str, Any], source: str = "") -> Blamed:
    """Return a node of the pipeline as if a look had been made. A call is taken to last as long as there was time for
    each row."""
    rows = next((one["rows"] for one in blame.chain_of(record) if one.get("rows", 0) > 0), 1)
    there = float(record["wait"] + record["between"]) / max(1, record["batches"]) / rows
    kind = _kind(node)
    return Blamed(
        kind, kind, node["at"], 1.0, there, rows if _below_batch(node, record) else 1, _parallel(node), node, source, bool(node.get("ours")),
    )  # fmt: skip


def _below_batch(node: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a node is called once for each row of a batch."""
    chain = blame.chain_of(record)
    place = next(place for place, one in enumerate(chain) if one is node or one == node)
    return any(_kind(one) == "Batch" for one in chain[:place])
