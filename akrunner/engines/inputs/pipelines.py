"""Rules for the order of a pipeline: a prefetch or a cache that is missing, too much shuffling, decoding too early."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from akrunner.engines.inputs import blame, likely, unseen
from akrunner.engines.inputs.blame import Blamed
from akrunner.engines.inputs.measures import MAIN, PROMISED, SOURCES, WORTH_SAYING, Advice, behind, for_it, is_ahead, outermost

#: seconds, and share of `main`, after which a first batch is late
_LATE, _LATE_SHARE = 1.0, 0.1
#: the script makes an iterator for nearly every batch if there are at least this many, and at least this share of the batches
_ITERATORS, _EACH = 8, 0.5
#: a buffer of at most so many batches is full as soon as the first of them
_FULL_SOON = 2
#: a batch is small up to so many rows; the rule is for at least so many batches, each drawn in at most so many seconds
_FEW_ROWS, _MANY_BATCHES, _DRAWN = 4, 1000, 0.0006
#: factor for these seconds if no core of the machine is idle
_SHARED = 4
#: the advice under TensorFlow 1's behaviour
_ONE_LOOP = "one loop over all passes (Keras: steps_per_epoch=), as in this TensorFlow the iterator of each loop begins with an empty cache"


def of_prefetch(record: Mapping[str, Any]) -> list[Advice]:
    """Advise a prefetch if the script would wait less when batches were made while it computes."""
    waiting = for_it(record)
    seen, chain, ahead = outermost(record), blame.chain_of(record), is_ahead(record)
    # newer versions of TensorFlow add a prefetch themselves, which only a look shows
    perhaps = not seen and (blame.tuned(record, "ahead") or record["by"] != "dataset")
    # with several pipelines, it is not known which one the script's computing belongs to: while the training computes, no
    # batch of the validation is made
    if waiting < WORTH_SAYING or not chain or ahead or perhaps or "place" in record:
        return []
    both = min(waiting - _of_turns(record), 1 - waiting)
    if both < WORTH_SAYING:
        return []
    return [
        Advice(
            "prefetch", both, _overlap(both, record) * PROMISED, "no batch is made while the script computes",
            "`.prefetch(2)` as the last of the dataset",
        )
    ]  # fmt: skip


def _of_turns(record: Mapping[str, Any]) -> float:
    """Return the share of the time that stays waiting even if batches are made ahead.

    Python has one lock. Python that computes in the pipeline keeps the script from its turn, and short steps need a turn
    often. Between long steps, the script's own Python takes turns with it too.
    """
    computes = unseen.python_computes(record)
    if not computes:
        return 0.0
    if not unseen.short(record):
        return min(computes, unseen.python_between(record))
    calls = record["python"].get("calls", 0) * likely.CALL / float(record["wait"] + record["between"])
    return float(2 * computes + calls)


def _overlap(both: float, record: Mapping[str, Any]) -> float:
    """Return the share of the time that making batches ahead wins at best.

    If no core is idle, two things at once hardly take less time than one after the other. Then only that part of them
    counts for which there is room, so that a change of more of the time comes first.

    Args:
        both: the share of the time that waiting and computing could have in common.
    """
    room = _room(record)
    return both * room if unseen.shared(record) else min(both, room)


def _room(record: Mapping[str, Any]) -> float:
    """Return the share of the time that is won at best by computing things at once instead of one after another: of the
    cores that others leave to the task, those that it does not use yet."""
    used, idle = record.get("used"), record["idle"]
    return 1.0 if used is None or idle is None or used + idle <= 0 else float(idle / (used + idle))


def of_small(record: Mapping[str, Any]) -> list[Advice]:
    """Advise larger batches if a batch has a row or two, and is drawn in no time: the script waits only for what a batch
    costs whatever it holds."""
    chain, batches = blame.chain_of(record), record["batches"]
    rows = next((one["rows"] for one in chain if one.get("rows", 0) > 0), 0)
    waiting, each = for_it(record), record["wait"] / max(1, batches)
    if (
        record["by"] != "dataset"
        or not 0 < rows <= _FEW_ROWS
        or batches < _MANY_BATCHES
        or waiting < WORTH_SAYING
        or each > _DRAWN * (_SHARED if unseen.shared(record) and all(blame.hands_on(one["node"]) for one in chain) else 1)
    ):
        return []
    works = any(blame.calls_python(one) or one.get("decodes") or one.get("reads") for one in chain)
    # nodes that only hand rows on do not take longer for more rows, however long a look on a busy machine saw them wait
    seen = max((node["own"] / max(1, node["calls"]) for node in record["nodes"] if not _hands_on(node["path"])), default=0.0)
    if works or rows * seen > each / 2:
        return []
    return [
        Advice(
            "small", waiting, 0.0, f"a batch has {rows} row{'' if rows == 1 else 's'}, and to draw it takes {1000 * each:.2g} "
            "ms, as it would with many",
            "fewer and larger batches, like `.batch(32)`",
        )
    ]  # fmt: skip


def _hands_on(path: str) -> bool:
    return blame.hands_on(path.rpartition("::")[2])


def of_iterators(record: Mapping[str, Any]) -> list[Advice]:
    """Advise one iterator for all steps, if the script makes one for each batch: `next(iter(dataset))` begins the dataset
    anew each time."""
    waiting, chain = for_it(record), blame.chain_of(record)
    if waiting < WORTH_SAYING or not chain or not begins_anew(record):
        return []
    made = sum(one["passes"] for one in record["pipelines"])
    at = next((node["at"] for node in chain if node["at"]), "")
    shuffle = any(blame.plain(node["node"]) == "Shuffle" for node in chain)
    return [
        Advice(
            "iterators", waiting, waiting * PROMISED,
            f"of the dataset{' at ' + blame.place(at) if at else ''} an iterator is made for nearly every batch ({made:,} for "
            f"{record['batches']:,}), and each begins it anew{', and fills the buffer of `shuffle`' if shuffle else ''}",
            "one for all steps, before the loop: rows = iter(dataset), then next(rows); of a dataset that has one batch only, "
            "`.repeat(n)`",
        )
    ]  # fmt: skip


def begins_anew(record: Mapping[str, Any]) -> bool:
    """Whether the script makes an iterator for nearly every batch of the same rows."""
    if blame.of_a_stream(record):
        return False
    made = sum(one["passes"] for one in record["pipelines"])
    return record["by"] == "dataset" and bool(made >= max(_ITERATORS, _EACH * record["batches"]))


def of_cache(record: Mapping[str, Any]) -> list[Advice]:
    waiting = for_it(record)
    if begins_anew(record):
        return []
    if waiting < WORTH_SAYING or not blame.passes(record) or record["by"] in ("feed_dict", "batches"):
        return []
    looked, serves = bool(record["nodes"]), blame.cache_of(record)
    some = blame.blamed(record) if looked else [likely.repeated(record)]
    slow = _worth_keeping([node for node in some if node is not None and node.kind in ("Map", "Generator", *SOURCES)], record)
    # reading from memory is as quick the next time
    if slow is None or slow.kind in ("Range", "TensorSlice") or slow.facts.get("random") or behind(slow, serves, record):
        return []
    share, times = waiting * slow.share, blame.times(record)
    if not looked and any(blame.calls_python(one) and one != slow.facts for one in blame.chain_of(record)):
        # the script waits for that Python too, however many of its calls run at once, and a cache helps only with the rest
        share *= max(0.0, 1 - likely.python_costs(record))
    if share < WORTH_SAYING:
        return []
    again = f"{'takes the time, and ' * (times is None)}does the same again in every pass over the rows"
    caches = [(place, node) for place, node in enumerate(blame.chain_of(record)) if blame.plain(node["node"]) == "Cache"]
    if any(behind(slow, place, record) for place, _ in caches):
        what = f"`cache`{_at(caches[0][1])} keeps nothing from one pass to the next"
        change = f"`.repeat(n)` behind it, and {_ONE_LOOP}"
    elif slow.ours or slow.facts.get("ours"):
        if caches:
            return []
        what = f"task_config's dataset at {blame.place(slow.facts.get('at') or slow.at)} {again}"
        change = "cache=True in it, if the rows fit into memory"
    else:
        what = f"{slow.where} {again}"
        below = blame.repeat_below(slow, record)
        if below is not None:
            return [_behind_a_repeat(what, share, times, below, "" if looked else unseen.look(record))]
        instead = f", instead of the one{_at(caches[0][1])}" if caches else ""
        repeat = "" if record.get("keeps", True) else f"; then `.repeat(n)`, and {_ONE_LOOP}"
        change = f"`.cache()` behind it{instead}, before shuffle and repeat, if what it makes is not random and fits into memory{repeat}"
    return [_for_passes(Advice("cache", share, share, what, change, "" if looked else unseen.look(record)), times)]


def _for_passes(one: Advice, times: float | None) -> Advice:
    """Return advice that saves its share in each pass but the first, with what it wins in the passes that there were. If these
    are not known, it promises nothing, and says for whom it is.

    Args: times: how many passes there were, None if it is not known.
    """
    if times is None:
        return replace(one, saves=0.0, change=f"if the script goes through them more than once, {one.change}")
    return replace(one, saves=one.saves * (1 - 1 / times) * PROMISED)


def _behind_a_repeat(what: str, share: float, times: float | None, repeat: Mapping[str, Any], likely: str) -> Advice:
    """Return the advice for a node that draws from a repeat: a cache right behind it would store all passes, and never be
    read."""
    away = "leave repeat= out of task_config.dataset()" if repeat.get("ours") else f"move `repeat`{_at(repeat)} behind it"
    change = f"{away}, and `.cache()` between them, if what it makes is not random and fits into memory"
    if repeat.get("ours"):
        change = f"{away}, and `.cache().repeat(n)` behind the map, if what it makes is not random and fits into memory"
    return _for_passes(Advice("cache", share, 0.0 if repeat.get("depth", 0) else share, what, change, likely), times)


def _worth_keeping(slow: list[Blamed], record: Mapping[str, Any]) -> Blamed | None:
    """Return, of the nodes that the script waits for, the one whose work a cache would save in later passes.

    That is a node known to do much. If there is none, it is the node that decodes: it may have worked in threads of its
    own while the look saw the nodes that draw from it.
    """
    known = next((node for node in slow if likely.repeats(node.facts)), None)
    decoding = likely.repeated(record)
    python = any(node.kind == "Generator" or node.facts.get("python") for node in slow)
    if known is None and not python and decoding is not None and decoding.facts.get("decodes") and not decoding.ours:
        return replace(decoding, share=decoding.share * PROMISED)
    return known or (slow[0] if slow else None)


def _at(node: Mapping[str, Any]) -> str:
    return f" at {blame.place(node['at'])}" if node["at"] else ""


def of_shuffle(record: Mapping[str, Any]) -> list[Advice]:
    node = max(_shuffles(record), key=lambda one: _batches_in(one, record), default=None)
    first, main = record["first"], record["main"]
    late = first >= _LATE and first >= _LATE_SHARE * main
    # a buffer that fills slowly because images are decoded into it has a rule of its own
    if node is None or not late or record.get("place") or of_decoding(record) or record["by"] not in ("dataset", "batches"):
        return []
    fills = _fills(node, record)
    if _batches_in(node, record) <= _FULL_SOON or (_fills_again(node, record) and fills < PROMISED * first):
        # it is the source that begins slowly
        return []
    where = f" at {blame.place(node['at'])}" if node["at"] else ""
    return [
        Advice(
            "shuffle", first / main, min(first, fills) / main * PROMISED,
            f"the first batch came after {first:.1f} s: `shuffle`{where} fills its buffer of {node['buffer']:,} elements first",
            "a smaller buffer; shuffle names of files, or the rows once (akrunner pack), to mix them well all the same",
            of=MAIN,
        )
    ]  # fmt: skip


def _shuffles(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [node for node in blame.chain_of(record) if blame.plain(node["node"]) == "Shuffle" and node.get("buffer", 0) > 0]


def _batches_in(shuffle: Mapping[str, Any], record: Mapping[str, Any]) -> float:
    """Return how many of the script's batches the buffer of a shuffle holds."""
    above = itertools.takewhile(lambda one: one is not shuffle, blame.chain_of(record))
    return float(shuffle["buffer"] / math.prod(max(1, one.get("rows", 1)) for one in above))


def _fills(shuffle: Mapping[str, Any], record: Mapping[str, Any]) -> float:
    """Return the seconds in which as many batches as a shuffle's buffer holds come in the later steps: filling it takes no
    longer."""
    later = max(1, int(record["batches"]) - 1)
    return _batches_in(shuffle, record) * float(record["wait"] + record["between"]) / later


def _fills_again(shuffle: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether the later steps tell how long the buffer takes to fill: most of their rows came from where it is filled, and
    neither from the full buffer nor from a cache."""
    behind = itertools.dropwhile(lambda one: one is not shuffle, blame.chain_of(record))
    cached = any(blame.plain(one["node"]) == "Cache" for one in behind)
    return not cached and bool(record["batches"] >= 2 * _batches_in(shuffle, record))


def of_decoding(record: Mapping[str, Any]) -> list[Advice]:
    nodes = blame.chain_of(record)
    for index, node in enumerate(nodes):
        if blame.plain(node["node"]) != "Shuffle":
            continue
        behind = itertools.takewhile(lambda one: blame.plain(one["node"]) != "Cache", nodes[index + 1 :])
        decoding = next((one for one in behind if one.get("decodes")), None)
        # rows in a cache are decoded once, and must be shuffled behind it; and the order in akrunner's own dataset is right
        if decoding is None or decoding.get("ours"):
            continue
        late = record["first"] / record["main"] if record["main"] > 0 and record["by"] in ("dataset", "batches") else 0.0
        # the first batch belongs to the first pipeline
        share = 0.0 if record.get("place") else max(late, 0.0)
        most = _fills(node, record) / record["main"] if share and node.get("buffer", 0) > 0 else share
        where = f" at {blame.place(decoding['at'])}" if decoding["at"] else ""
        return [
            Advice(
                "decode", share, min(share, most) * PROMISED, f"`map`{where} decodes before `shuffle`, whose buffer holds decoded images",
                "shuffle first, then decode: the buffer fills at once, and takes a tenth of the memory",
                of=MAIN,
            )
        ]  # fmt: skip
    return []
