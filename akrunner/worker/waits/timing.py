"""One call, or one batch, timed for the meter of this process's task; what goes wrong with a clock switches it off, and is never the script's fault."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional

from akrunner.worker.waits import meter, shown

if TYPE_CHECKING:
    from akrunner.worker.waits.ways import Quick, Way

_now: Dict[str, Optional[meter.Meter]] = {"meter": None}
#: of each thread: the way in whose call it is (`call`), and whether it is in something that is timed apart (`spending`)
inside = threading.local()


def enter(steps: int) -> meter.Meter:
    """From now on a meter runs for this process's task. Returns: it."""
    made = _now["meter"] = meter.Meter(steps)
    return made


def off(error: BaseException) -> None:
    """The meter is of no use any more."""
    made, _now["meter"] = _now["meter"], None
    if made is not None:
        made.stop(error)


def running() -> Optional[meter.Meter]:
    """The meter, None: there is none."""
    return _now["meter"]


@shown.named
def quickly(quick: Quick, began: int, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `real` returns: a step that is counted, and no more."""
    try:
        made = real(*args, **kwargs)
    finally:
        quick.last = meter.clock()
        quick.wait += quick.last - began
    quick.calls += 1
    return made


@shown.named
def within(made: meter.Meter, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `real` returns: a function that computes between two steps of a loop, of which the meter knows how long it took."""
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
    """Time that goes into something else than reading and computing; what is within another counts once."""

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
    """What `real` returns, and the meter knows how long it took. Args: of: the function, or graph, that it calls, or the iterator it draws from; iterator: id
    of the one that a function is handed."""
    try:
        way = made.way(name)
        if way is not None:
            # no reference: the script's things go when it lets them go
            began = made.before(way, id(of) if of is not None else None, iterator)
    except Exception as e:
        off(e)
        way = None
    if way is None:
        return real(*args, **kwargs)
    inside.call = name
    try:
        drawn = real(*args, **kwargs)
    except BaseException:
        _told(made, way, began, None, True)
        raise
    finally:
        inside.call = False
    _told(made, way, began, drawn if rows_of else None, False, rows_of)
    return drawn


def _told(made: meter.Meter, way: Way, began: int, drawn: Any, end: bool, rows_of: Optional[Callable[..., Any]] = None) -> None:
    try:
        now = meter.clock()
        way.drew(began, now, rows_of(drawn, way.quick) if rows_of is not None and drawn is not None else None, end)
        made.after(way, now)
    except Exception as e:
        off(e)


@shown.named
def batches(made: Iterator[Any], rows_of: Callable[..., Any]) -> Iterator[Any]:
    """The batches of a plain iterator, each timed. Args: made: the iterator; rows_of: says how many rows are in one."""
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
    """A batch has come, or, without `rows_of`, none."""
    try:
        way.drew(began, meter.clock(), rows_of(batch) if rows_of else None, rows_of is None)
        if way.calls == 1 and _now["meter"] is not None:
            _now["meter"].first_step(way)
    except Exception as e:
        off(e)
