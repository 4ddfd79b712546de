"""What the tasks' own clocks say of their input -> sentences: who waits for what, and what to change.

A task's record (`Stats.inputs`, made by `akrunner.worker.meter`; seconds, JSON)::

    by            how the script reads: dataset, function (Keras fit, tf.function), session, batches, feed_dict
    batches, rows drawn; rows None: not known
    wait, between seconds in next() of the script's input, and between one next() and the following
    looked        steps of which wait was measured, where not each was: it is an estimate then
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Union

from akrunner.engines.base import Stats

#: share of the steps' time spent in waiting from which on it is worth a sentence
WORTH_SAYING = 0.1
#: seconds of reading below which shares mean nothing
_TOO_SHORT = 0.5


def verdict(stats: Union[Stats, Mapping[str, Any]]) -> List[str]:
    """What there is to say about a job's input, most important first; nothing: it does not hold the job up, or nobody knows.

    Args: stats: of the job, or what `dataclasses.asdict` made of them and JSON kept.
    """
    inputs: Mapping[str, Dict[str, Any]] = stats.get("inputs", {}) if isinstance(stats, Mapping) else stats.inputs
    told = []
    for task, record in inputs.items():
        share = wait_share(record)
        if share >= WORTH_SAYING and record["wait"] + record["between"] >= _TOO_SHORT:
            told.append((share, f"[{task}] {share:.0%} of the time of its {record['batches']:,} steps is waiting for input"))
    return [words for _, words in sorted(told, key=lambda one: -one[0])]


def holds_up(inputs: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a task's script waited for its input longer than it did anything else."""
    return any(wait_share(record) > 0.5 and _whole(record) >= _TOO_SHORT for record in inputs.values())


def _whole(record: Mapping[str, Any]) -> float:
    return float(record["wait"] + record["between"])


def wait_share(record: Mapping[str, Any]) -> float:
    """Of the time from the first step to the last, how much is waiting for input."""
    whole = record["wait"] + record["between"]
    return float(record["wait"] / whole) if whole > 0 else 0.0
