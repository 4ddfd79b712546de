"""Advice on a task's input, by rules, from what its clocks measured. Each piece of advice names a place, what is wrong
there, what to change, and how much that wins at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from akrunner.engines.inputs import likely, several
from akrunner.engines.inputs.measures import Advice
from akrunner.engines.inputs.nodes import of_busy_python, of_node, of_nodes, of_python_beside
from akrunner.engines.inputs.pipelines import of_cache, of_decoding, of_iterators, of_prefetch, of_shuffle, of_small
from akrunner.engines.inputs.steps import of_lock, of_python, of_saving, of_standing

#: names -> what they were called before TensorFlow 2.4
_BEFORE = {"tf.data.AUTOTUNE": "tf.data.experimental.AUTOTUNE", "options.threading.": "options.experimental_threading."}


def advised(record: Mapping[str, Any]) -> list[Advice]:
    """Return what to change; the change that wins most comes first."""
    found: list[Advice] = []
    record = several.narrowed(record)
    rules = (
        of_nodes,
        of_busy_python,
        of_prefetch,
        of_iterators,
        of_cache,
        of_shuffle,
        of_decoding,
        of_saving,
        of_python,
        of_python_beside,
        of_lock,
    )
    small = [] if record.get("elsewhere") else of_small(record)
    if small:
        # for batches that cost nothing but their number, other advice wins next to nothing
        return sorted([*small, *of_iterators(record), *of_saving(record)], key=_rank)
    # if another thread reads, it is not known whether the steps wait for it
    for rule in (of_saving,) if record.get("elsewhere") else rules:
        found += rule(record)
    if not found and not record.get("elsewhere"):
        found = of_standing(record)
    if any(one.rule == "lock" for one in found):
        # code that is slow because it waits for its turn needs no other explanation by what it is made of
        found = [one for one in found if not one.likely and one.rule not in ("cache", "prefetch")]
    found = _of_one_cache([*found, *_certain_without(record, found)])
    # two nodes of one dataset may get the same words
    told: dict[str, Advice] = {}
    for one in sorted(found, key=_rank):
        told.setdefault(one.words, one)
    return [_as_named(one, record) for one in told.values()]


def _rank(one: Advice) -> tuple[float, bool, float]:
    # a cache without a promise is advice for passes that nobody has seen: it comes behind what is seen
    return -one.saves, one.rule == "cache", -one.share


def _certain_without(record: Mapping[str, Any], found: list[Advice]) -> list[Advice]:
    """Return the advice that the clocks that are always on give for sure, and that the look at some steps did not lead
    to: a few steps, maybe on a busy machine, do not refute it."""
    if not record["nodes"] or record["by"] != "dataset":
        return []
    known = {one.rule for one in found}
    certain = [one for one in of_nodes({**record, "nodes": []}) if not one.likely]
    return [one for one in certain if one.saves > 0 and one.rule not in known]


def _of_one_cache(found: list[Advice]) -> list[Advice]:
    """Merge two pieces of advice that ask for the same cache of `task_config`'s rows into one: the one that says more,
    with the gain of the other if that is larger."""
    short = next((one for one in found if one.rule != "cache" and one.change.startswith("cache=True")), None)
    again = next((one for one in found if one.rule == "cache" and "cache=True in it" in one.change), None)
    if short is None or again is None:
        return found
    both = replace(short, saves=max(short.saves, again.saves), likely=short.likely or again.likely)
    return [both if one is short else one for one in found if one is not again]


def _as_named(one: Advice, record: Mapping[str, Any]) -> Advice:
    """Return the advice with the names that the script's own TensorFlow has."""
    version = [int(part) if part.isdigit() else 0 for part in str(record.get("version") or "2.4").split(".")[:2]]
    change = one.change
    for name, before in _BEFORE.items() if version < [2, 4] else ():
        change = change.replace(name, before)
    return replace(one, change=change)


def if_it_waits(record: Mapping[str, Any]) -> str:
    """Return what a script would wait for if it waits, when it is not known whether it does; "" if that is not known either."""
    found = []
    for one in several.each(record):
        suspect = likely.suspect(one)
        made = of_node(suspect.node, 1.0, one) if suspect is not None else None
        found += [(made, suspect)] if made is not None and suspect is not None else []
    # of two suspects it is not known which it is; and rows that `task_config` reads are in every job, so they are no suspect
    return found[0][0].what if len(found) == 1 and not found[0][1].node.ours else ""
