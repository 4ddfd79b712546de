"""Puts what the tasks' clocks measured of their input into sentences: which task waits for what, and what to change.

A task's record (`Stats.inputs`, made by `akrunner.worker.waits.meter`; times in seconds, JSON)::

    by            how the script reads: dataset, function (Keras fit, tf.function), session, batches, feed_dict; call: it hands
                  TensorFlow's functions what it has read; "": in no known way
    asked         the number of steps that `profile_input` asked to look at; 0: it was not asked for
    batches, rows the numbers of batches and rows drawn; rows is None if not known
    wait, between time in next() of the script's input, and between one next() and the following, both without the first;
                  with feed_dict, wait is the time in which the script makes what it feeds
    outside       with functions or a session: the time between their calls
    calls         of functions that are handed their input, if nothing else is known: their number, the time inside and outside
    python        Python that the pipeline calls (generators, py_function): calls: their number; wall: their time; steps: the
                  part of it since the first step; computed: the part of it in which they did not wait
    first         the wait for the first batch; main: time in `main`
    unlooked      with functions or a session: the time of steps of which none was looked at (it is part of between): all of it,
                  if no look was asked for
    hidden        whether a tf.function draws from a dataset by itself
    elsewhere     whether a thread other than the main one reads
    hindered      why looks that were asked for told nothing of steps within calls: profiler, large, long, few, fails; "": they
                  did, or the reason is not known
    served        whether looks were asked for, but a TensorFlow server, which the profiler could end, runs in the process
    looked, look  the number of steps that TensorFlow's profiler looked at, and their time; known: whether wait is known
    nodes         the nodes of the pipeline, as the profiler saw them: path, the time that each took itself, calls; empty if no
                  look was asked for
    pipelines     the datasets the script iterated over: nodes (kind, line, ...), what their options leave to TensorFlow (tunes:
                  maps, ahead), how many iterators were drawn from (passes), how often it came to the end (ended), how long it
                  waited for each (waited), and how long of that until the second iterator over it (filled)
    keeps         whether the rows that `.cache()` holds in memory serve every iterator
    tunes         whether TensorFlow may run maps in parallel, or make batches ahead, by itself, in one of the datasets at least
    windows       [time since main began, batches, wait, between], at most 60: the same numbers over time
    given         the number of rows that the task was given; None: not known, as in a stream
    within        in a loop over a dataset: the number of calls of TensorFlow's functions between its steps, and the time inside
    times         as spent, but how often
    spent         checkpoint, summary, report, output -> the time for it; pipe: the time in which a stream waited for rows to
                  come; table: the time in which a table's rows were read
    tensorflow    whether it was imported; version: its version, "" if it was not
    lines         where Python was, by looks: at: line of the script; in: the package it had called; share: its share of the
                  looks; main: whether this is the main thread; does, by the line's text: prints, writes, records (parses or
                  makes records), texts (parses text), tensors (makes tensors), loops (begins a loop), sleeps, ""; computes: the
                  share of its looks after which the thread computed, or would have computed if it had had a core; 0 for
                  threads that are not the script's own
    looks         the number of these looks; watched: the time in which they were made
    cores, idle   the task's cores; and how many cores nothing used, on average, None: not known
    used          cores that the task's own process used, on average
    disk          bytes that the task's own process read from disks since the first step, None: not known
    cards         whether the machine has devices of graphics cards, None: not known
    busy          the share of the time in which the graphics cards worked, None: not known
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from akrunner.engines.base import Stats
from akrunner.engines.inputs import blame, little, several, unseen
from akrunner.engines.inputs.advice import advised, if_it_waits
from akrunner.engines.inputs.measures import PROMISED, WORTH_SAYING, Advice, brief, first_pass
from akrunner.engines.inputs.unseen import SAVING, TOO_SHORT, most_waiting, wait_share

#: how many changes are named for a task that was looked at closely; for others it is one
_MOST = 4
#: parts of sentences that name nothing to change
_FINE, _CARDS, _LITTLE = "the input is fine", "the graphics cards were busy", "there is little to win"
_NO_ROWS = "it was given no rows"
_NO_LOOK = f"{unseen.UNSURE}: no steps could be looked at"
#: the reason, by `hindered` of a record
_HINDERED = {
    "profiler": ", as another profiler ran, the script's own",
    "large": ", as the trace of a single one is too long to be read: smaller batches for the time of a look",
    "long": ", as a call of TensorFlow's took longer than a look may: fewer steps in a call (Keras: a smaller "
    "steps_per_execution=)",
    "few": ", as its functions were called three times or less, and the first three calls are not looked at: a longer run, or "
    "fewer steps in a call (Keras: a smaller steps_per_execution=)",
    "fails": ", as this TensorFlow's profiler did not start",
}
_BESIDE_A_SERVER = (
    f"{unseen.UNSURE}: no steps were looked at, as TensorFlow's profiler can end a process in which its server runs, as in a "
    "task of a cluster: --profile-input looks at a job of one task"
)
#: share of the time up to which the input is said to be fine; between this and WORTH_SAYING, the next look may find either
_SURELY_FINE = 0.05
#: share of the time up to which waiting is not worth a sentence, if a look does not tell what the script waits for
_NOT_MUCH = 0.2
#: rules about things other than the input
_NO_INPUT = ("pandas", "between", "thread", "beside")
#: share of the waiting that the first pass must have to be named
_MOSTLY = 0.6
#: seconds of a wait that are hardly more than the call of next() itself
_NEXT = 150e-6
_TOO_LITTLE = "its steps took less than half a second: too little to tell what its input waits for"


#: words for a job whose script uses `task_config` -> words for a job whose script asks for its tables
_ASKED = (
    (
        "runs Python for every element, one after another: use TensorFlow's operations, or give and take whole batches",
        "gives elements one after another: `batch` first behind a TableRecordDataset, and whole batches from a generator of "
        "your own",
    ),
    ("rows come fastest by task_config.dataset()", "rows come fastest by tf.data.TableRecordDataset(...).batch(n)"),
    ("read them by task_config.batches()", "read many rows at a time (TableReader.read(n))"),
    (
        "task_config.dataset(...), make_one_shot_iterator().get_next()",
        "tf.data.TableRecordDataset(...), make_one_shot_iterator().get_next()",
    ),
    ("data_format='columns' (--data-format columns) is several times faster; columns= for those", "selected_cols= for those"),
    ("columns= for those", "selected_cols= for those"),
    ("output_writer.write_batch", "TableWriter.write of many rows"),
    ("task_config.batches()", "the table's reader"),
    ("task_config's dataset", "the table's dataset"),
)
#: the largest share of the time that a change is promised to win
_MOST_SAVED = 0.9


def verdict(stats: Stats | Mapping[str, Any]) -> list[str]:
    """Return what there is to say about a job's input, most important first. Empty if the input does not hold the job up,
    or if that is not known.

    Args:
        stats: the job's stats, or the dict that `dataclasses.asdict` made of them and that was stored as JSON.
    """
    inputs = stats.get("inputs") if isinstance(stats, Mapping) else stats.inputs
    found = []
    some = dict(inputs) if isinstance(inputs, Mapping) else {}
    for task, record in some.items():
        try:
            # parameter servers and evaluators get no rows, and have other work
            works = str(task).partition(":")[0] not in ("ps", "evaluator")
            told = (_idle(record, some.values()) if works else []) or _sentences(record)
            found.append((_weight(record), str(task), told))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            # a record that was stored as JSON may be damaged, or be of another version: that task is left out
            continue
    asks = bool(stats.get("tables") if isinstance(stats, Mapping) else stats.tables)
    return [
        f"[{task}] {_as_asked(words) if asks else words}"
        for _, task, told in sorted(found, key=lambda one: (-one[0], one[1]))
        for words in told
    ]


def calls_for_change(sentence: str) -> bool:
    """Whether one of `verdict`'s sentences names something to change."""
    return not any(words in sentence for words in (_FINE, _TOO_LITTLE, _CARDS, _LITTLE, unseen.UNSURE))


def _idle(record: Mapping[str, Any], all_of_them: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence if a task was given no rows while others were, and so had nothing to do, or waited for the others."""
    rows = [one["given"] for one in all_of_them if isinstance(one, Mapping) and one.get("given") is not None]
    if record.get("given") != 0 or record["batches"] or not any(rows):
        return []
    if not record["asked"] and record["main"] < TOO_SHORT:
        return []
    return [
        f"{_NO_ROWS}: the job has {sum(rows):,} in all, for {len(rows)} tasks: fewer workers, or more rows, give each "
        "something to do"
    ]


def _weight(record: Mapping[str, Any]) -> float:
    return max([wait_share(record), *(one.share for one in advised(record))])


def _sentences(record: Mapping[str, Any]) -> list[str]:
    if record["asked"] and record.get("given") == 0 and not record["batches"]:
        return [f"{_NO_ROWS}: the table is empty, or none of its rows was selected"]
    if record["main"] < TOO_SHORT or (record["by"] and _whole(record) < TOO_SHORT and record["first"] < TOO_SHORT):
        return [_TOO_LITTLE] if record["asked"] else []
    if unseen.arriving(record) and not record["asked"]:
        return []
    share, told = wait_share(record), [one for one in advised(record) if one.saves >= 0.02 or one.share >= WORTH_SAYING]
    if record["asked"]:
        changes = told[:_MOST]
    else:
        # savings are always named: their time was measured, not guessed
        changes = [*_one_of([one for one in told if one.rule not in SAVING]), *[one for one in told if one.rule in SAVING]]
    ranked = []
    node = next((one for one in changes if one.rule not in (*SAVING, *_NO_INPUT)), None)
    # if there is little waiting, and a look does not tell for what, there is nothing to change
    least = (
        WORTH_SAYING
        if node is not None or not record["asked"] or record["by"] == "batches" or record.get("served")
        else _NOT_MUCH
    )
    if share >= least and _whole(record) >= TOO_SHORT and record["by"] != "feed_dict":
        changes = [one for one in changes if one is not node]
        ranked.append((_wins(node) if node is not None else 0.0, _waiting(record, share, node)))
    ranked += [(_wins(one), _saving(one)) for one in changes]
    # two nodes of one dataset may get the same words
    found = list(dict.fromkeys(words for _, words in sorted(ranked, key=lambda one: -one[0])))
    unsure = [] if found else unseen.told(record)
    if record["asked"] and not found and not unsure and record["by"] in ("function", "session") and not record["known"]:
        unsure = [_BESIDE_A_SERVER if record.get("served") else _NO_LOOK + _HINDERED.get(record.get("hindered", ""), "")]
    if not found and not unsure and unseen.late(record):
        unsure = [f"the first batch came after {record['first']:.1f} s, {record['first'] / record['main']:.0%} of main's time"]
        if not record["batches"]:
            unsure = [f"no batch has come in {record['first']:.1f} s, {record['first'] / record['main']:.0%} of main's time"]
    if record["asked"] and not found and not unsure and record["by"] in ("dataset", "batches", "feed_dict") and brief(record):
        unsure = [_TOO_LITTLE]
    if record["asked"] and not found and not unsure and most_waiting(record) - share >= _SURELY_FINE:
        part = most_waiting(record) - share
        unsure = [
            f"{unseen.UNSURE}: no steps of some of its functions, which take {part:.0%} of the steps' time, could be looked at"
        ]
    if record["asked"] and not found and not unsure and record["known"] and record["by"]:
        fine = _FINE if share < _SURELY_FINE else _LITTLE
        unsure = [f"{fine}: {share:.0%} of the time of {record['batches']:,} steps is waiting for it"]
    if not found and not unsure and unseen.not_looked(record) and not little.does_little(record):
        unsure = [_not_looked(record)]
    found += unsure
    if record["busy"] is not None:
        found.append(f"{_CARDS} {min(1.0, record['busy']):.0%} of main's time")
    return found


def _one_of(changes: list[Advice]) -> list[Advice]:
    """Return the change to name, if no look was asked for: the one that wins most, of those that are no saving.

    If that one is only likely, a cause outside of the pipeline that was seen, and takes longer, is put before it.
    """
    first = changes[:1]
    seen = [
        one
        for one in changes[1:]
        if first[0].likely and not one.likely and one.rule in _NO_INPUT and one.share > first[0].share
    ]
    return [*seen[:1], *first]


def _wins(one: Advice) -> float:
    """Return the gain of a change, to sort several. A cause seen outside of the pipeline counts as a gain even if no
    clock tells how much can be promised."""
    return one.saves or (one.share * PROMISED if one.rule in ("beside", "between") else 0.0)


def _waiting(record: Mapping[str, Any], share: float, node: Advice | None) -> str:
    """Return a sentence that says how much of the time is waiting for input, and what to change."""
    words = f"{share:.0%} of the time of {record['batches']:,} steps is waiting for input"
    record = several.narrowed(record)
    cache, first = blame.cache_of(record), first_pass(record)
    if cache is not None and first >= _MOSTLY:
        at = blame.chain_of(record)[cache]["at"]
        words += f", most of it in the first pass, which fills the cache{' at ' + blame.place(at) if at else ''}"
        return f"{words}; {_saving(node)}" if node is not None else words
    if node is not None:
        return f"{words}; {_saving(node)}"
    each = record["wait"] / max(1, record["batches"])
    if each < _NEXT and record["by"] in ("dataset", "batches"):
        return f"{words}, {1000 * each:.2g} ms each, which is about what next() itself takes: fewer and larger batches"
    if record["by"] == "batches":
        # no profiler looks at these batches
        return (
            f"{words}: task_config.batches() reads the rows, and takes them apart, while nothing else is done: columns= for those "
            "that are needed, larger batches, or a thread that reads ahead"
        )
    if record["asked"] and not record.get("served"):
        return f"{words}; for what, the steps that were looked at do not tell: {unseen.look(record)} may"
    rest = " (for the rest it computes)" if unseen.bound({"": record}, 0.0, record["main"]) == unseen.COMPUTE else ""
    return f"{words}{rest}; for what, {unseen.look(record)} tells"


def _not_looked(record: Mapping[str, Any]) -> str:
    perhaps = if_it_waits(record)
    words = f"{unseen.UNSURE}, as its steps draw their batches within TensorFlow (Keras fit, tf.function, session.run): {unseen.look(record)} tells"
    return words + (f"; first to suspect: {perhaps}" if perhaps else "")


def _saving(one: Advice) -> str:
    # no change saves all of the time
    saves = min(one.saves, _MOST_SAVED)
    return one.words + (f" (saves {saves:.0%} {one.of} or more)" if saves >= 0.02 and not one.likely else "")


def _as_asked(words: str) -> str:
    """Return the words for a script that asks for its tables itself, as PAI's scripts do: it has no `task_config`, and it
    is not its fault how its rows are made."""
    for ours, theirs in _ASKED:
        words = words.replace(ours, theirs)
    return words


def _whole(record: Mapping[str, Any]) -> float:
    return float(record["wait"] + record["between"])
