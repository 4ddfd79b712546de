"""What a script reads by other means than tf.data: what can be known of it, and on which side of a job its time went."""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from akrunner.engines import blame

INPUT, COMPUTE, UNKNOWN = "input", "compute", "unknown"
#: seconds of reading below which shares mean nothing; looks at Python's lines
TOO_SHORT, ENOUGH = 0.5, 10
#: of the time, what a line must have to be named
_WORTH_NAMING = 0.25
_TENSORFLOW = ("tensorflow", "tensorflow_core", "keras", "tf_keras", "tensorflow_estimator")
#: ways of reading that are measured wholly
_MEASURED = ("dataset", "function", "session", "feed_dict")


def wait_share(record: Mapping[str, Any]) -> float:
    """Of the time from the first step to the last, how much is waiting for input."""
    steps = float(record["wait"] + record["between"])
    return float(record["wait"]) / steps if steps > 0 and record["known"] else 0.0


def bound(inputs: Mapping[str, Mapping[str, Any]], waited: float, main: float) -> str:
    """On which side the time of a job went. Args: waited: seconds for the rows to come; main: in `main`."""
    steps = [record for record in inputs.values() if record["wait"] + record["between"] >= TOO_SHORT]
    if waited > main or any(wait_share(record) > 0.5 for record in steps) or any(map(late, inputs.values())):
        return INPUT
    return COMPUTE if any(map(_computes, steps)) else UNKNOWN


def late(record: Mapping[str, Any]) -> bool:
    """Whether the first batch alone, or that there was none, took most of the time."""
    return bool(record["by"] in ("dataset", "batches") and record["first"] > max(0.5 * record["main"], TOO_SHORT))


def _computes(record: Mapping[str, Any]) -> bool:
    """Whether it is known that a script does not wait for its input."""
    steps = record["wait"] + record["between"]
    if record["by"] in _MEASURED:
        return bool(record["known"]) and bool(record["outside"] <= 0.5 * steps)
    if record["by"] == "call":
        return bool(record["outside"] <= 0.5 * steps)
    # what stands between the batches may be reading, too
    return record["by"] == "batches" and record["looks"] >= ENOUGH and in_tensorflow(record) > 0.5


def in_tensorflow(record: Mapping[str, Any]) -> float:
    """The share of the time in which the main thread was in TensorFlow, or Keras."""
    return float(sum(line["share"] for line in record["lines"] if line["main"] and line["in"] in _TENSORFLOW))


def busiest(record: Mapping[str, Any]) -> Tuple[str, float]:
    """The line of the script where the main thread was most often outside of TensorFlow, in words, and its share; "": there is none."""
    lines: List[Mapping[str, Any]] = [line for line in record["lines"] if line["main"] and line["in"] not in _TENSORFLOW]
    shares = {line["at"]: sum(other["share"] for other in lines if other["at"] == line["at"]) for line in lines}
    if record["looks"] < ENOUGH or not shares:
        return "", 0.0
    at = max(shares, key=lambda one: shares[one])
    packages = [line["in"] for line in lines if line["at"] == at and line["in"]]
    return blame.place(at) + (f" ({packages[0]})" if packages else ""), shares[at]


def told(record: Mapping[str, Any]) -> List[str]:
    """Where the time went, if nobody knows what is reading and what is not: no sentence, or one."""
    at, share = busiest(record)
    if record["by"] not in ("", "batches") or share < _WORTH_NAMING:
        return []
    inside = in_tensorflow(record)
    other = f", {inside:.0%} in TensorFlow" if inside >= 0.05 else ""
    if record["by"] == "batches":
        return [f"{UNSURE}: between its batches Python is at {at} for {share:.0%} of the time{other}"]
    return [f"{UNSURE}, as it reads in a way of its own: {share:.0%} of the time Python is at {at}{other}"]


#: how such a sentence begins
UNSURE = "it is not known whether the script waits for its input"
