"""What the tasks' own clocks say of their input -> sentences: who waits for what, and what to change.

A task's record (`Stats.inputs`, made by `akrunner.worker.waits.meter`; seconds, JSON)::

    by            how the script reads: dataset, function (Keras fit, tf.function), session, batches, feed_dict; call: TensorFlow's functions are handed
                  what the script has read; "": in no way that is known
    asked         steps of `profile_input`, 0: it was not asked for
    batches, rows drawn; rows None: not known
    wait, between in next() of the script's input, and between one next() and the following, without the first; of feed_dict, the making of it
    outside       of functions or a session: between their calls
    calls         of functions that are handed their input, while nothing else is known: how many, seconds inside, outside
    python        that the pipeline calls (generators, py_function): calls, wall: their seconds, steps: of them, those since the first step, computed: those
                  in which they did not wait
    first         the wait for the first batch; main: in `main`
    unlooked      of functions or a session: seconds of steps of which none was looked at (they are in between): all, if nobody asked
    hidden        a tf.function draws from a dataset by itself; elsewhere: another thread than the main one reads
    hindered      why looks that were asked for told nothing of steps within calls, "": they did, or nobody knows: profiler, large, long, few, fails
    served        looks were asked for, but a server of TensorFlow's runs in the process, which its profiler could end
    looked, look  steps that TensorFlow's profiler looked at, and their seconds; known: whether wait is
    nodes         of the pipeline, as the profiler saw them: path, seconds that each took itself, calls; none, if nobody asked
    pipelines     the datasets the script iterated over: nodes (kind, line, ...), what their options leave to TensorFlow (tunes: maps, ahead), how often (passes), and how long it waited for each (waited), until the second iterator over it (filled)
    keeps         whether what `.cache()` holds in memory serves every iterator
    tunes         whether its TensorFlow may run maps in parallel, or make batches ahead, by itself, of one of its datasets at least
    windows       [seconds since main began, batches, wait, between], at most 60: the same over time
    given         rows that the task was given; None: nobody knows, as in a stream
    within        of a loop over a dataset: calls of TensorFlow's functions between its steps, seconds inside
    times         as spent: how often
    spent         checkpoint, summary, report, output -> seconds; pipe: a stream waited for rows to come; table: a table's rows were read
    tensorflow    it was imported; version: of it, "": it was not
    lines         where Python was, by looks: line of the script, package it had called, share of the looks; main: the main thread; does: by the line's text: prints,
                  writes, records (takes apart or makes), texts (takes apart), tensors (makes), loops (begins one), sleeps, ""; computes: of its looks, after which the thread
                  computed, or would have if it had had a core; of threads that are not the script's own, 0
    watched       seconds in which these looks were
    cores, idle   of the task; and how many nothing used, on average, None: nobody knows
    used          cores that the task's own process used, on average
    disk          bytes that the task's own process had from disks since the first step, None: nobody knows
    cards         whether the machine has devices of graphics cards, None: it does not say
    busy          the share of the time in which the graphics cards worked, None: nobody knows
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from akrunner.engines.base import Stats
from akrunner.engines.inputs import blame, little, several, unseen
from akrunner.engines.inputs.advice import advised, if_it_waits
from akrunner.engines.inputs.measures import PROMISED, WORTH_SAYING, Advice, first_pass
from akrunner.engines.inputs.unseen import SAVING, TOO_SHORT, most_waiting, wait_share

#: of a task that was looked at closely, how many things to change are named; else one
_MOST = 4
#: of sentences that tell of nothing to change
_FINE, _CARDS, _LITTLE = "the input is fine", "the graphics cards were busy", "there is little to win"
_NO_ROWS = "it was given no rows"
_NO_LOOK = f"{unseen.UNSURE}: no steps could be looked at"
#: why, by `hindered` of a record
_HINDERED = {
    "profiler": ", as another profiler ran, the script's own",
    "large": ", as the trace of a single one is too long to be read: smaller batches for the time of a look",
    "long": ", as a call of TensorFlow's took longer than a look may: fewer steps in a call (Keras: a smaller steps_per_execution=)",
    "few": ", as its functions were called three times or less, and the first three calls are not looked at: a longer run, or fewer steps in a call (Keras: a smaller steps_per_execution=)",
    "fails": ", as this TensorFlow's profiler did not start",
}
_BESIDE_A_SERVER = (
    f"{unseen.UNSURE}: no steps were looked at, as TensorFlow's profiler can end a process in which its server runs, as in a task of a "
    "cluster: --profile-input looks at a job of one task"
)
#: share of the time up to which that is said; from there to WORTH_SAYING it may be either, at the next look
_SURELY_FINE = 0.05
#: share of the time up to which it is not much, if a look does not tell what is waited for
_NOT_MUCH = 0.2
#: rules of what is not the input
_NO_INPUT = ("pandas", "between", "thread", "beside")
#: of the waiting, what the first pass must have for it to be said
_MOSTLY = 0.6
#: seconds of a wait that are hardly more than the call
_NEXT = 150e-6
_TOO_LITTLE = "its steps took less than half a second: too little to tell what its input waits for"


#: words for a job with `task_config` -> for one whose script asks for its tables
_ASKED = (
    (
        "runs Python for every element, one after another: use TensorFlow's operations, or give and take whole batches",
        "gives elements one after another: `batch` first behind a TableRecordDataset, and whole batches from a generator of your own",
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
#: of the time, what a change is promised to win at most
_MOST_SAVED = 0.9


def verdict(stats: Stats | Mapping[str, Any]) -> list[str]:
    """What there is to say about a job's input, most important first; nothing: it does not hold the job up, or nobody knows.

    Args: stats: of the job, or what `dataclasses.asdict` made of them and JSON kept.
    """
    inputs = stats.get("inputs") if isinstance(stats, Mapping) else stats.inputs
    found = []
    some = dict(inputs) if isinstance(inputs, Mapping) else {}
    for task, record in some.items():
        try:
            # parameter servers and evaluators get none, and are there for something else
            works = str(task).partition(":")[0] not in ("ps", "evaluator")
            told = (_idle(record, some.values()) if works else []) or _sentences(record)
            found.append((_weight(record), str(task), told))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            # kept by JSON, it may have been damaged, or be of another version: nothing is said of that task
            continue
    asks = bool(stats.get("tables") if isinstance(stats, Mapping) else stats.tables)
    return [
        f"[{task}] {_as_asked(words) if asks else words}"
        for _, task, told in sorted(found, key=lambda one: (-one[0], one[1]))
        for words in told
    ]


def calls_for_change(sentence: str) -> bool:
    """Whether one of `verdict`'s sentences tells of something to change."""
    return not any(words in sentence for words in (_FINE, _TOO_LITTLE, _CARDS, _LITTLE, unseen.UNSURE))


def _idle(record: Mapping[str, Any], all_of_them: Iterable[Mapping[str, Any]]) -> list[str]:
    """That a task was given no rows while others were, and so had nothing to do, or waited for the others."""
    rows = [one["given"] for one in all_of_them if isinstance(one, Mapping) and one.get("given") is not None]
    if record.get("given") != 0 or record["batches"] or not any(rows):
        return []
    if not record["asked"] and record["main"] < TOO_SHORT:
        return []
    return [
        f"{_NO_ROWS}: the job has {sum(rows):,} in all, for {len(rows)} tasks: fewer workers, or more rows, give each something to do"
    ]


def _weight(record: Mapping[str, Any]) -> float:
    return max([wait_share(record), *(one.share for one in advised(record))])


def _sentences(record: Mapping[str, Any]) -> list[str]:
    if record["asked"] and record.get("given") == 0 and not record["batches"]:
        return [f"{_NO_ROWS}: the table is empty, or none of its rows was selected"]
    if record["main"] < TOO_SHORT or (record["by"] and _whole(record) < TOO_SHORT and record["first"] < TOO_SHORT):
        return [_TOO_LITTLE] if record["asked"] else []
    share, told = wait_share(record), [one for one in advised(record) if one.saves >= 0.02 or one.share >= WORTH_SAYING]
    if record["asked"]:
        changes = told[:_MOST]
    else:
        # what was timed is no guess
        changes = [*_one_of([one for one in told if one.rule not in SAVING]), *[one for one in told if one.rule in SAVING]]
    ranked = []
    node = next((one for one in changes if one.rule not in (*SAVING, *_NO_INPUT)), None)
    # of little waiting of which a look does not tell for what there is nothing to change
    least = (
        WORTH_SAYING
        if node is not None or not record["asked"] or record["by"] == "batches" or record.get("served")
        else _NOT_MUCH
    )
    if share >= least and _whole(record) >= TOO_SHORT and record["by"] != "feed_dict":
        changes = [one for one in changes if one is not node]
        ranked.append((_wins(node) if node is not None else 0.0, _waiting(record, share, node)))
    ranked += [(_wins(one), _saving(one)) for one in changes]
    # two nodes of one dataset may be told alike
    found = list(dict.fromkeys(words for _, words in sorted(ranked, key=lambda one: -one[0])))
    unsure = [] if found else unseen.told(record)
    if record["asked"] and not found and not unsure and record["by"] in ("function", "session") and not record["known"]:
        unsure = [_BESIDE_A_SERVER if record.get("served") else _NO_LOOK + _HINDERED.get(record.get("hindered", ""), "")]
    if not found and not unsure and unseen.late(record):
        unsure = [f"the first batch came after {record['first']:.1f} s, {record['first'] / record['main']:.0%} of main's time"]
        if not record["batches"]:
            unsure = [f"no batch has come in {record['first']:.1f} s, {record['first'] / record['main']:.0%} of main's time"]
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
        found.append(f"{_CARDS} {record['busy']:.0%} of main's time")
    return found


def _one_of(changes: list[Advice]) -> list[Advice]:
    """Of what is no saving, what wins most, if nobody asked. If that is only likely, what has been seen outside of the pipeline comes before it, where it takes longer."""
    first = changes[:1]
    seen = [
        one
        for one in changes[1:]
        if first[0].likely and not one.likely and one.rule in _NO_INPUT and one.share > first[0].share
    ]
    return [*seen[:1], *first]


def _wins(one: Advice) -> float:
    """What a change wins, to put several in order: what was seen outside of the pipeline wins something, also where no clock tells how much to promise."""
    return one.saves or (one.share * PROMISED if one.rule in ("beside", "between") else 0.0)


def _waiting(record: Mapping[str, Any], share: float, node: Advice | None) -> str:
    """How much of the time is waiting for input, and what to change."""
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
        # no profiler looks at these
        return f"{words}: task_config.batches() reads the rows, and takes them apart, while nothing else is done: columns= for those that are needed, larger batches, or a thread that reads ahead"
    if record["asked"] and not record.get("served"):
        return f"{words}; for what, the steps that were looked at do not tell: {unseen.look(record)} may"
    rest = " (for the rest it computes)" if unseen.bound({"": record}, 0.0, record["main"]) == unseen.COMPUTE else ""
    return f"{words}{rest}; for what, {unseen.look(record)} tells"


def _not_looked(record: Mapping[str, Any]) -> str:
    perhaps = if_it_waits(record)
    words = f"{unseen.UNSURE}, as its steps draw their batches within TensorFlow (Keras fit, tf.function, session.run): {unseen.look(record)} tells"
    return words + (f"; first to suspect: {perhaps}" if perhaps else "")


def _saving(one: Advice) -> str:
    # nobody saves all of the time
    saves = min(one.saves, _MOST_SAVED)
    return one.words + (f" (saves {saves:.0%} {one.of} or more)" if saves >= 0.02 and not one.likely else "")


def _as_asked(words: str) -> str:
    """The words for a script that asks for its tables itself, as PAI's do: it has no `task_config`, and what makes its rows is none of its faults."""
    for ours, theirs in _ASKED:
        words = words.replace(ours, theirs)
    return words


def _whole(record: Mapping[str, Any]) -> float:
    return float(record["wait"] + record["between"])
