"""Scripts that are slow for one known reason: whether the input doctor names it, and how much its advice wins."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

import akrunner
from akrunner.engines.inputs.advice import advised
from akrunner.engines.inputs.unseen import wait_share
from akrunner.engines.inputs.wording import verdict
from bench.measuring import Row

_SCRIPT = Path(__file__).with_name("doctor_script.py")
_STEPS = 20


class Case(NamedTuple):
    """Attributes: how: the function of the script; rule: that the doctor is to find first, "" for a script that is fine; what: is wrong; python: what
    it runs in; turns: how often, where the time depends on what else the machine does: the quickest counts."""

    how: str
    rule: str
    what: str
    python: str | None = "tf2.3"
    turns: int = 1


CASES = (
    Case("no_prefetch", "prefetch", "no prefetch at the end"),
    Case("map_alone", "map", "map without num_parallel_calls", turns=3),
    Case("python_map", "python", "Python in a map (numpy_function)"),
    Case("generator", "python", "from_generator, row by row"),
    Case("one_source", "one_source", "one far file after another"),
    Case("small_files", "small_files", "a file for every element"),
    Case("decode_first", "decode", "shuffle behind the decoding"),
    Case("cheap_map", "cheap_map", "a cheap map for each row"),
    Case("no_cache", "cache", "six passes that all decode"),
    Case("checkpoints", "checkpoint", "a checkpoint at every step"),
    Case("feed_dict", "feed_dict", "feed_dict, made in Python"),
    Case("pandas_loop", "pandas", "pandas in the loop", None),
    Case("shuffle_fill", "shuffle", "a shuffle buffer as large as the data"),
    Case("iterators", "iterators", "an iterator for every step"),
    Case("lock", "lock", "Python in a map beside short steps", None),
    Case("fine_loop", "", "fine: the card is busy"),
    Case("fine_fit", "", "fine: Keras on the processor"),
)


def doctor() -> list[Row]:
    """What it costs; each slow script as it is, and as the doctor says; and the fine ones."""
    return overhead() + [_row(case) for case in CASES]


def overhead() -> list[Row]:
    """Passes with the clocks on against passes with them off, in pairs, in one process: a loop over a dataset, and Keras; steps as people have them, and
    as short as they get."""
    rows = []
    table = {"a": np.arange(40_000, dtype=np.float32) % 7}
    for how, what in (
        ("cost_loop", "a loop over a dataset"),
        ("cost_fit", "Keras fit"),
        ("cost_short", "a loop that does next to nothing"),
        ("cost_fit_short", "Keras fit of next to nothing"),
    ):
        params = {"how": how, "mended": False}
        # on one thread: those that wait for each other take the processor, too, now more and now less
        result = akrunner.run(_SCRIPT, table, user_params=params, python_env="tf2.3", intra_op_parallelism=1, timeout=300)
        off, ratio, steps = (result.stats.reports[0][name] for name in ("off", "ratio", "steps"))
        each = f"{1e6 * off * ratio / steps:,.0f} us of the processor a step"
        against = f"clocks off: {1e6 * off / steps:,.0f} us"
        most = 1.05 if "short" in how else 1.01
        rows.append((f"the input doctor, always on: {what}", each, against, f"{ratio:.3f} x", f"<= {most} x", ratio <= most))
    return rows


def _row(case: Case) -> Row:
    # what clocks and the pipeline's structure tell; where they do not, the profiler looks
    slow = _run(case, False, None if case.rule else _STEPS)
    by = _named(case, slow)
    if case.rule and not by:
        slow, by = _run(case, False, _STEPS), "looked at"
    record = slow.stats.inputs["chief:0"]
    found = advised(record)
    first = found[0] if found else None
    seconds = _seconds(slow)
    if not case.rule:
        share = wait_share(record)
        told = [one.rule for one in found if one.saves >= 0.05]
        return (
            case.what,
            f"{seconds:.1f} s, {share:.0%} waiting",
            "nothing to say",
            ", ".join(told) or "nothing",
            "nothing",
            not told,
        )
    if first is None:
        return (case.what, f"{seconds:.1f} s", "; ".join(verdict(slow.stats)) or "nothing", "", case.rule, False)
    mended = min(_seconds(_run(case, True, None)) for _ in range(case.turns))
    seconds = min([seconds, *(_seconds(_run(case, False, None)) for _ in range(case.turns - 1))])
    won = 1 - mended / seconds
    # what is only likely promises nothing
    promised = 0.0 if first.likely else first.saves
    right = first.rule == case.rule and won >= promised
    said = verdict(slow.stats)[0].partition("] ")[2]
    return (
        case.what,
        f"{seconds:.1f} s -> {mended:.1f} s",
        said,
        f"saves {won:.0%}",
        f"{case.rule} ({by}), >= {promised:.0%}",
        right,
    )


def _named(case: Case, slow: akrunner.Result) -> str:
    """How what is wrong is known without a look, "": it is not."""
    found = advised(slow.stats.inputs["chief:0"])
    if not found or found[0].rule != case.rule:
        return ""
    return "most likely" if found[0].likely else "timed"


def _run(case: Case, mended: bool, steps: int | None) -> akrunner.Result:
    table = {"a": np.arange(48_000, dtype=np.float32) % 7}
    params = {"how": case.how, "mended": mended}
    return akrunner.run(_SCRIPT, table, user_params=params, python_env=case.python, profile_input=steps, timeout=300)


def _seconds(result: akrunner.Result) -> float:
    return float(result.stats.reports[-1]["seconds"])
