"""Times calls and batches for the meter of this process's task.

An error of a clock switches the meter off, and never reaches the script.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional

from akrunner.worker.waits import meter, shown
from akrunner.worker.waits.ways import is_end

if TYPE_CHECKING:
    from akrunner.worker.waits.ways import Quick, Way

_now: Dict[str, Optional[meter.Meter]] = {"meter": None}
#: for each thread: `call`, the way in whose call it is, or False; `spending`, whether it is in a block that is timed apart
inside = threading.local()


def enter(steps: int) -> meter.Meter:
    """Make the meter of this process's task, and return it."""
    made = _now["meter"] = meter.Meter(steps)
    return made


def off(error: BaseException) -> None:
    """Switch the meter off because of an error."""
    made, _now["meter"] = _now["meter"], None
    if made is not None:
        made.stop(error)


def running() -> Optional[meter.Meter]:
    """Return the meter, None if there is none."""
    return _now["meter"]


@shown.named
def quickly(quick: Quick, began: int, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call `real` and return its result. The step is only counted, and its time added up."""
    try:
        made = real(*args, **kwargs)
    except BaseException as e:
        quick.ends += is_end(e)
        raise
    finally:
        quick.last = meter.clock()
        quick.wait += quick.last - began
    quick.calls += 1
    return made


@shown.named
def within(made: meter.Meter, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call `real`, a function that computes between two steps of a loop, and return its result. The meter adds up its time."""
    if getattr(inside, "spending", False) or made.thread != threading.get_ident():
        return real(*args, **kwargs)
    inside.call, began = "within", meter.clock()
    try:
        return real(*args, **kwargs)
    finally:
        inside.call = False
        made.within_ns += meter.clock() - began
        made.within += 1


class spending(object):
    """A block whose time goes into something other than reading and computing.

    A block within another one is not counted again.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._outer = False

    def __enter__(self) -> None:
        self._outer = not getattr(inside, "spending", False)
        inside.spending = True
        self._began = meter.clock()

    def __exit__(self, *error: Any) -> None:
        if self._outer:
            inside.spending = False
            made = _now["meter"]
            try:
                if made is not None:
                    made.add(self._what, meter.clock() - self._began)
            except Exception as e:
                off(e)


@shown.named
def timed(
    made: meter.Meter, name: str, of: Any, real: Callable[..., Any], args: Any, kwargs: Any,
    rows_of: Optional[Callable[..., Any]] = None, iterator: Optional[int] = None,
) -> Any:  # fmt: skip
    """Call `real` and return its result, timed in full.

    Args:
        made: the meter.
        name: the way of reading.
        of: the function or graph that is called, or the iterator that is drawn from.
        real: what to call, with `args` and `kwargs`.
        rows_of: returns the number of rows of a batch; None if the result is not a batch.
        iterator: the id of the iterator that a function is handed.
    """
    try:
        way = made.way(name)
        if way is not None:
            # only the id, not a reference: the script's objects are freed when the script gives them up
            began = made.before(way, id(of) if of is not None else None, iterator)
    except Exception as e:
        off(e)
        way = None
    if way is None:
        return real(*args, **kwargs)
    inside.call = name
    try:
        drawn = real(*args, **kwargs)
    except BaseException as e:
        _told(made, way, began, None, e)
        raise
    finally:
        inside.call = False
    _told(made, way, began, drawn if rows_of else None, None, rows_of)
    return drawn


def _told(
    made: meter.Meter, way: Way, began: int, drawn: Any, error: Optional[BaseException],
    rows_of: Optional[Callable[..., Any]] = None,
) -> None:  # fmt: skip
    try:
        now = meter.clock()
        way.drew(began, now, rows_of(drawn, way.quick) if rows_of is not None and drawn is not None else None, error)
        made.after(way, now)
    except Exception as e:
        off(e)


@shown.named
def batches(made: Iterator[Any], rows_of: Callable[..., Any]) -> Iterator[Any]:
    """Yield the batches of a plain iterator, and time each.

    Args:
        made: the iterator.
        rows_of: returns a batch's number of rows.
    """
    way = _way_of_batches()
    while True:
        began = meter.clock()
        try:
            batch = next(made)
        except StopIteration:
            if way is not None:
                _came(way, began, None, None)
            return
        if way is not None:
            _came(way, began, batch, rows_of)
        yield batch


def _way_of_batches() -> Optional[Way]:
    clocks = _now["meter"]
    try:
        return clocks.way("batches") if clocks is not None else None
    except Exception as e:
        off(e)
        return None


def _came(way: Way, began: int, batch: Any, rows_of: Optional[Callable[..., Any]]) -> None:
    """Note that a batch has come; or, without `rows_of`, that there are no more."""
    try:
        way.drew(began, meter.clock(), rows_of(batch) if rows_of else None, None if rows_of else StopIteration())
        if way.calls == 1 and _now["meter"] is not None:
            _now["meter"].first_step(way)
        if way.calls == 2 and _now["meter"] is not None:
            _now["meter"].steps_begin(way)
    except Exception as e:
        off(e)
