"""What a task's clocks say of its input -> what to change, by rules: each names the place, what is wrong there, and how much is won at least."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, List, Mapping, Optional

from akrunner.engines import blame, likely, several, unseen
from akrunner.engines.blame import Blamed
from akrunner.engines.unseen import wait_share

#: share of the time below which nothing is said of a thing
WORTH_SAYING = 0.1
#: of what could be won at best, what is promised
_PROMISED = 0.5
#: seconds, and share of main, after which a first batch is late
_LATE, _LATE_SHARE = 1.0, 0.1
#: of the time it takes, what Python computes that does not only wait
_COMPUTES = 0.3
#: without it there are as many as cores, and those that wait keep others from their turn
_THREADS = "options.threading.private_threadpool_size = 8"
_TUNED = "num_parallel_calls=tf.data.AUTOTUNE"
#: names -> what they were before TensorFlow 2.4
_BEFORE = {"tf.data.AUTOTUNE": "tf.data.experimental.AUTOTUNE", "options.threading.": "options.experimental_threading."}
#: the same where nothing of the machine is idle: what waits for a core seems to wait for something else
_COMPUTES_BESIDE_OTHERS = 0.1
#: of a core, what has to be idle for that
_IDLE = 0.5
#: of the waiting, what a stream's waiting for its rows has to be
_FOR_ROWS = 0.2
#: seconds of waiting in one pass over the rows, below which it is the beginning of a pass that takes long
_SHORT_PASS = 0.5
#: of the time, what another package than TensorFlow must have to be named
_BESIDE = 0.25
#: of what reading files otherwise promises to win
_BESIDE_A_CACHE = 0.4
#: bytes a second, for which a disk is waited at least
_DISK = 1e6
#: with TensorFlow 1's behaviour
_ONE_LOOP = "one loop over all passes (Keras: steps_per_epoch=), as in this TensorFlow the iterator of each loop begins with an empty cache"
#: rows of a batch that is large; sources that are many to read at a time
_LARGE, _MANY_SOURCES = 1024, 8
#: times for each step up to which something is done seldom; of the time, what it should take then
_SELDOM, _LITTLE = 0.2, 0.02
_SOURCES = ("TFRecord", "TextLine", "FixedLengthRecord", "Sleep", "CSV", "Range", "TensorSlice")


@dataclass(frozen=True)
class Advice:
    """Attributes: rule: its name; share: of the steps' time that goes there; saves: of it, what the change wins at least (if it is likely, by which
    it is only ranked); what: goes wrong where; change:
    what to do; likely: nobody has looked, and it follows from what the pipeline is made of: what would tell for sure, else ""."""

    rule: str
    share: float
    saves: float
    what: str
    change: str
    likely: str = ""

    @property
    def words(self) -> str:
        """One sentence."""
        words = f"{self.what}: {self.change}"
        return f"most likely because {words}; {self.likely} tells for sure" if self.likely else words


def whole(record: Mapping[str, Any]) -> float:
    """Seconds of the steps, or of `main` where no steps are known."""
    steps = float(record["wait"] + record["between"])
    return steps if record["known"] and record["by"] and steps > 0 else float(record["main"])


def advised(record: Mapping[str, Any]) -> List[Advice]:
    """What to change, what wins most first."""
    found: List[Advice] = []
    record = several.narrowed(record)
    rules = (_of_nodes, _of_busy_python, _of_prefetch, _of_cache, _of_shuffle, _of_decoding, _of_saving, _of_python)
    # of what another thread reads it is not known whether anybody waits for it
    for rule in (_of_saving,) if record.get("elsewhere") else rules:
        found += rule(record)
    if not found and not record.get("elsewhere"):
        found = _of_standing(record)
    return [_as_named(one, record) for one in sorted(found, key=lambda one: (-one.saves, -one.share))]


def _as_named(one: Advice, record: Mapping[str, Any]) -> Advice:
    """The change in the names that the script's own TensorFlow has."""
    version = [int(part) if part.isdigit() else 0 for part in str(record.get("version") or "2.4").split(".")[:2]]
    change = one.change
    for name, before in _BEFORE.items() if version < [2, 4] else ():
        change = change.replace(name, before)
    return replace(one, change=change)


def if_it_waits(record: Mapping[str, Any]) -> str:
    """What a script would wait for of which nobody knows whether it does, "": that is not known either."""
    found = []
    for one in several.each(record):
        suspect = likely.suspect(one)
        made = _of_node(suspect.node, 1.0, one) if suspect is not None else None
        found += [made.what] if made is not None else []
    # of two nobody knows which
    return found[0] if len(found) == 1 else ""


def _of_nodes(record: Mapping[str, Any]) -> List[Advice]:
    waiting = _for_it(record)
    if waiting < WORTH_SAYING or record["by"] == "feed_dict":
        return []
    if not record["nodes"]:
        return _of_suspect(likely.suspect(record), waiting, record) if record["by"] == "dataset" else []
    found = []
    for node in blame.blamed(record):
        made = _of_node(node, waiting * node.share * _of_passes(node, record), record)
        if made is not None and made.share >= WORTH_SAYING:
            found.append(made)
    return found


def _for_it(record: Mapping[str, Any]) -> float:
    """Of the time, how much is waiting for the pipeline that is waited for most."""
    return wait_share(record) * float(record.get("part", 1.0))


def _may_be_tuned(node: Blamed, record: Mapping[str, Any]) -> bool:
    """Whether TensorFlow may have made a map parallel that was not told to be: fused with its batch, it has the same name then as before."""
    fused = blame.kinds(node.path)[-1][0] == "MapAndBatch"
    return fused and bool(record.get("tunes")) and not node.facts.get("stateful") and node.facts.get("parallel") != 1


def _of_passes(node: Blamed, record: Mapping[str, Any]) -> float:
    """Of the waiting, how much there was in the passes in which a node works: behind a cache, it is in the first only."""
    return first_pass(record) if _behind(node, blame.cache_of(record), record) else 1.0


def _behind(node: Blamed, cache: Optional[int], record: Mapping[str, Any]) -> bool:
    return cache is not None and any(one == node.facts for one in blame.chain_of(record)[cache + 1 :])


def first_pass(record: Mapping[str, Any]) -> float:
    """Of the waiting, how much there was in the first of several passes."""
    nodes = blame.chain_of(record)
    filled = next((one for one in record["pipelines"] if one["nodes"] == nodes and one.get("filled", 0.0) > 0), None)
    if filled is not None:
        return min(1.0, float(filled["filled"]) / max(float(filled["waited"]), 1e-9))
    whole_wait = sum(wait for _, _, wait, _ in record["windows"])
    left, waited = record["batches"] / blame.times(record), 0.0
    for _, batches, wait, _ in record["windows"]:
        part = min(1.0, left / batches) if batches else 1.0
        waited += wait * part
        left -= batches * part
        if left <= 0:
            break
    return waited / whole_wait if whole_wait > 0 else 0.0


def _of_suspect(suspect: Optional[likely.Suspect], waiting: float, record: Mapping[str, Any]) -> List[Advice]:
    """Nobody has looked."""
    if suspect is None:
        return []
    passes = _of_passes(suspect.node, record)
    made = _of_node(suspect.node, waiting * suspect.node.share * passes, record)
    # what fills a cache is not what the script waits for mostly, if it does so in later passes, too
    if made is None or made.share < WORTH_SAYING or passes < _PROMISED:
        return []
    # whether rows have come is timed, too
    return [made if suspect.timed or made.rule == "pipe" else replace(made, likely=unseen.look(record))]


def _of_node(node: Blamed, share: float, record: Mapping[str, Any]) -> Optional[Advice]:
    won = share * _PROMISED
    if node.ours:
        return _of_ours(node, share, record)
    if node.kind == "Generator" or node.facts.get("python"):
        where = f"{node.where}{_line_of_python(record)}"
        if _only_waits(record):
            return _of_waiting(node, where, share, _is_ahead(record))
        return _of_python_node(node, where, share, record)
    if likely.opens_files(node.facts, record):
        # what else is made in each pass of what is read may take longer: a cache spares both
        if blame.passes(record):
            won *= _BESIDE_A_CACHE
        return Advice(
            "small_files", share, won, f"{node.where} opens a file for every element",
            "pack them into records once (akrunner pack)" + ("" if not node.alone else f", and meanwhile {_TUNED}"),
        )  # fmt: skip
    if node.kind == "Map" and not node.facts.get("decodes") and node.call < likely.CHEAP and node.calls >= likely.MANY:
        change = "`batch` first, and let it work on whole batches"
        if node.facts.get("parses"):
            change += " (tf.io.parse_example)"
        return Advice(
            "cheap_map",
            share,
            won,
            f"{node.where} is called {node.calls:.0f} times for one batch, and each call does little",
            change,
        )
    if node.kind == "Map" and node.alone and _may_be_tuned(node, record):
        return Advice(
            "busy_map", share, 0.0, f"{node.where} takes the time, and this TensorFlow may run several calls of it at once by itself",
            "do less in it, do it once before the job, or give the task more cores",
        )  # fmt: skip
    if node.kind == "Map" and node.alone:
        # what other cores can take, of those that nothing else uses
        spare = min(3.0, record["cores"] - 1.0, record["idle"] if record["idle"] is not None else 3.0)
        most = share * (1 - 1 / (1 + spare))
        return Advice("map", share, most * _PROMISED, f"{node.where} runs one call at a time", _TUNED)
    if node.source and node.kind in _SOURCES:
        return _of_sources(node, share, record)
    if node.kind == "Map" and 1 < node.facts.get("parallel", 0) < record["cores"]:
        return Advice(
            "map", share, 0.0, f"{node.where} runs {node.facts['parallel']} calls at a time, on {record['cores']} cores", _TUNED
        )
    if node.kind == "Map":
        return Advice(
            "busy_map", share, 0.0, f"{node.where} is called on {record['cores']} cores at once, and they do not keep up",
            "do less in it, do it once before the job, or give the task more cores",
        )  # fmt: skip
    if node.kind in likely.FILES and not any(
        parallel for kind, parallel in blame.kinds(node.path)[:-1] if kind in blame.SEVERAL
    ):
        return Advice(
            "one_source", share, 0.0, f"{node.where} reads its files one after another",
            f"several at once: num_parallel_reads=8 of TFRecordDataset, or interleave(..., cycle_length=8, {_TUNED}); of one large file make several (akrunner pack)",
        )  # fmt: skip
    if node.kind in ("Batch", "PaddedBatch"):
        return Advice(
            "node",
            share,
            0.0,
            f"{node.where} puts rows together",
            "give it fewer and larger pieces: rows that come in batches already, and `rebatch` or none",
        )
    return Advice("node", share, 0.0, f"{node.where} is slow", "see what it does there, and whether it has to")


def _of_python_node(node: Blamed, where: str, share: float, record: Mapping[str, Any]) -> Advice:
    """Python that computes: several calls of it at once take turns, and of whole batches there is only less to do for each."""
    several = "several calls at once, of which one computes at a time" if not node.alone else "one after another"
    whole_batches = not any(kind in ("Batch", "PaddedBatch", "MapAndBatch") for kind in _above(node, record))
    what = f"{where} runs Python for every {'batch' if whole_batches else 'element'}, {several}"
    change = "use TensorFlow's operations" + (
        ", or numpy's on the whole batch" if whole_batches else ", or give and take whole batches"
    )
    if record["by"] == "function":
        change += "; of a Keras Sequence (PyDataset) workers=4 makes several at once"
    return Advice("python", share, share * _PROMISED, what, f"{change}; rows come fastest by task_config.dataset()")


def _above(node: Blamed, record: Mapping[str, Any]) -> List[str]:
    """Kinds of the nodes that draw from one."""
    if node.above:
        fused = blame.kinds(node.path)[-1][0]
        return [*node.above, *blame.FUSED.get(fused, ())[:1]]
    chain = blame.chain_of(record)
    place = next((place for place, one in enumerate(chain) if one == node.facts), 0)
    return [blame.plain(one["node"]) for one in chain[:place]]


def _of_sources(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice:
    """Sources that an interleave or flat_map reads: one after another, or several at once, which do not keep up."""
    reader = blame.reader_of(node, record)
    cycle, calls = reader.get("cycle", 0), reader.get("parallel", 0)
    place, at_once = blame.place(node.source), f"interleave(..., cycle_length=8, {_TUNED}, deterministic=False)"
    if not str(reader.get("node", "")).startswith("Parallel") or cycle == 1 or calls == 1:
        return Advice("one_source", share, share * _PROMISED, f"the sources at {place} are read one after another", at_once)
    if 0 < cycle < _MANY_SOURCES or 0 < calls < _MANY_SOURCES:
        few = min(number for number in (cycle, calls) if number > 0)
        return Advice("one_source", share, 0.0, f"the sources at {place} are read {few} at a time, and do not keep up", at_once)
    order = "" if reader.get("unordered") else "deterministic=False if the order does not matter, "
    return Advice(
        "sources", share, 0.0, f"the sources at {place} are read several at a time, and do not keep up",
        f"{order}a larger cycle_length= if they are far away; otherwise a faster place for them",
    )  # fmt: skip


def _of_busy_python(record: Mapping[str, Any]) -> List[Advice]:
    """Of steps that draw their batches themselves, and that nobody has looked at: Python of their pipeline that is at work all the time."""
    if record["known"] or record["by"] not in unseen.INSIDE:
        return []
    suspect = likely.python_at_work(record)
    made = _of_node(suspect.node, suspect.node.share, record) if suspect is not None else None
    if made is None:
        return []
    return [replace(made, what=f"{made.what}, and that takes {made.share:.0%} of the time", saves=0.0)]


def _only_waits(record: Mapping[str, Any]) -> bool:
    """Whether the Python that the input calls waits (for a network, a lock, a clock) and hardly computes. What computes in several threads
    takes turns, so that each of them waits, too: together they compute all the time."""
    python = record.get("python", {})
    wall, computed = python.get("wall", 0.0), python.get("computed", 0.0)
    waited = record["wait"] if record["known"] else wall
    idle = record["idle"]
    most = _COMPUTES if idle is None or idle >= _IDLE else _COMPUTES_BESIDE_OTHERS
    return bool(wall > 0 and computed < most * min(wall, max(waited, record["first"])))


def _of_waiting(node: Blamed, where: str, share: float, ahead: bool) -> Advice:
    at_once = node.parallel or any(parallel for kind, parallel in blame.kinds(node.path)[:-1] if kind in blame.SEVERAL)
    if at_once:
        return Advice(
            "python_waits", share, 0.0, f"{where} waits (a network, a lock, a sleep), several calls at once, and they do not keep up",
            f"more of them at once: a larger num_parallel_calls=, and {_THREADS}, or fewer and larger answers",
        )  # fmt: skip
    change = "num_parallel_calls=8"
    if node.kind == "Generator":
        change = (
            "read several at once, each its part: Dataset.range(8).interleave(lambda i: Dataset.from_generator(part, ..., args=(i,)), "
            "cycle_length=8, num_parallel_calls=8)"
        )
    return Advice(
        "python_waits", share, share * _PROMISED * 0.5, f"{where} waits (a network, a lock, a sleep), one element after another",
        f"{change}, with {_THREADS}, or threads of its own" + ("" if ahead else "; `.prefetch(2)` as the last"),
    )  # fmt: skip


def _of_ours(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice:
    """What `task_config` made: the rows have not come, or it takes them apart."""
    at = node.facts.get("at") or node.source
    where = f"task_config's dataset at {blame.place(at)}" if at else "task_config's dataset"
    if record["spent"].get("pipe", 0.0) >= _FOR_ROWS * share * whole(record):
        return Advice(
            "pipe", share, 0.0, f"{where} waits for rows to come", "the source, or the host, is slower than the script"
        )
    if node.kind == "TFRecord":
        return Advice(
            "spool", share, 0.0, f"{where} reads the rows' file in the work directory more slowly than the script takes them",
            ("" if _from_memory(record) else "a faster disk for it (work_dir=, --work-dir; TMPDIR), ") + "columns= for those that are needed"
            + ("" if _caches(record) else ", cache=True for several passes"),
        )  # fmt: skip
    what = f"{where} parses the rows more slowly than the script takes them"
    # one iterator goes through all of the passes that `repeat=` asks for
    again = sum(one["passes"] for one in record["pipelines"])
    if again > 1 and share * whole(record) < _SHORT_PASS * again:
        kept = "" if _caches(record) else "cache=True in it, and "
        return Advice(
            "parse", share, 0.0, f"{where} begins a pass over the rows again and again, and each is short",
            f"{kept}repeat=N in place of a loop over passes, so that one iterator goes through all of them",
        )  # fmt: skip
    faster = "data_format='columns' (--data-format columns) is several times faster; "
    if not any(one.get("parses") for one in blame.chain_of(record)):
        # they come as columns already
        faster = ""
    return Advice(
        "parse", share, 0.0, what, f"{faster}columns= for those that are needed"
        + ("; larger batches" if max((one.get("rows", 0) for one in blame.chain_of(record)), default=0) < _LARGE else ""),
    )  # fmt: skip


def _from_memory(record: Mapping[str, Any]) -> bool:
    """Whether no disk was read while the script waited: a file that has just been written is still in memory."""
    disk = record.get("disk")
    return disk is not None and disk < _DISK * wait_share(record) * whole(record)


def _line_of_python(record: Mapping[str, Any]) -> str:
    """Where the Python of a generator or a map is, if somebody has seen it."""
    seen = [line for line in record["lines"] if not line["main"]]
    return f" (Python at {blame.place(seen[0]['at'])})" if seen else ""


def _outermost(record: Mapping[str, Any]) -> List[str]:
    """The kinds of the outermost nodes that somebody has looked at."""
    return [blame.outermost([kind for kind, _ in blame.kinds(node["path"])]) for node in record["nodes"]]


def _is_ahead(record: Mapping[str, Any]) -> bool:
    """Whether batches are made ahead by a prefetch at the end. It need not be drawn from in a look: its name is there all the same."""
    return "Prefetch" in {*_outermost(record), blame.outermost([blame.plain(node["node"]) for node in blame.chain_of(record)])}


def _caches(record: Mapping[str, Any]) -> bool:
    return any(blame.plain(node["node"]) == "Cache" for node in blame.chain_of(record))


def _of_prefetch(record: Mapping[str, Any]) -> List[Advice]:
    """The script could wait for less if batches were made while it computes."""
    waiting = _for_it(record)
    seen, chain, ahead = _outermost(record), blame.chain_of(record), _is_ahead(record)
    # newer ones of TensorFlow add one by themselves, which only a look shows
    perhaps = not seen and (record.get("tunes", True) or record["by"] != "dataset")
    # of several, nobody knows which the script's computing belongs to: what the training computes makes no batch of the validation's
    if waiting < WORTH_SAYING or not chain or ahead or perhaps or "place" in record:
        return []
    both = min(waiting, 1 - waiting)
    if both < WORTH_SAYING:
        return []
    return [
        Advice(
            "prefetch", waiting, both * _PROMISED, "no batch is made while the script computes",
            "`.prefetch(2)` as the last of the dataset",
        )
    ]  # fmt: skip


def _of_cache(record: Mapping[str, Any]) -> List[Advice]:
    waiting = _for_it(record)
    if waiting < WORTH_SAYING or not blame.passes(record) or record["by"] in ("feed_dict", "batches"):
        return []
    looked, serves = bool(record["nodes"]), blame.cache_of(record)
    some = blame.blamed(record) if looked else [likely.repeated(record)]
    slow = _worth_keeping([node for node in some if node is not None and node.kind in ("Map", "Generator", *_SOURCES)], record)
    # what is in memory is as quick again
    if slow is None or slow.kind in ("Range", "TensorSlice") or slow.facts.get("random") or _behind(slow, serves, record):
        return []
    share, times = waiting * slow.share, blame.times(record)
    suspect = None if looked else likely.suspect(record)
    if suspect is not None and suspect.timed and suspect.node.facts != slow.facts:
        # that took most of what was waited for, and a cache has to do with the rest
        share *= 1 - suspect.node.share
    if share < WORTH_SAYING:
        return []
    caches = [(place, node) for place, node in enumerate(blame.chain_of(record)) if blame.plain(node["node"]) == "Cache"]
    if any(_behind(slow, place, record) for place, _ in caches):
        what = f"`cache`{_at(caches[0][1])} keeps nothing from one pass to the next"
        change = f"`.repeat(n)` behind it, and {_ONE_LOOP}"
    elif slow.ours or slow.facts.get("ours"):
        if caches:
            return []
        what = f"task_config's dataset at {blame.place(slow.facts.get('at') or slow.at)} does the same again in every pass over the rows"
        change = "cache=True in it, if the rows fit into memory"
    else:
        what = f"{slow.where} does the same again in every pass over the rows"
        instead = f", instead of the one{_at(caches[0][1])}" if caches else ""
        repeat = "" if record.get("keeps", True) else f"; then `.repeat(n)`, and {_ONE_LOOP}"
        change = f"`.cache()` behind it{instead}, before shuffle and repeat, if what it makes is not random and fits into memory{repeat}"
    return [Advice("cache", share, share * (1 - 1 / times) * _PROMISED, what, change, "" if looked else unseen.look(record))]


def _worth_keeping(slow: List[Blamed], record: Mapping[str, Any]) -> Optional[Blamed]:
    """What a cache would spare in later passes: of the nodes that are waited for, one that is known to do much; else what decodes, which may have worked in
    threads of its own while the look was at those that draw from it."""
    known = next((node for node in slow if likely.repeats(node.facts)), None)
    decoding = likely.repeated(record)
    python = any(node.kind == "Generator" or node.facts.get("python") for node in slow)
    if known is None and not python and decoding is not None and decoding.facts.get("decodes") and not decoding.ours:
        return replace(decoding, share=decoding.share * _PROMISED)
    return known or (slow[0] if slow else None)


def _at(node: Mapping[str, Any]) -> str:
    return f" at {blame.place(node['at'])}" if node["at"] else ""


def _of_shuffle(record: Mapping[str, Any]) -> List[Advice]:
    nodes = [node for node in blame.chain_of(record) if blame.plain(node["node"]) == "Shuffle" and node.get("buffer", 0) > 0]
    first, main = record["first"], record["main"]
    late = first >= _LATE and first >= _LATE_SHARE * main
    # what fills slowly because of what is decoded into it has a rule of its own
    if not nodes or not late or record.get("place") or _of_decoding(record) or record["by"] not in ("dataset", "batches"):
        return []
    node = nodes[0]
    where = f" at {blame.place(node['at'])}" if node["at"] else ""
    return [
        Advice(
            "shuffle", first / main, first / main * _PROMISED,
            f"the first batch came after {first:.1f} s: `shuffle`{where} fills its buffer of {node['buffer']:,} elements first",
            "a smaller buffer; shuffle names of files, or the rows once (akrunner pack), to mix them well all the same",
        )
    ]  # fmt: skip


def _of_decoding(record: Mapping[str, Any]) -> List[Advice]:
    nodes = blame.chain_of(record)
    for index, node in enumerate(nodes):
        if blame.plain(node["node"]) != "Shuffle":
            continue
        behind = itertools.takewhile(lambda one: blame.plain(one["node"]) != "Cache", nodes[index + 1 :])
        decoding = next((one for one in behind if one.get("decodes")), None)
        # what is kept is decoded once, and has to be shuffled behind that; and the order of ours is right
        if decoding is None or decoding.get("ours"):
            continue
        late = record["first"] / record["main"] if record["main"] > 0 and record["by"] in ("dataset", "batches") else 0.0
        # the first batch is one of the first pipeline's
        share = 0.0 if record.get("place") else max(late, 0.0)
        where = f" at {blame.place(decoding['at'])}" if decoding["at"] else ""
        return [
            Advice(
                "decode", share, share * _PROMISED, f"`map`{where} decodes before `shuffle`, whose buffer holds decoded images",
                "shuffle first, then decode: the buffer fills at once, and takes a tenth of the memory",
            )
        ]  # fmt: skip
    return []


def _of_saving(record: Mapping[str, Any]) -> List[Advice]:
    if record["by"] == "batches" and (pipe := record["spent"].get("pipe", 0.0) / max(whole(record), 1e-9)) >= WORTH_SAYING:
        slow = "the source, or the host, is slower than the script"
        return [Advice("pipe", pipe, 0.0, "task_config.batches() waits for rows to come", slow)]
    found, seconds = [], whole(record)
    for what, (of, change) in _SAVINGS.items():
        share = min(1.0, record["spent"].get(what, 0.0) / seconds) if seconds > 0 else 0.0
        if share >= WORTH_SAYING:
            found.append(
                Advice(
                    what,
                    share,
                    share * _PROMISED,
                    f"{share:.0%} of the time is {of}",
                    _more_seldom(what, change, share, record),
                )
            )
    return found


#: what is saved, in words -> what to change where it is done at each step, or nobody knows how often
_SAVINGS = {
    "checkpoint": ("saving checkpoints", "save every some hundred steps, or by the minute (CheckpointManager, save_freq=, save_checkpoints_secs=)"),
    "summary": ("writing summaries (tf.summary, TensorBoard)", "write them every hundredth step"),
    "report": ("task_config.report()", "report every hundredth step"),
    "output": ("writing rows", "write more rows at a time (output_writer.write_batch)"),
}  # fmt: skip


def _more_seldom(what: str, change: str, share: float, record: Mapping[str, Any]) -> str:
    """What to change in how often something is saved: if it is seldom already, how much more seldom."""
    times, batches = record.get("times", {}).get(what, 0), record["batches"]
    if what == "output" or not 0 < times <= _SELDOM * batches:
        return change
    # so that it takes a fiftieth of the time
    steps = batches / times * share / (1 - min(share, 0.99)) / _LITTLE
    each = record["spent"][what] / times
    unit = 10 ** (len(str(int(steps))) - 1)
    return (
        f"one takes {each:.2g} s, and there is one for {batches / times:,.0f} steps: one for {math.ceil(steps / unit) * unit:,} steps takes "
        f"{_LITTLE:.0%} of the time" + (", or less in each" if what == "summary" else "")
    )


def _of_python(record: Mapping[str, Any]) -> List[Advice]:
    """What the script does itself between steps: pandas, the making of what it feeds, or hands over."""
    found = []
    if record["looks"] < unseen.ENOUGH:
        # too few to tell a share from chance
        record = {**record, "lines": []}
    pandas = [line for line in record["lines"] if line["main"] and line["in"] == "pandas"]
    share = sum(line["share"] for line in pandas)
    # a script that reads nothing, and trains nothing, may have nothing but pandas to do
    if share >= WORTH_SAYING and (unseen.reads(record) or record.get("tensorflow", True)):
        found.append(
            Advice(
                "pandas", share, share * _PROMISED, f"{share:.0%} of the time is pandas at {blame.place(pandas[0]['at'])}",
                "turn the columns into arrays once, before the loop, or read them by task_config.batches()",
            )
        )  # fmt: skip
    between = _of_between(record)
    found += between
    at, share = unseen.beside(record)
    if share >= _BESIDE and not between:
        found.append(
            Advice(
                "beside", share, 0.0, f"{share:.0%} of the time Python is at {at}, not in TensorFlow",
                "if that is no training (saving, writing, plotting), do it less often, or in a thread of its own",
            )
        )  # fmt: skip
    waiting = wait_share(record)
    if record["by"] == "feed_dict" and waiting >= WORTH_SAYING:
        main = next((line for line in record["lines"] if line["main"]), None)
        where = (f" at {blame.place(main['at'])}" if main else "") + _line_of_python(record)
        found.append(
            Advice(
                "feed_dict", waiting, waiting * _PROMISED, f"{waiting:.0%} of the time is between session.run() and the next: Python makes what is fed{where}",
                "let the graph draw its batches itself: task_config.dataset(...), make_one_shot_iterator().get_next(); Keras: fit(dataset), or workers=8 for a Sequence",
            )
        )  # fmt: skip
    if record["by"] == "call" or (record["by"] == "function" and record["outside"] > 0.5 * whole(record)):
        found += _of_calls(record)
    return found


#: what the line does at which Python is most often between the steps -> that in words, and what to change
_BETWEEN = {
    "prints": ("which prints", "print every hundredth step"),
    "writes": ("which writes", "write every hundredth step, or in a thread of its own"),
    "records": (
        "which takes records apart, or makes them, in Python",
        "of whole batches in the dataset: .batch(n).map(lambda rows: tf.io.parse_example(rows, {...}), num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "texts": (
        "which takes texts or bytes apart",
        "of whole batches in the dataset (tf.io.decode_csv, tf.strings.split, tf.io.decode_raw), or have the job read the table: task_config.dataset()",
    ),
    "tensors": ("which makes tensors", "if it makes them row by row, one numpy array for the whole batch, or a map of whole batches in the dataset"),
}  # fmt: skip
_OTHERWISE = ("", "what is no training every hundredth step, on whole batches, or in the dataset's map")


def _of_between(record: Mapping[str, Any]) -> List[Advice]:
    """Python between the steps of a loop over batches: how much of it there is, is timed if the steps call functions; else it is known of lines that say
    what they do."""
    line = unseen.slow_line(record)
    if line is None or line["in"] == "pandas" or (record["wait"] + record["between"]) < unseen.TOO_SHORT:
        return []
    share, does = unseen.python_between(record), str(line.get("does", ""))
    words, change = _BETWEEN.get(does, _OTHERWISE)
    place = (
        ("in the loop at " if does == "loops" else "at ")
        + blame.place(line["at"])
        + (f" ({line['in']})" if line["in"] and not words else "")
    )
    told = f"Python is most often {place}" + (f", {words}" if words else "")
    if share >= _BESIDE and line["share"] >= WORTH_SAYING:
        won = min(share, float(line["share"])) * _PROMISED
        return [
            Advice(
                "beside",
                share,
                won,
                f"{share:.0%} of the time is between the steps, in none of TensorFlow's functions; {told}",
                change,
            )
        ]
    if record["by"] in ("dataset", "batches") and not share and words and line["share"] >= _BESIDE:
        return [
            Advice(
                "beside",
                float(line["share"]),
                0.0,
                f"{line['share']:.0%} of the time {told.replace(' most often', '', 1)}",
                change,
            )
        ]
    return []


def _of_standing(record: Mapping[str, Any]) -> List[Advice]:
    """Of a loop over batches for which there is nothing else to say: a line of the script at which it waits, and that is neither TensorFlow nor its input. A loop of operations
    one by one has no clock that tells it from those, but the processor's."""
    at, share = unseen.standing(record)
    if record["by"] not in ("dataset", "batches") or share < _BESIDE or (record["wait"] + record["between"]) < unseen.TOO_SHORT:
        return []
    what = f"{share:.0%} of the time Python waits at {at}, and hardly computes (a network, a lock, a sleep)"
    return [Advice("beside", share, 0.0, what, _OTHERWISE[1])]


def _of_calls(record: Mapping[str, Any]) -> List[Advice]:
    """The script hands TensorFlow's functions what it has read itself."""
    seconds = max(float(record["wait"] + record["between"]), 1e-9)
    share = float(record["outside"]) / seconds
    at, at_line = unseen.busiest(record)
    if share < WORTH_SAYING or seconds < unseen.TOO_SHORT or at_line < WORTH_SAYING:
        return []
    if unseen.waits_for_threads(record) >= 0.5 * share:
        return [
            Advice(
                "thread", share, 0.0, f"{share:.0%} of the time is between the calls of TensorFlow's functions, where the script waits at {at} for another "
                "thread or process, which does not keep up", "several of them, larger pieces, or less to do for each",
            )
        ]  # fmt: skip
    line = unseen.slow_line(record)
    words, change = _BETWEEN.get(str(line.get("does", "")) if line is not None else "", _OTHERWISE)
    if line is not None and (words or record["by"] == "function"):
        # what draws by itself is not handed what is read between the calls
        told = f"Python is most often at {blame.place(line['at'])}" + (f", {words}" if words else "")
        won = min(share, float(line["share"])) * _PROMISED
        return [
            Advice(
                "between", share, won, f"{share:.0%} of the time is between the calls of TensorFlow's functions; {told}", change
            )
        ]
    if record["by"] == "function":
        # a callback that waits: it draws by itself, so that is no reading
        words = f"{share:.0%} of the time is between the calls of TensorFlow's functions; Python is most often at {at}"
        return [Advice("between", share, min(share, at_line) * _PROMISED, words, _OTHERWISE[1])]
    # at best the shorter side is done while the longer one is
    return [
        Advice(
            "between", share, min(share, 1 - share) * _PROMISED,
            f"{share:.0%} of the time is between the calls of TensorFlow's functions; Python is most often at {at}",
            "if that reads, have it done meanwhile: tf.data.Dataset.from_generator(...).prefetch(2), or a thread of yours; rows come by "
            "task_config.dataset()",
        )
    ]  # fmt: skip
