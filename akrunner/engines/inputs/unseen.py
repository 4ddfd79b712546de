"""Judges input that is read by other means than tf.data: what can be known of it, and on which side of a job its time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akrunner.engines.inputs import blame

INPUT, COMPUTE, UNKNOWN = "input", "compute", "unknown"
#: seconds of reading below which shares mean nothing; the number of looks at Python's lines from which on they mean something
TOO_SHORT, ENOUGH = 0.5, 10
#: share of the time that a line must have to be named
_WORTH_NAMING = 0.25
_TENSORFLOW = ("tensorflow", "tensorflow_core", "keras", "tf_keras", "tensorflow_estimator")
#: ways of reading in which the steps draw their batches inside TensorFlow; they are measured as a whole
INSIDE = ("function", "session")
#: seconds of steps from which on it is worth saying that no look was made
_LONG = 5.0
#: things that a script does between its steps that are neither reading nor computing
SAVING = ("checkpoint", "summary", "report", "output")
#: share of the time for these from which on they are named, and the script does not count as computing
_SAVES = 0.25
#: the same for waiting
_WAITS = 0.2
#: share of the looks that lines waiting for a value of TensorFlow's must have for a card to be computing
_WAITS_FOR_VALUE = 0.25
#: nothing computes if fewer cores than this are used, and a card, if there is one, works for less than this share of the time
_LITTLE_USED, _BUSY = 0.3, 0.1
#: share of the looks at a line that must find its thread computing for it to be no wait
_WAITS_ONLY = 0.3
#: share of the looks that a thread of the script must have to be said to compute all the time
_ALL_THE_TIME = 0.6
#: share of the waiting that must be for rows of a stream that have not come
_ARRIVES = 0.6
#: seconds of a step below which it often waits for its turn in Python: a thread that computes in Python keeps the lock for 5
#: ms, and a step asks for it several times
_SHORT = 0.05
#: share of the time that Python beside the steps must compute to be named; or that it must take, if it waits for cores
_HOLDS_UP, _HOLDS_LONG = 0.25, 0.5
#: share of a core that must be idle if other processes have left a core to the task
IDLE = 0.5
#: what lines do that, if they take long, are run once for each row
_OF_ROWS = ("prints", "writes", "records", "texts", "tensors")
#: modules of Python itself in which a thread waits for another thread
_WAITING = ("queue", "threading", "multiprocessing", "concurrent")
#: the most steps that `profile_input` takes
_MOST_STEPS = 10_000
#: seconds of steps from which on a sentence says that there were too few looks at Python's lines to name one; the number of
#: looks from which on it mentions the most frequent line
_SOME, _FEW = 1.0, 5
_MEASURED = ("dataset", *INSIDE, "feed_dict")


def wait_share(record: Mapping[str, Any]) -> float:
    """Return the share of the time, from the first step to the last, that is waiting for input."""
    steps = float(record["wait"] + record["between"])
    return float(record["wait"]) / steps if steps > 0 and record["known"] and not record.get("elsewhere") else 0.0


def most_waiting(record: Mapping[str, Any]) -> float:
    """Return what `wait_share` would be if all steps that were not looked at were waiting, too."""
    steps = float(record["wait"] + record["between"])
    return wait_share(record) + (float(record.get("unlooked", 0.0)) / steps if steps > 0 else 0.0)


def unsure(record: Mapping[str, Any]) -> bool:
    """Whether the script may wait where there is no clock: in a function that draws by itself, or for a thread that reads."""
    return bool(record.get("hidden") or record.get("elsewhere"))


def bound(inputs: Mapping[str, Mapping[str, Any]], waited: float, main: float) -> str:
    """Return on which side the time of a job went.

    Args:
        waited: seconds of waiting for the rows to come.
        main: seconds in `main`.
    """
    if inputs and all(map(arriving, inputs.values())):
        return UNKNOWN
    steps = [record for record in inputs.values() if record["wait"] + record["between"] >= TOO_SHORT]
    if waited > main or any(wait_share(record) > 0.5 for record in steps) or any(map(late, inputs.values())):
        return INPUT
    return COMPUTE if any(map(_computes, steps)) else UNKNOWN


def arriving(record: Mapping[str, Any]) -> bool:
    """Whether a stream's rows were what was waited for: they came no faster, which nothing in the script changes."""
    pipe = float(record["spent"].get("pipe", 0.0))
    return record.get("given", 0) is None and pipe >= _ARRIVES * max(record["wait"] + record["first"], TOO_SHORT)


def late(record: Mapping[str, Any]) -> bool:
    """Whether most of the time passed before the first batch, or without one."""
    if record.get("elsewhere"):
        return False
    return bool(record["by"] in ("dataset", "batches") and record["first"] > max(0.5 * record["main"], TOO_SHORT))


def _computes(record: Mapping[str, Any]) -> bool:
    """Whether it is known that a script does not wait for its input."""
    steps = record["wait"] + record["between"]
    if unsure(record) or most_waiting(record) > _WAITS or saving(record) > _SAVES * steps or python_between(record) > _SAVES:
        return False
    if record["by"] in ("dataset", "batches") and record["first"] > max(_WAITS * record["main"], 1.0):
        # the script waited before its steps began
        return False
    if beside(record)[1] > _SAVES or in_pandas(record) > _SAVES:
        return False
    if standing(record)[1] > _SAVES or nothing_computes(record):
        return False
    line = slow_line(record) if record["by"] in ("dataset", "batches") else None
    if line is not None and not python_between(record) and line["alike"] > _SAVES:
        return False
    if python_beside(record) or own_thread(record) is not None:
        # steps that wait for their turn in Python only seem to compute
        return False
    if record["by"] in _MEASURED:
        return bool(record["known"]) and bool(record["outside"] <= _SAVES * steps)
    if record["by"] == "call":
        return bool(record["outside"] <= _SAVES * steps)
    # the code between the batches may be reading, too
    return record["by"] == "batches" and record["looks"] >= ENOUGH and in_tensorflow(record) >= 1 - _SAVES


def in_tensorflow(record: Mapping[str, Any]) -> float:
    """Return the share of the time in which the main thread was in TensorFlow or Keras."""
    return float(sum(line["share"] for line in record["lines"] if line["main"] and line["in"] in _TENSORFLOW))


def in_pandas(record: Mapping[str, Any]) -> float:
    """Return the share of the time in which the main thread was in pandas."""
    return float(sum(line["share"] for line in record["lines"] if line["main"] and line["in"] == "pandas"))


def beside(record: Mapping[str, Any]) -> tuple[str, float]:
    """Return the line, in words, at which a loop over a dataset runs a package other than TensorFlow, and its share of
    the time; "" if there is none."""
    lines = [
        line
        for line in record["lines"]
        if line["main"] and line["in"] not in ("", "pandas", *_WAITING, *_TENSORFLOW, *_timed(record))
    ]
    if record["by"] != "dataset" or record["looks"] < ENOUGH or not lines:
        return "", 0.0
    most = max(lines, key=lambda line: float(line["share"]))
    return f"{blame.place(most['at'])} ({most['in']})", float(most["share"])


def standing(record: Mapping[str, Any], asleep: bool = False) -> tuple[str, float]:
    """Return the line, in words, at which Python waits outside of TensorFlow and hardly computes (a network, a lock, a
    sleep), and the share of the time in which it is at such lines. The line is "" if there is none.

    Args:
        asleep: whether to count only lines whose text says that they sleep.
    """
    lines = [
        line
        for line in record["lines"]
        # the head of a loop waits for the input, or frees batches
        if line["main"] and line["in"] not in _TENSORFLOW and line.get("does") != "loops" and line.get("computes", 1.0) < 0.5
    ]
    lines = [line for line in lines if not asleep or line.get("does") == "sleeps"]
    steps = float(record["wait"] + record["between"])
    if record["looks"] < ENOUGH or not lines or steps <= 0:
        return "", 0.0
    most = max(lines, key=lambda line: float(line["share"]))
    # the time for saving is measured, and has a sentence of its own
    share = sum(float(line["share"]) for line in lines) - (0.0 if asleep else saving(record) / steps)
    return blame.place(most["at"]) + (f" ({most['in']})" if most["in"] else ""), max(0.0, min(1.0, share))


def shared(record: Mapping[str, Any]) -> bool:
    """Whether no core of the machine was idle: code that seems to wait for a network, a lock or a clock may wait for a
    core then."""
    return record["idle"] is not None and bool(record["idle"] < IDLE)


def computes_there(record: Mapping[str, Any], share: float) -> bool:
    """Whether a task used more of the processor than it can in the time in which it does not stand: a library's threads
    compute while the thread that was looked at waits for them.

    Args:
        share: the share of the time in which it stands.
    """
    return bool(record.get("used") is not None and record["used"] >= (1 - share) * record["cores"] + _LITTLE_USED)


def nothing_computes(record: Mapping[str, Any]) -> bool:
    """Whether neither the processor nor a card computes, so that the script waits for something else.

    If cards were not watched, and there may be one, a script that waits in TensorFlow may be waiting for it.
    """
    used = record.get("used")
    if used is None or used >= _LITTLE_USED:
        return False
    if record["busy"] is not None:
        return bool(record["busy"] < _BUSY)
    if record.get("cards") is False:
        return True
    return bool(record["looks"] >= ENOUGH and _waits_for_values(record) < _WAITS_FOR_VALUE)


def _waits_for_values(record: Mapping[str, Any]) -> float:
    """Return the share of the time in which the main thread waits in TensorFlow, as it does for a card's value."""
    return float(
        sum(
            line["share"]
            for line in record["lines"]
            if line["main"]
            and line.get("does") != "sleeps"
            and line["in"] in _TENSORFLOW
            and line.get("computes", 1.0) < 0.5
            and not _by_rows(line)
        )
    )


def saving(record: Mapping[str, Any]) -> float:
    """Return the seconds in the steps of what is neither reading nor computing, as far as it is timed."""
    return sum(in_steps(record, what)[0] for what in SAVING)


def in_steps(record: Mapping[str, Any], what: str) -> tuple[float, int]:
    """Return (seconds, how often) of something other than reading and computing, without what came before the second step:
    the first step is not part of the steps' time."""
    early, early_times = record.get("early", {}).get(what, 0.0), record.get("early_times", {}).get(what, 0)
    return max(0.0, record["spent"].get(what, 0.0) - early), max(0, record.get("times", {}).get(what, 0) - early_times)


def python_between(record: Mapping[str, Any]) -> float:
    """Return, for a loop over batches whose steps call TensorFlow's functions, the share of the time that is neither
    waiting, nor in such a function, nor timed otherwise.

    That time is Python, or operations that are run one by one. Returns 0 if it is not known.
    """
    within = _functions(record)
    steps = float(record["wait"] + record["between"])
    # a loop that calls no functions, or seldom, may train by operations one by one
    if (
        record["by"] not in ("dataset", "batches")
        or record.get("elsewhere")
        or steps <= 0
        or within.get("calls", 0) < 0.5 * record["batches"]
    ):
        return 0.0
    return max(0.0, float(record["between"]) - float(within["inside"]) - saving(record)) / steps


def _functions(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the number of calls of TensorFlow's functions between the steps of a loop, and their seconds."""
    found: Mapping[str, Any] = record.get("within" if record["by"] == "dataset" else "calls", {})
    return found


def slow_line(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the line where Python is most often between a loop's steps, and that is no training; None if none is known.

    Its share is that of all looks at it. Its `alike` is the share of all lines whose text shows work done row by row. A
    card that computes shows in a line that waits for a value of TensorFlow's.
    """
    lines = [line for line in record["lines"] if line["main"] and line.get("does") != "sleeps"]
    waits = _waits_for_values(record)
    # where a loop begins anew, batches are freed: it is TensorFlow that waits there
    lines = [line for line in lines if line.get("does") != "loops" or line.get("computes", 1.0) >= 0.5]
    own = [line for line in lines if line["in"] not in (*_TENSORFLOW, *_WAITING, *_timed(record)) or _by_rows(line)]
    own += [line for line in lines if _prints_values(line, record)]
    if record["looks"] < ENOUGH or (waits >= _WAITS_FOR_VALUE and record.get("cards") is not False) or not own:
        return None
    # a line that makes tensors, or prints, may also call the step. The step's time is known, and is subtracted as far as the
    # step has no line of its own
    seconds = record.get("watched") or float(record["wait"] + record["between"])
    inside = float(_functions(record).get("inside", 0.0)) / max(seconds, 1e-9)
    steps = [line for line in lines if line["in"] in _TENSORFLOW and line not in own and line.get("does") != "loops"]
    inside = max(0.0, inside - sum(float(line["share"]) for line in steps))
    shares: dict[str, float] = {}
    for line in own:
        share = float(line["share"]) - (inside if line["in"] in _TENSORFLOW else 0.0)
        shares[line["at"]] = shares.get(line["at"], 0.0) + max(0.0, share)
    most = max(own, key=lambda line: (shares[line["at"]], line["share"]))
    rows = {line["at"] for line in own if line.get("does") in _OF_ROWS}
    return {**most, "share": shares[most["at"]], "alike": sum(shares[at] for at in rows)}


def _timed(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the packages whose time is known otherwise."""
    return ("tensorboard",) if record["spent"].get("summary") else ()


def _by_rows(line: Mapping[str, Any]) -> bool:
    """Whether a line that is in TensorFlow parses records, or makes tensors. If it hardly computes, it waits for
    something that does."""
    return line.get("does") in ("records", "texts", "tensors") and line.get("computes", 1.0) >= _WAITS_ONLY


def _prints_values(line: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a line that is in TensorFlow prints the value of a tensor. If there is a card, the line may be waiting for
    the card."""
    names = ("tensorflow", "tensorflow_core")
    return record.get("cards") is False and line.get("does") == "prints" and line["in"] in names


def waits_for_threads(record: Mapping[str, Any]) -> float:
    """Return the share of the time in which the main thread waited for another thread or process."""
    return float(sum(line["share"] for line in record["lines"] if line["main"] and line["in"] in _WAITING))


def busiest(record: Mapping[str, Any]) -> tuple[str, float]:
    """Return the line of the script, in words, where the main thread was most often outside of TensorFlow, and its share;
    "" if there is none."""
    lines: list[Mapping[str, Any]] = [
        line for line in record["lines"] if line["main"] and (line["in"] not in _TENSORFLOW or _by_rows(line))
    ]
    shares = {line["at"]: sum(other["share"] for other in lines if other["at"] == line["at"]) for line in lines}
    if record["looks"] < ENOUGH or not shares:
        return "", 0.0
    at = max(shares, key=lambda one: shares[one])
    packages = [line["in"] for line in lines if line["at"] == at and line["in"] not in ("", *_TENSORFLOW)]
    return blame.place(at) + (f" ({packages[0]})" if packages else ""), shares[at]


def own_thread(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the line at which a thread that the script has started computes nearly all the time; None if none is known.
    Its Python keeps the steps from Python's lock."""
    lines: list[Mapping[str, Any]] = [line for line in record["lines"] if not line["main"] and line.get("computes", 0.0) >= 0.5]
    shares: dict[str, float] = {}
    for line in lines:
        shares[line["at"]] = shares.get(line["at"], 0.0) + float(line["share"])
    if record["by"] not in ("dataset", "batches") or record["looks"] < ENOUGH or sum(shares.values()) < _ALL_THE_TIME:
        return None
    return max(lines, key=lambda line: shares[line["at"]])


def python_computes(record: Mapping[str, Any]) -> float:
    """Return the share of the steps' time in which Python called by the pipeline computes, and holds Python's lock. 0 if
    that is not known."""
    steps, python = float(record["wait"] + record["between"]), record.get("python", {})
    drawn = record["by"] in ("dataset", *INSIDE) and record["known"] and not record.get("elsewhere")
    if not drawn or steps <= 0 or python.get("wall", 0.0) <= 0:
        return 0.0
    took = min(1.0, python.get("steps", 0.0) / steps)
    return float(min(1.0, took * python.get("computed", 0.0) / python["wall"]))


def short(record: Mapping[str, Any]) -> bool:
    """Whether the steps are so short that they need Python's lock often."""
    return bool(float(record["wait"] + record["between"]) / max(1, record["batches"]) <= _SHORT)


def python_beside(record: Mapping[str, Any]) -> float:
    """Return the share of the steps' time in which Python called by the pipeline computes, if that is much, and the steps
    are so short that they need Python's lock often. 0 if that is not known, or it delays no step."""
    computed = python_computes(record)
    if record["by"] != "dataset" or not computed or not short(record):
        return 0.0
    took = min(1.0, record["python"].get("steps", 0.0) / float(record["wait"] + record["between"]))
    # if it has no core all the time, it keeps the lock while it waits for one
    holds = computed >= _HOLDS_UP or (shared(record) and took >= _HOLDS_LONG and computed >= _HOLDS_UP / 2)
    return computed if holds else 0.0


def reads(record: Mapping[str, Any]) -> bool:
    """Whether the script was seen to read anything: in a way that is timed, or a table's rows, or through an iterator
    that it has made."""
    return bool(record["by"] or record["pipelines"] or {"table", "pipe"} & set(record["spent"]))


def told(record: Mapping[str, Any]) -> list[str]:
    """Return where the time went, in at most one sentence, if it is not known what is reading and what is not."""
    if record.get("elsewhere"):
        return [
            f"{UNSURE}: another thread than the main one reads it; whether it reads ahead of the steps, or makes them, nobody "
            "sees"
        ]
    if record.get("hidden"):
        return [f"{UNSURE}: a tf.function goes through a dataset by itself, and how long it waits in there nobody sees"]
    if not reads(record):
        return [NOTHING_READ] if record["asked"] else []
    unnamed = _unnamed(record)
    if unnamed:
        return [unnamed]
    at, share = busiest(record)
    if record["by"] not in ("", "batches") or share < _WORTH_NAMING:
        return []
    inside = in_tensorflow(record)
    other = f", {inside:.0%} in TensorFlow" if inside >= 0.05 else ""
    if record["by"] == "batches":
        return [f"{UNSURE}: between its batches Python is at {at} for {share:.0%} of the time since the first step{other}"]
    return [
        f"{UNSURE}, as it reads in a way of its own: {share:.0%} of the time since the first step, Python is at {at}{other}"
    ]


def _unnamed(record: Mapping[str, Any]) -> str:
    """Return a sentence if much of the time is Python between the steps, but there were too few looks to say at which
    line; else ""."""
    steps = float(record["wait"] + record["between"])
    if record["asked"] or record["looks"] >= ENOUGH or steps < _SOME:
        return ""
    calls = record["by"] == "call"
    share = float(record["outside"]) / steps if calls else python_between(record)
    if share < _WORTH_NAMING:
        return ""
    where = "between the calls of TensorFlow's functions" if calls else "between the steps, in none of TensorFlow's functions"
    lines = [line for line in record["lines"] if line["main"] and line["in"] not in _TENSORFLOW]
    seen = ""
    if record["looks"] >= _FEW and lines:
        most = max(lines, key=lambda line: float(line["share"]))
        package = f" ({most['in']})" if most["in"] else ""
        seen = f", Python mostly at {blame.place(most['at'])}{package} in the few looks there were"
    return f"{UNSURE}: {share:.0%} of the steps' time is {where}{seen}: {look(record)} tells what it does there"


def not_looked(record: Mapping[str, Any]) -> bool:
    """Whether steps that draw their batches themselves take long, and no look was asked for."""
    return record["by"] in INSIDE and not record["known"] and not record["asked"] and record["between"] >= _LONG


def look(record: Mapping[str, Any]) -> str:
    """Return what the user can ask for to learn more."""
    if record.get("served"):
        return "--profile-input in a job of one task"
    if not record["asked"]:
        return "--profile-input (profile_input=20)"
    # ten times as many steps, if there are so many
    more = min(10 * int(record["asked"]), int(record["batches"]), _MOST_STEPS)
    return f"a look at more steps (--profile-input {more})" if more >= 2 * record["asked"] else "a look at a longer run"


#: the beginning of such a sentence
UNSURE = "it is not known whether the script waits for its input"
#: for a user who asked for a look
NOTHING_READ = f"{UNSURE}: it was not seen to read any"
