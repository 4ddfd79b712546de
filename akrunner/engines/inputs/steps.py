"""Rules for causes outside the pipeline: what a script does between its steps, and what it saves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from akrunner.engines.inputs import blame, unseen
from akrunner.engines.inputs.measures import (
    LOOKS,
    PROMISED,
    STEPS,
    WORTH_SAYING,
    Advice,
    base,
    brief,
    line_of_python,
    spent,
    whole,
)
from akrunner.engines.inputs.unseen import wait_share

#: share of the time that a package other than TensorFlow must have to be named
_BESIDE = 0.25
#: something done at most so many times a step is done seldom; the share of the time that it should take then
_SELDOM, _LITTLE = 0.2, 0.02


def of_saving(record: Mapping[str, Any]) -> list[Advice]:
    if whole(record) < unseen.TOO_SHORT:
        return []
    if record["by"] == "batches" and (pipe := spent(record, "pipe")[0] / max(whole(record), 1e-9)) >= WORTH_SAYING:
        slow = "the source, or the host, is slower than the script"
        return [Advice("pipe", pipe, 0.0, "task_config.batches() waits for rows to come", slow)]
    found, seconds = [], whole(record)
    for what, (of, change) in _SAVINGS.items():
        share = min(1.0, spent(record, what)[0] / seconds) if seconds > 0 else 0.0
        if share >= WORTH_SAYING and not _only_began(what, record) and not _only_one_write(what, record):
            found.append(
                Advice(
                    what,
                    share,
                    share * PROMISED,
                    f"{share:.0%} {base(record)} is {of}",
                    _more_seldom(what, change, share, record),
                    of=base(record),
                )
            )
    return found


def of_lock(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on a thread started by the script that computes beside the steps, whose own Python then has to wait for its
    turn.

    It is not seen what a thread does in C without Python's lock, so no gain is promised.
    """
    line = unseen.own_thread(record)
    if line is None:
        return []
    share = min(1.0, float(line["share"]))
    what = (
        f"a thread that the script has started computes at {blame.place(line['at'])} for {share:.0%} {LOOKS}, and the steps may "
        "have to wait for their turn in Python"
    )
    return [
        Advice("lock", share, 0.0, what, "let it sleep between its turns, or have a process of its own do it (multiprocessing)")
    ]


#: what is saved, in words -> what to change, if it is not known how often it is done, or that does not matter
_SAVINGS = {
    "checkpoint": ("saving checkpoints", "save every some hundred steps, or by the minute (CheckpointManager, save_freq=, "
    "save_checkpoints_secs=)"),
    "summary": ("writing summaries (tf.summary, TensorBoard)", "write them every hundredth step"),
    "report": ("task_config.report()", "report every hundredth step"),
    "output": ("writing rows", "write more rows at a time (output_writer.write_batch)"),
}  # fmt: skip
#: what is done at nearly each step -> the same advice with the number of steps that suffices
_OFTEN = {
    "checkpoint": "save every {steps} steps or more, or by the minute (CheckpointManager, save_freq=, save_checkpoints_secs=)",
    "summary": "write them every {steps} steps",
    "report": "report every {steps} steps",
}
#: the least number of steps between two of them
_FEW = 100


def _only_began(what: str, record: Mapping[str, Any]) -> bool:
    """Whether something is done seldom and took little time: most of that time was its first run, in which functions and
    files are made."""
    seconds, times = spent(record, what)
    return what != "output" and 0 < times <= _SELDOM * record["batches"] and seconds < unseen.TOO_SHORT


def _only_one_write(what: str, record: Mapping[str, Any]) -> bool:
    """Whether all rows were written at once, so that they cannot be written more at a time."""
    return what == "output" and spent(record, what)[1] == 1


def _more_seldom(what: str, change: str, share: float, record: Mapping[str, Any]) -> str:
    """Return the advice on how often to save something: so seldom that it takes a fiftieth of the time."""
    (seconds, times), batches = spent(record, what), record["batches"]
    if not times or not batches:
        return change
    steps = max(1.0, batches / times) * share / (1 - min(share, 0.99)) / _LITTLE
    unit = 10 ** (len(str(int(steps))) - 1)
    suffice = math.ceil(steps / unit) * unit
    if what == "output":
        # rows that are written one by one are sent many at a time already
        whole_batches = 0.5 * batches <= times <= 2 * batches
        return f"{change}; if there is one for a batch already, one for {suffice:,} batches" if whole_batches else change
    if times > _SELDOM * batches:
        return _OFTEN[what].format(steps=f"{max(_FEW, suffice):,}")
    return (
        f"one takes {seconds / times:.2g} s, and there is one for {batches / times:,.0f} steps: one for {suffice:,} steps takes "
        f"{_LITTLE:.0%} {base(record)}" + (", or less in each" if what == "summary" else "")
    )


def of_python(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on what the script does itself between steps: pandas, or making what it feeds or hands to TensorFlow's
    functions."""
    found = []
    if record["looks"] < unseen.ENOUGH:
        # there are too few looks to tell a share from chance
        record = {**record, "lines": []}
    pandas = [line for line in record["lines"] if line["main"] and line["in"] == "pandas"]
    share = sum(line["share"] for line in pandas)
    # a script that reads nothing and trains nothing may have nothing to do but pandas
    if share >= WORTH_SAYING and (unseen.reads(record) or record.get("tensorflow", True)):
        found.append(
            Advice(
                "pandas", share, share * PROMISED, f"{share:.0%} {LOOKS} is pandas at {blame.place(pandas[0]['at'])}",
                "turn the columns into arrays once, before the loop, or read them by task_config.batches()",
                of=LOOKS,
            )
        )  # fmt: skip
    between = _of_between(record)
    found += between
    at, share = unseen.beside(record)
    if share >= _BESIDE and not between:
        found.append(
            Advice(
                "beside", share, 0.0, f"{share:.0%} {LOOKS}, Python is at {at}, not in TensorFlow",
                "if that is no training (saving, writing, plotting), do it less often, or in a thread of its own",
            )
        )  # fmt: skip
    waiting = wait_share(record)
    if record["by"] == "feed_dict" and waiting >= WORTH_SAYING and not brief(record):
        main = next((line for line in record["lines"] if line["main"]), None)
        where = (f" at {blame.place(main['at'])}" if main else "") + line_of_python(record)
        found.append(
            Advice(
                "feed_dict", waiting, waiting * PROMISED, f"{waiting:.0%} {STEPS} is between session.run() and the next: "
                f"Python makes what is fed{where}",
                "let the graph draw its batches itself: task_config.dataset(...), make_one_shot_iterator().get_next(); Keras: "
                "fit(dataset), or workers=8 for a Sequence",
            )
        )  # fmt: skip
    if record["by"] == "call" or (record["by"] == "function" and record["outside"] > 0.5 * whole(record)):
        found += _of_calls(record)
    return _of_one_line(found, pandas)


def _of_one_line(found: list[Advice], pandas: list[Mapping[str, Any]]) -> list[Advice]:
    """If there is advice about pandas at a line, leave out the other advice about that line: one change mends both."""
    if not any(one.rule == "pandas" for one in found):
        return found
    there = re.compile("|".join(rf"\b{re.escape(blame.place(line['at']))}(?!\d)" for line in pandas))
    return [one for one in found if one.rule == "pandas" or not there.search(one.what)]


#: what the line does where Python is most often between the steps -> that in words, and what to change
_BETWEEN = {
    "prints": ("which prints", "print every hundredth step"),
    "writes": ("which writes", "write every hundredth step, or in a thread of its own"),
    "records": (
        "which takes records apart, or makes them, in Python",
        "of whole batches in the dataset: .batch(n).map(lambda rows: tf.io.parse_example(rows, {...}), "
        "num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "texts": (
        "which takes texts or bytes apart",
        "of whole batches in the dataset (tf.io.decode_csv, tf.strings.split, tf.io.decode_raw), or have the job read the "
        "table: task_config.dataset()",
    ),
    "tensors": ("which makes tensors", "if it makes them row by row, one numpy array for the whole batch, or a map of whole "
    "batches in the dataset"),
}  # fmt: skip
_SELDOM_ONLY = "metrics, prints and the like: every hundredth step only"
_OTHERWISE = (
    "",
    f"{_SELDOM_ONLY}; what makes a batch: on the whole of it at once, in the dataset's map as TensorFlow's operations "
    "(tf.signal, tf.image, ...)",
)
#: the advice for code that waits at a line, and hardly computes
_WAITING = f"{_SELDOM_ONLY}; what reads: ahead of the steps, in the dataset or in a thread"


def _of_between(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on Python between the steps of a loop over batches.

    If the steps call functions, its time is measured; otherwise it is known only for lines whose text tells what they do.
    """
    line = unseen.slow_line(record)
    if line is None or line["in"] == "pandas" or (record["wait"] + record["between"]) < unseen.TOO_SHORT:
        return []
    share, does = unseen.python_between(record), str(line.get("does", ""))
    words, change = _BETWEEN.get(does, _OTHERWISE)
    if does == "records" and "output" in record["spent"]:
        change = f"{_SAVINGS['output'][1]}; what is read, {change}"
    place = (
        ("in the loop at " if does == "loops" else "at ")
        + blame.place(line["at"])
        + (f" ({line['in']})" if line["in"] and not words else "")
    )
    told = f"Python is most often {place}" + (f", {words}" if words else "")
    if share >= _BESIDE and line["share"] >= WORTH_SAYING:
        # for code that computes there, it is not known how long it takes elsewhere
        won = min(share, float(line["share"])) * PROMISED if words else 0.0
        return [
            Advice(
                "beside",
                share,
                won,
                f"{share:.0%} {STEPS} is between the steps, in none of TensorFlow's functions; {told}",
                change,
            )
        ]
    # for a loop over rows that makes a record at one line, and writes it at the next
    alike = float(line["alike"])
    if record["by"] in ("dataset", "batches") and not share and words and alike >= _BESIDE:
        told = told.replace(
            " most often", " at lines that take rows one by one, most often" if alike > line["share"] else "", 1
        )
        return [Advice("beside", alike, 0.0, f"{alike:.0%} {LOOKS}, {told}", change)]
    return []


def of_standing(record: Mapping[str, Any]) -> list[Advice]:
    """Advise, if nothing else was found for a loop over batches, on a line of the script at which it waits, but neither
    in TensorFlow nor for its input.

    In a loop that runs operations one by one, only the processor's clock tells such waiting from the operations.
    """
    if record["by"] not in ("dataset", "batches") or (record["wait"] + record["between"]) < unseen.TOO_SHORT:
        return []
    at, share = unseen.standing(record)
    waits = "waits at {at}, and hardly computes (a network, a lock, a sleep)"
    if unseen.shared(record) or unseen.computes_there(record, share):
        sleeps = unseen.standing(record, asleep=True)
        if sleeps[1] >= _BESIDE:
            at, share = sleeps
        elif record["by"] == "batches" or unseen.computes_there(record, share):
            # `unseen.told` says of what stands between these that it is not known
            return []
        else:
            waits = "is at {at}, where it waits (a network, a lock), or computes: other processes use the processor, too, and leave nothing of it idle"
    if share < _BESIDE:
        return []
    return [Advice("beside", share, 0.0, f"{share:.0%} {LOOKS}, Python {waits.format(at=at)}", _WAITING)]


def _of_calls(record: Mapping[str, Any]) -> list[Advice]:
    """Advise on a script that hands TensorFlow's functions what it has read itself."""
    seconds = max(float(record["wait"] + record["between"]), 1e-9)
    share = float(record["outside"]) / seconds
    at, at_line = unseen.busiest(record)
    if share < WORTH_SAYING or seconds < unseen.TOO_SHORT or at_line < WORTH_SAYING:
        return []
    if unseen.waits_for_threads(record) >= 0.5 * share:
        return [
            Advice(
                "thread", share, 0.0, f"{share:.0%} {STEPS} is between the calls of TensorFlow's functions, where the script "
                f"waits at {at} for another thread or process, which does not keep up", "several of them, larger pieces, or "
                "less to do for each",
            )
        ]  # fmt: skip
    line = unseen.slow_line(record)
    words, change = _BETWEEN.get(str(line.get("does", "")) if line is not None else "", ("", _SELDOM_ONLY))
    if line is not None and (words or record["by"] == "function"):
        # a function that draws by itself is not handed what is read between the calls
        told = f"Python is most often at {blame.place(line['at'])}" + (f", {words}" if words else "")
        won = min(share, float(line["share"])) * PROMISED
        return [
            Advice("between", share, won, f"{share:.0%} {STEPS} is between the calls of TensorFlow's functions; {told}", change)
        ]
    if record["by"] == "function":
        # this is a callback that waits: the function draws by itself, so it is no reading
        words = f"{share:.0%} {STEPS} is between the calls of TensorFlow's functions; Python is most often at {at}"
        return [Advice("between", share, min(share, at_line) * PROMISED, words, _SELDOM_ONLY)]
    # at best the shorter of the two is done during the longer one
    return [
        Advice(
            "between", share, min(share, 1 - share) * PROMISED,
            f"{share:.0%} {STEPS} is between the calls of TensorFlow's functions; Python is most often at {at}",
            "if that reads, have it done meanwhile: tf.data.Dataset.from_generator(...).prefetch(2), or a thread of yours; "
            "rows come by task_config.dataset()",
        )
    ]  # fmt: skip
