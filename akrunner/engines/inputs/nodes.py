"""Rules for the node of a pipeline that the script waits for: a map, a generator, the reading, or akrunner's own input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from akrunner.engines.inputs import blame, likely, unseen
from akrunner.engines.inputs.blame import Blamed
from akrunner.engines.inputs.measures import (
    PROMISED,
    SOURCES,
    TUNED,
    WORTH_SAYING,
    Advice,
    brief,
    first_pass,
    for_it,
    is_ahead,
    line_of_python,
    of_passes,
    whole,
)
from akrunner.engines.inputs.unseen import wait_share

#: share of its time that Python computes if it does not only wait
_COMPUTES = 0.3
#: without this option there are as many threads as cores, and calls that wait keep others from a thread
_THREADS = "options.threading.private_threadpool_size"
#: how many calls of Python that waits are advised to run at once
_AT_ONCE = 8
#: if several calls take turns, each computes at least this share of the time that they take together
_NO_TURN = 0.03
#: the same as _COMPUTES if no core of the machine is idle: calls that wait for a core seem to wait for something else
_COMPUTES_BESIDE_OTHERS = 0.1
#: share of the waiting that a stream's waiting for its rows must have
_FOR_ROWS = 0.2
#: if a pass over the rows has fewer seconds of waiting than this, it is the beginning of the pass that takes long
_SHORT_PASS = 0.5
#: factor for the gain that packing the files promises, if a cache would save that work and more
_BESIDE_A_CACHE = 0.4
#: advice that leaves less to do for images that are cached, and for all images
_FEWER = "fewer of the changes in `augment` (a list of them; 'flip' alone costs little), or none"
_BYTES = "dtype 'uint8' in image=, a quarter of the bytes"
_LESS = "images of fewer pixels, or more cores for the task"
#: if the first of several passes has this share of the waiting, the script waits for the work behind the cache
_FIRST_PASS = 0.5
#: if fewer bytes a second than this are read from disks, the script does not wait for a disk
_DISK = 1e6
#: the rows of a batch that need not be larger; the number of sources at a time that need not be larger
_LARGE, _MANY_SOURCES = 1024, 8


def of_nodes(record: Mapping[str, Any]) -> list[Advice]:
    waiting = for_it(record)
    if waiting < WORTH_SAYING or record["by"] == "feed_dict":
        return []
    if not record["nodes"]:
        some = likely.suspects(record) if record["by"] == "dataset" else []
        return [made for one in some for made in _of_suspect(one, waiting, record)]
    found = []
    for node in blame.blamed(record):
        made = of_node(node, waiting * node.share * of_passes(node, record), record)
        if made is not None and made.share >= WORTH_SAYING:
            found.append(made)
    return found


def _may_be_tuned(node: Blamed, record: Mapping[str, Any]) -> bool:
    """Whether TensorFlow may have made a map parallel by itself. If it is fused with its batch, its name does not show that."""
    fused = blame.kinds(node.path)[-1][0] == "MapAndBatch"
    return (
        fused
        and bool(record.get("tunes"))
        and blame.tuned(record, "maps")
        and not node.facts.get("stateful")
        and node.facts.get("parallel") != 1
    )


def _of_suspect(suspect: likely.Suspect, waiting: float, record: Mapping[str, Any]) -> list[Advice]:
    """Return the advice for a suspect that no look has confirmed."""
    passes = of_passes(suspect.node, record)
    made = of_node(suspect.node, waiting * suspect.node.share * passes, record)
    # if the script waits in later passes too, it does not mostly wait for the work that fills a cache
    if made is None or made.share < WORTH_SAYING or passes < PROMISED:
        return []
    # the time in which a stream waited for rows is measured too
    return [made if suspect.timed or made.rule == "pipe" else replace(made, likely=unseen.look(record))]


def of_node(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice | None:
    won = share * PROMISED
    if node.ours:
        return _of_ours(node, share, record)
    if node.kind == "Generator" or node.facts.get("python"):
        where = f"{node.where}{line_of_python(record)}"
        if _only_waits(record):
            return _of_waiting(node, where, share, record)
        return _of_python_node(node, where, share, record)
    if likely.opens_files(node.facts, record):
        often, decodes = blame.times(record), any(one.get("decodes") for one in blame.chain_of(record))
        # the work that is done in each pass after reading may take longer: a cache saves both
        if (often or 1) > 1 and decodes:
            won *= _BESIDE_A_CACHE
        kept = (
            ""
            if not blame.passes(record)
            or decodes
            or blame.cache_of(record) is not None
            or blame.repeat_below(node, record) is not None
            else f"; or{', for several passes,' * (often is None)} `.cache()` behind it, if it fits into memory"
        )
        return Advice(
            "small_files", share, won, f"{node.where} opens a file for every element",
            "pack them into records once (akrunner pack)" + ("" if not node.alone else f", and meanwhile {TUNED}") + kept,
        )  # fmt: skip
    if node.kind == "Map" and node.facts.get("made_by"):
        by = node.facts["made_by"]
        return Advice(
            "node",
            share,
            0.0,
            f"{node.where}, which is a part of `{by}`, is slow",
            f"do without `{by}`, or give it larger elements",
        )
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
            "busy_map", share, 0.0, f"{node.where} takes the time, and this TensorFlow may run several calls of it at once by "
            "itself",
            "do less in it, do it once before the job, or give the task more cores",
        )  # fmt: skip
    if node.kind == "Map" and node.alone:
        # calls that other cores can take over, of those that nothing else uses
        spare = min(3.0, record["cores"] - 1.0, record["idle"] if record["idle"] is not None else 3.0)
        most = share * (1 - 1 / (1 + spare))
        return Advice("map", share, most * PROMISED, f"{node.where} runs one call at a time", TUNED)
    if node.source and node.kind in SOURCES:
        return _of_sources(node, share, record)
    if node.kind == "Map" and 1 < node.facts.get("parallel", 0) < record["cores"]:
        return Advice(
            "map", share, 0.0, f"{node.where} runs {node.facts['parallel']} calls at a time, on {record['cores']} cores", TUNED
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
            f"several at once: num_parallel_reads=8 of TFRecordDataset, or interleave(..., cycle_length=8, {TUNED}); of one "
            "large file make several (akrunner pack)",
        )  # fmt: skip
    if node.kind in ("Batch", "PaddedBatch"):
        return Advice(
            "node",
            share,
            0.0,
            f"{node.where} puts rows together",
            "give it fewer and larger pieces: rows that come in batches already, and `rebatch` or none",
        )
    if node.kind in ("TensorSlice", "Tensor", "Range"):
        return _of_memory(node, share, record)
    return Advice("node", share, 0.0, f"{node.where} is slow", "see what it does there, and whether it has to")


def _of_memory(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice | None:
    """Return the advice for arrays in memory, from which TensorFlow takes one piece after another: the only change is to
    take fewer pieces. None for the few rows that `task_config` keeps there."""
    rows = next((one["rows"] for one in blame.chain_of(record) if one.get("rows", 0) > 0), 0)
    if node.kind != "TensorSlice" or rows < 1 or node.facts.get("ours"):
        return None
    return Advice(
        "arrays", share, 0.0, f"{node.where} takes arrays in memory apart, row by row",
        "fewer and larger batches, or a dataset of whole ones: Dataset.range(0, n, rows).map(lambda i: x[i:i + rows]) of "
        "tensors"
        if rows > 1
        else "fewer and larger batches, like `.batch(32)`",
    )  # fmt: skip


def _of_python_node(node: Blamed, where: str, share: float, record: Mapping[str, Any], computes: bool = False) -> Advice:
    """Return the advice for Python that computes. Several calls at once take turns; with whole batches there is only less
    to do for each row.

    Args: computes: whether it is known that it does not load files instead, which several can do at once.
    """
    several = "several calls at once, of which one computes at a time" if not node.alone else "one after another"
    whole_batches = not any(kind in ("Batch", "PaddedBatch", "MapAndBatch") for kind in _above(node, record))
    what = f"{where} runs Python for every {'batch' if whole_batches else 'element'}, {several}"
    change = "use TensorFlow's operations" + (
        ", or numpy's on the whole batch" if whole_batches else ", or give and take whole batches"
    )
    if node.kind == "Generator" and node.alone and not computes:
        change += (
            "; if it only loads files, several readers at once: "
            f"Dataset.range({_AT_ONCE}).interleave(..., cycle_length={_AT_ONCE}, num_parallel_calls={_AT_ONCE})"
        )
    if node.kind == "Generator" and record["by"] == "function":
        change += "; if it is a Keras Sequence (PyDataset), workers=4 makes several at once"
    return Advice("python", share, share * PROMISED, what, change + _fastest(record))


def _fastest(record: Mapping[str, Any]) -> str:
    """Return advice to read the rows by `task_config`; "" if the script does so in one of its datasets."""
    ours = any(one.get("ours") for pipeline in record["pipelines"] for one in pipeline["nodes"])
    return "" if ours else "; rows come fastest by task_config.dataset()"


def _above(node: Blamed, record: Mapping[str, Any]) -> list[str]:
    """Return the kinds of the nodes that draw from a node."""
    if node.above:
        fused = blame.kinds(node.path)[-1][0]
        return [*node.above, *blame.FUSED.get(fused, ())[:1]]
    chain = blame.chain_of(record)
    place = next((place for place, one in enumerate(chain) if one == node.facts), 0)
    return [blame.plain(one["node"]) for one in chain[:place]]


def _of_sources(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice:
    """Return the advice for sources that an interleave or flat_map reads: one after another, or several at once that do
    not keep up."""
    reader = blame.reader_of(node, record)
    cycle, calls = reader.get("cycle", 0), reader.get("parallel", 0)
    place, at_once = blame.place(node.source), f"interleave(..., cycle_length=8, {TUNED}, deterministic=False)"
    if not str(reader.get("node", "")).startswith("Parallel") or cycle == 1 or calls == 1:
        return Advice("one_source", share, share * PROMISED, f"the sources at {place} are read one after another", at_once)
    if 0 < cycle < _MANY_SOURCES or 0 < calls < _MANY_SOURCES:
        few = min(number for number in (cycle, calls) if number > 0)
        return Advice("one_source", share, 0.0, f"the sources at {place} are read {few} at a time, and do not keep up", at_once)
    order = "" if reader.get("unordered") else "deterministic=False if the order does not matter, "
    return Advice(
        "sources", share, 0.0, f"the sources at {place} are read several at a time, and do not keep up",
        f"{order}a larger cycle_length= if they are far away; otherwise a faster place for them",
    )  # fmt: skip


def of_busy_python(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on Python of the pipeline that is at work all the time, for steps that draw their batches themselves and
    were not looked at."""
    if record["known"] or record["by"] not in unseen.INSIDE or brief(record):
        return []
    suspect = likely.python_at_work(record)
    made = of_node(suspect.node, suspect.node.share, record) if suspect is not None else None
    if made is None:
        return []
    return [replace(made, what=f"{made.what}, and that takes {made.share:.0%} of the steps' time", saves=0.0)]


def of_python_beside(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on Python of the pipeline that is ready in time, but computes while the steps do, so that each step that
    needs Python has to wait for its turn. Python that the steps wait for has a rule of its own."""
    share = unseen.python_beside(record)
    some = [one for one in blame.chain_of(record) if blame.calls_python(one)]
    if not some or not share or brief(record) or for_it(record) >= WORTH_SAYING:
        return []
    node = likely.as_blamed(some[0], record)
    # of several nodes that call Python, it is not known which one's computes
    who = node.where if len(some) == 1 else "the pipeline"
    made = _of_python_node(node, node.where, share, record, computes=True)
    what = (
        f"Python that {who} calls{line_of_python(record)} computes for {share:.0%} of the steps' time, and steps as short "
        "as these may have to wait for their turn in Python"
    )
    if len(some) > 1:
        made = replace(made, change=f"use TensorFlow's operations, or numpy's on whole batches{_fastest(record)}")
    return [replace(made, rule="lock", what=what, saves=0.0)]


def _only_waits(record: Mapping[str, Any]) -> bool:
    """Whether the Python that the input calls waits (for a network, a lock, a clock) and hardly computes.

    Python that computes in several threads takes turns, so each of the threads waits too: together they compute all the
    time, and each does its part of that.
    """
    python = record.get("python", {})
    wall, computed = python.get("wall", 0.0), python.get("computed", 0.0)
    waited = record["wait"] if record["known"] else wall
    most = _COMPUTES_BESIDE_OTHERS if unseen.shared(record) else _COMPUTES
    return bool(wall > 0 and (computed < _NO_TURN * wall or computed < most * min(wall, max(waited, record["first"]))))


def _of_waiting(node: Blamed, where: str, share: float, record: Mapping[str, Any]) -> Advice:
    at_once = node.parallel or any(parallel for kind, parallel in blame.kinds(node.path)[:-1] if kind in blame.SEVERAL)
    if at_once:
        there = [node.facts, *likely.readers(node.facts, blame.chain_of(record))]
        # if TensorFlow chooses the number (AUTOTUNE), it is not known how large it is
        most = max([_AT_ONCE, *(int(one.get(what, 0)) for one in there for what in ("parallel", "cycle"))])
        number = f"num_parallel_calls={2 * most}"
        if node.kind == "Generator":
            number = f"cycle_length={2 * most}, {number} of the interleave"
        return Advice(
            "python_waits", share, 0.0, f"{where} waits (a network, a lock, a sleep), several calls at once, and they do not "
            "keep up",
            f"more of them at once: {number}, and {_THREADS} = {2 * most}; or fewer and larger answers",
        )  # fmt: skip
    # eight calls wait at once; they compute one after another
    python = record["python"]
    best = share * (1 - max(1 / _AT_ONCE, python["computed"] / python["wall"]))
    change = f"num_parallel_calls={_AT_ONCE}"
    if node.kind == "Generator":
        change = (
            f"read several at once, each its part: Dataset.range({_AT_ONCE}).interleave(lambda i: "
            f"Dataset.from_generator(part, ..., args=(i,)), cycle_length={_AT_ONCE}, num_parallel_calls={_AT_ONCE})"
        )
    return Advice(
        "python_waits", share, best * PROMISED, f"{where} waits (a network, a lock, a sleep), one element after another",
        f"{change}, with {_THREADS} = {_AT_ONCE}, or threads of its own" + ("" if is_ahead(record) else "; `.prefetch(2)` as the last"),
    )  # fmt: skip


def _of_ours(node: Blamed, share: float, record: Mapping[str, Any]) -> Advice:
    """Return the advice for a dataset of `task_config`: its rows have not come, or it parses them."""
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
    # with `repeat=`, one iterator goes through all passes
    again = sum(one["passes"] for one in record["pipelines"])
    if again > 1 and not blame.of_a_stream(record) and share * whole(record) < _SHORT_PASS * again:
        kept = "" if _caches(record) else "cache=True in it, and "
        return Advice(
            "parse", share, 0.0, f"{where} begins a pass over the rows again and again, and each is short",
            f"{kept}repeat=N in place of a loop over passes, so that one iterator goes through all of them",
        )  # fmt: skip
    if images := [one for one in blame.chain_of(record) if one.get("ours") and (one.get("images") or one.get("decodes"))]:
        # compared with images, parsing the rows takes no time
        return _of_images(where, images, share, record)
    faster = "data_format='columns' (--data-format columns) is several times faster; "
    if not any(one.get("parses") for one in blame.chain_of(record)):
        # the rows come as columns already
        faster = ""
    return Advice(
        "parse", share, 0.0, what, f"{faster}columns= for those that are needed"
        + ("; larger batches" if max((one.get("rows", 0) for one in blame.chain_of(record)), default=0) < _LARGE else ""),
    )  # fmt: skip


def _of_images(where: str, images: Sequence[Mapping[str, Any]], share: float, record: Mapping[str, Any]) -> Advice:
    """Return the advice for the work that `image=` asks for: decoding, which a cache saves in later passes, and the
    changes to the pixels, which are made in each pass.

    Args:
        images: the nodes that do this work.
    """
    resizes, augments, floats = (any(one.get(what) for one in images) for what in ("resizes", "augments", "floats"))
    # in the record of an earlier version of akrunner this is not known
    untold = not any(one.get("images") for one in images)
    smaller = "a smaller size in image=; those that are larger than that have less to decode if they are packed in it (akrunner pack --resize)"
    serves, first = blame.cache_of(record), first_pass(record)
    kept = serves is not None and not any(one.get("decodes") for one in blame.chain_of(record)[:serves])
    if kept and first < _FIRST_PASS:
        # whatever a look has seen, the script waits for the work that is done in later passes
        share = for_it(record) * (1 - first)
        if augments:
            return Advice(
                "augment_ours", share, 0.0, f"{where} augments images (image=) anew in every pass, which its cache does not "
                "spare, more slowly than the script takes them",
                f"{_FEWER}{f'; or {_BYTES}' if floats else ''}",
            )  # fmt: skip
        return Advice(
            "cached_ours", share, 0.0, f"{where} makes batches of the images in its cache more slowly than the script takes "
            "them",
            "; ".join([*[_BYTES] * floats, *["a smaller size in image="] * resizes]) or _LESS,
        )  # fmt: skip
    does = ["decodes", *["resizes"] * (resizes or untold)]
    changes = [smaller] if resizes or untold else []
    if kept:
        what = f"{where} {' and '.join(does)} images (image=) in the first pass, more slowly than the script takes them"
        return Advice("decode_ours", share, 0.0, what, "; ".join(changes) or _LESS)
    if not _caches(record):
        changes.insert(0, "cache=True, where they fit into memory, for several passes")
    if augments:
        changes.append(_FEWER)
        does.append("augments")
    done = f"{', '.join(does[:-1])} and {does[-1]}" if len(does) > 1 else does[0]
    what = f"{where} {done} images (image=) more slowly than the script takes them"
    return Advice("decode_ours", share, 0.0, what, "; ".join(changes) or _LESS)


def _from_memory(record: Mapping[str, Any]) -> bool:
    """Whether no disk was read while the script waited: a file that has just been written is still in memory."""
    disk = record.get("disk")
    return disk is not None and disk < _DISK * wait_share(record) * whole(record)


def _caches(record: Mapping[str, Any]) -> bool:
    """Whether the rows are in a cache, or come once, so that no cache is to be advised."""
    return blame.of_a_stream(record) or any(blame.plain(node["node"]) == "Cache" for node in blame.chain_of(record))
