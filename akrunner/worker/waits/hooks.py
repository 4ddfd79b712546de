"""Where a script reads: the places of TensorFlow, and of ours, at which the meter is told.

::

    for batch in dataset, next(iterator)      gen_dataset_ops.iterator_get_next..., eagerly
    Keras fit, a tf.function over an iterator  Function.__call__ with an iterator among its arguments
    a tf.function that is handed arrays        the same without one: what is between the calls, as long as nothing else is known
    session.run, Estimators, Keras of 1.15    BaseSession.run, BaseSession._Callable.__call__
    task_config.batches()                     akrunner.worker.data, by `timing.batches`
    checkpoints, summaries                    what saves variables, and writes events (`saves`)
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, MutableMapping, Optional, Sequence

from akrunner.worker.waits import drawing, meter, naming, pipeline, python, saves, shown, timing, tracing

if TYPE_CHECKING:
    from akrunner.worker.waits.meter import Meter
    from akrunner.worker.waits.ways import Quick

#: TensorFlow's functions that draw, by module
_DRAWS = (
    "iterator_get_next",
    "iterator_get_next_sync",
    "iterator_get_next_as_optional",
    "multi_device_iterator_get_next_from_shard",
)
_FUNCTIONS = ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "tensorflow.python.eager.def_function")
#: graphs from whose iterators a session may draw -> which of their operations do (`drawing`)
_drawn_from: MutableMapping[Any, Dict[Any, Any]] = weakref.WeakKeyDictionary()
_iterators: Dict[type, bool] = {}


def install() -> None:
    """TensorFlow has been imported: watch it."""
    try:
        made = timing.running()
        if made is None or not hasattr(sys.modules.get("tensorflow"), "__version__"):
            return
        if made.looks is not None:
            made.looks.may = True
            tracing.give_way(made.looks.give_up, made.looks.serve)
        made.tensorflow = True
        pipeline.install(made)
        naming.pass_over((install, timing.enter, saves.watch, pipeline.install))
        python.install(made.python)
        _watch_draws(made)
        _watch_functions(made)
        _watch_sessions(made)
        _watch_late()
        made.lines.also = _watch_late
    except Exception as e:
        # a TensorFlow that is put together in another way: nothing is said of its input then
        timing.off(e)


def _watch_late() -> None:
    """What comes when it is used, as Keras does."""
    naming.leave_out()
    saves.watch()


def _watch_draws(made: Meter) -> None:
    module = sys.modules["tensorflow.python.ops.gen_dataset_ops"]
    context = sys.modules["tensorflow.python.eager.context"]
    ops = sys.modules["tensorflow.python.framework.ops"]
    quick, clock, thread = made.quick["dataset"], meter.clock, threading.get_ident

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        @shown.named
        def draw(*args: Any, **kwargs: Any) -> Any:
            began = clock()
            if not context.executing_eagerly():
                _will_draw(ops)
                return real(*args, **kwargs)
            source = args[0] if args else None
            if began < quick.until and id(source) == quick.of and thread() == quick.thread:
                try:
                    drawn = real(*args, **kwargs)
                finally:
                    quick.last = clock()
                    quick.wait += quick.last - began
                quick.calls += 1
                if quick.at is not None:
                    quick.rows += _rows_at(quick.at, drawn)
                return drawn
            made = timing.running()
            if made is None:
                return real(*args, **kwargs)
            try:
                return timing.timed(made, "dataset", source, real, args, kwargs, _rows)
            except BaseException as e:
                raise shown.cut(e)

        return draw

    for name in _DRAWS:
        if hasattr(module, name):
            setattr(module, name, watched(getattr(module, name)))
    _watch_epochs(module)


def _will_draw(ops: Any) -> None:
    """A graph is to draw from an iterator."""
    try:
        graph = ops.get_default_graph()
        _drawn_from.setdefault(graph, {})
        _drawn_within(graph)
    except Exception as e:
        timing.off(e)


def _drawn_within(graph: Any) -> None:
    """If it is a function's that is handed no iterator, nobody sees how long it waits. What a dataset's map draws is the pipeline's."""
    made, is_function = timing.running(), False
    while getattr(graph, "outer_graph", None) is not None:
        if str(getattr(graph, "name", "")).startswith("Dataset"):
            return
        graph, is_function = graph.outer_graph, True
    if made is not None and is_function and getattr(timing.inside, "call", "") != "function":
        made.hidden = True


def _watch_epochs(module: Any) -> None:
    """A loop over a dataset within a tf.function is one operation, or several datasets that are reduced."""
    context, ops = (sys.modules["tensorflow.python." + name] for name in ("eager.context", "framework.ops"))
    real = module.reduce_dataset

    @functools.wraps(real)
    @shown.named
    def reduced(*args: Any, **kwargs: Any) -> Any:
        if not context.executing_eagerly():
            try:
                _drawn_within(ops.get_default_graph())
            except Exception as e:
                timing.off(e)
        return real(*args, **kwargs)

    module.reduce_dataset = reduced


def _rows_at(index: int, drawn: Any) -> int:
    """Rows of what was drawn, where the tensor that had them the last time may be a number, or missing: it may be another dataset's."""
    try:
        shape = drawn[index]._shape_tuple() if isinstance(drawn, (list, tuple)) else ()
        return int(shape[0]) if shape else 1
    except Exception:
        return 1


def _rows(drawn: Any, quick: Quick) -> Optional[int]:
    """Rows of a batch: the length of its first tensor that has one; None: it may have any."""
    quick.at = None
    if not isinstance(drawn, (list, tuple)):
        return None
    for index, tensor in enumerate(drawn):
        shape = tensor._shape_tuple()
        if shape:
            quick.at = index
            return int(shape[0])
    return 1


def _watch_functions(made: Meter) -> None:
    name = next(one for one in _FUNCTIONS if hasattr(sys.modules.get(one), "Function"))
    function = sys.modules[name].Function
    real = function.__call__
    quick, calls, clock, thread = made.quick["function"], made.quick["call"], meter.clock, threading.get_ident
    context = sys.modules["tensorflow.python.eager.context"]

    @functools.wraps(real)
    @shown.named
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = timing.running()
        if made is None or getattr(timing.inside, "call", False):
            return real(self, *args, **kwargs)
        began, name, of = clock(), "function", self
        if id(self) == quick.of and began < quick.until and thread() == quick.thread:
            return timing.quickly(quick, began, real, (self,) + args, kwargs)
        if not _handed_one(args):
            # it has been handed what it computes with; where the script reads is known from elsewhere, if it is
            if not context.executing_eagerly():
                return real(self, *args, **kwargs)
            if made.reads:
                return timing.within(made, real, (self,) + args, kwargs)
            if began < calls.until and thread() == calls.thread:
                return timing.quickly(calls, began, real, (self,) + args, kwargs)
            name, of = "call", None
        try:
            return timing.timed(
                made, name, of, real, (self,) + args, kwargs, iterator=_handed(args) if made.looks is not None else None
            )
        except BaseException as e:
            raise shown.cut(e)

    function.__call__ = call


def _handed_one(args: Sequence[Any]) -> bool:
    """Whether an iterator is among the arguments."""
    try:
        for value in args:
            if _iterators.get(type(value), True) and _is_iterator(value):
                return True
    except Exception:
        # a class that is no key, or has no name: it is the script's
        return False
    return False


def _handed(args: Sequence[Any]) -> Optional[int]:
    """id of the iterator that a function is handed, None: it is none that is known, or there are several."""
    try:
        found = [one for one in args if _iterators.get(type(one), True) and _is_iterator(one)]
        return id(found[0]._iterator_resource) if len(found) == 1 else None
    except Exception:
        # that of a strategy has one for each card
        return None


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    known = _iterators.get(kind)
    if known is None:
        known = _iterators[kind] = kind.__name__.endswith(("Iterator", "IteratorV2")) and kind.__module__.startswith(
            ("tensorflow.", "tensorflow_core.")
        )
    return known


def _watch_sessions(made: Meter) -> None:
    base = sys.modules["tensorflow.python.client.session"].BaseSession
    run, call = base.run, base._Callable.__call__
    quicks, clock, thread = made.quick, meter.clock, threading.get_ident

    @functools.wraps(run)
    @shown.named
    def run_watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = timing.running()
        name = _way_of_run(made, self, args, kwargs) if made is not None else None
        if made is None or name is None:
            return _run_apart(made, run, self, args, kwargs)
        _follows(made, name, self)
        graph, quick, began = self.graph, quicks[name], clock()
        if began < quick.until and id(graph) == quick.of and thread() == quick.thread:
            return timing.quickly(quick, began, run, (self,) + args, kwargs)
        try:
            return timing.timed(made, name, graph, run, (self,) + args, kwargs)
        except BaseException as e:
            raise shown.cut(e)

    @functools.wraps(call)
    @shown.named
    def call_watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = timing.running()
        name = _way_of_call(self, args) if made is not None else None
        if made is None or name is None:
            return call(self, *args, **kwargs)
        _follows(made, name, self)
        quick, began = quicks[name], clock()
        if began < quick.until and id(self) == quick.of and thread() == quick.thread:
            return timing.quickly(quick, began, call, (self,) + args, kwargs)
        try:
            return timing.timed(made, name, self, call, (self,) + args, kwargs)
        except BaseException as e:
            raise shown.cut(e)

    base.run, base._Callable.__call__ = run_watched, call_watched


@shown.named
def _run_apart(made: Optional[Meter], run: Callable[..., Any], session: Any, args: Any, kwargs: Any) -> Any:
    """What a run returns that is no step: nothing is made for the next one meanwhile."""
    apart = not getattr(timing.inside, "call", False) and not getattr(timing.inside, "spending", False)
    if made is None or not apart or "feed_dict" not in made.ways:
        return run(session, *args, **kwargs)
    began = meter.clock()
    try:
        return run(session, *args, **kwargs)
    finally:
        try:
            made.not_fed(meter.clock() - began)
        except Exception as e:
            timing.off(e)


def _follows(made: Any, name: str, session: Any) -> None:
    try:
        made.follows(session if name == "feed_dict" else None)
    except Exception as e:
        timing.off(e)


def _way_of_run(made: Any, session: Any, args: Any, kwargs: Any) -> Optional[str]:
    """In which way a run reads, None: in none."""
    try:
        feed = args[1] if len(args) > 1 else kwargs.get("feed_dict")
        if len(args) > 2 or kwargs.get("options") is not None:
            # it may have a trace of its own
            made.give_up()
        if getattr(timing.inside, "call", False) or getattr(timing.inside, "spending", False):
            return None
        fetches = args[0] if args else kwargs.get("fetches")
        known = _drawn_from.get(session.graph)
        # an initializer, a number of the graph's
        if known is not None and drawing.draws(known, fetches):
            return "session"
        handed = isinstance(feed, dict) and drawing.fed(feed.values()) and not drawing.begins(fetches, feed)
        return "feed_dict" if handed else None
    except Exception:
        # the session knows better what is wrong with what it is asked for
        return None


def _way_of_call(callable_: Any, args: Any) -> Optional[str]:
    """In which way what a session has made reads, None: in none. Keras of 1.15 hands arrays over so."""
    try:
        if getattr(timing.inside, "call", False):
            return None
        drawn = getattr(callable_._session, "graph", None) in _drawn_from
        return "session" if drawn else "feed_dict" if drawing.fed(args) else None
    except Exception as e:
        timing.off(e)
        return None
