"""Wraps the functions of TensorFlow and akrunner through which a script reads, so that the meter times their calls.

::

    for batch in dataset, next(iterator)       gen_dataset_ops.iterator_get_next..., eagerly
    Keras fit, a tf.function over an iterator  Function.__call__ with an iterator among its arguments
    a tf.function that is handed arrays        Function.__call__ without one: the time between the calls counts, as long as no
                                               other way of reading is known
    session.run, Estimators, Keras of 1.15     BaseSession.run, BaseSession._Callable.__call__
    task_config.batches()                      akrunner.worker.data, by `timing.batches`
    checkpoints, summaries                     the functions that save variables, and write events (`saves`)
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, MutableMapping, Optional, Sequence

from akrunner.worker.waits import drawing, fits, meter, naming, pipeline, python, saves, shown, timing, tracing
from akrunner.worker.waits.ways import is_end

if TYPE_CHECKING:
    from akrunner.worker.waits.meter import Meter
    from akrunner.worker.waits.ways import Quick

#: functions of gen_dataset_ops that draw from an iterator
_DRAWS = (
    "iterator_get_next",
    "iterator_get_next_sync",
    "iterator_get_next_as_optional",
    "multi_device_iterator_get_next_from_shard",
)
#: modules that may have the class of a tf.function
_FUNCTIONS = ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "tensorflow.python.eager.def_function")
#: graph with iterators from which a session may draw -> its operations, and whether they draw (`drawing.draws`)
_drawn_from: MutableMapping[Any, Dict[Any, Any]] = weakref.WeakKeyDictionary()
_iterators: Dict[type, bool] = {}


def install() -> None:
    """Watch TensorFlow, which has just been imported."""
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
        made.lines.also = _look_after
    except Exception as e:
        # this TensorFlow is built differently: nothing is measured
        timing.off(e)


def _watch_late() -> None:
    """Watch modules that are imported only when they are used, as Keras is. May be called again."""
    naming.leave_out()
    saves.watch()
    fits.watch()


def _look_after() -> None:
    """Watch what is imported by now, and tell the host how far the script is."""
    _watch_late()
    made = timing.running()
    if made is not None:
        made.tell()


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
                except BaseException as e:
                    quick.ends += is_end(e)
                    raise
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
    """Note that the graph being built draws from an iterator."""
    try:
        graph = ops.get_default_graph()
        _drawn_from.setdefault(graph, {})
        _drawn_within(graph)
    except Exception as e:
        timing.off(e)


def _drawn_within(graph: Any) -> None:
    """Note that a graph draws from an iterator.

    If the graph is a function's, and the function is not handed the iterator, its waiting cannot be timed: the meter notes that
    (`hidden`). If it is the graph of a dataset's map, drawing is a part of the pipeline, and is not noted.
    """
    made, is_function = timing.running(), False
    while getattr(graph, "outer_graph", None) is not None:
        if str(getattr(graph, "name", "")).startswith("Dataset"):
            return
        graph, is_function = graph.outer_graph, True
    if made is not None and is_function and getattr(timing.inside, "call", "") != "function":
        made.hidden = True


def _watch_epochs(module: Any) -> None:
    """Watch loops over a dataset within a tf.function: TensorFlow makes `reduce_dataset` operations of them."""
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
    """Return the rows of a batch: the length of its tensor at `index`, which had them the last time.

    Return 1 if that tensor is a scalar now, or missing: the batch may be another dataset's.
    """
    try:
        shape = drawn[index]._shape_tuple() if isinstance(drawn, (list, tuple)) else ()
        return int(shape[0]) if shape else 1
    except Exception:
        return 1


def _rows(drawn: Any, quick: Quick) -> Optional[int]:
    """Return the rows of a batch: the length of its first tensor that is not a scalar. Leave that tensor's index in `quick.at`.

    Return 1 if all tensors are scalars, and None if the number of rows is unknown.
    """
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
            # the function is handed its input; where the script reads that is known from elsewhere, if at all
            if not context.executing_eagerly():
                return real(self, *args, **kwargs)
            if made.reads:
                return timing.within(made, real, (self,) + args, kwargs)
            if began < calls.until and thread() == calls.thread:
                return timing.quickly(calls, began, real, (self,) + args, kwargs)
            name, of = "call", None
        try:
            return timing.timed(made, name, of, real, (self,) + args, kwargs, iterator=_handed(args))
        except BaseException as e:
            raise shown.cut(e)

    function.__call__ = call


def _handed_one(args: Sequence[Any]) -> bool:
    """Whether one of the arguments is an iterator."""
    try:
        for value in args:
            if _iterators.get(type(value), True) and _is_iterator(value):
                return True
    except Exception:
        # a class of the script that cannot be a dict's key, or has no name
        return False
    return False


def _handed(args: Sequence[Any]) -> Optional[int]:
    """Return the id of the iterator that a function is handed; None if there are several, or its resource is unknown."""
    try:
        found = [one for one in args if _iterators.get(type(one), True) and _is_iterator(one)]
        return id(found[0]._iterator_resource) if len(found) == 1 else None
    except Exception:
        # a distribution strategy's iterator has a resource for each card
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
    """Do a run that is not a step, and return its result. Its time is not counted as making the input of the next step."""
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
    """Return the way in which a run reads, "session" or "feed_dict"; None if it reads nothing."""
    try:
        feed = args[1] if len(args) > 1 else kwargs.get("feed_dict")
        if len(args) > 2 or kwargs.get("options") is not None:
            # the run's options may ask for a trace of its own
            made.give_up()
        if getattr(timing.inside, "call", False) or getattr(timing.inside, "spending", False):
            return None
        fetches = args[0] if args else kwargs.get("fetches")
        known = _drawn_from.get(session.graph)
        # a run that does not draw is, for example, an initializer, or reads a number of the graph
        if known is not None and drawing.draws(known, fetches):
            return "session"
        handed = isinstance(feed, dict) and drawing.is_fed(feed.values()) and not drawing.begins(fetches, feed)
        return "feed_dict" if handed else None
    except Exception:
        # wrong arguments: the session itself reports them better
        return None


def _way_of_call(callable_: Any, args: Any) -> Optional[str]:
    """Return the way in which a callable that a session has made reads, "session" or "feed_dict"; None if it reads nothing.

    Keras of TensorFlow 1.15 hands over arrays in this way.
    """
    try:
        if getattr(timing.inside, "call", False):
            return None
        drawn = getattr(callable_._session, "graph", None) in _drawn_from
        return "session" if drawn else "feed_dict" if drawing.is_fed(args) else None
    except Exception as e:
        timing.off(e)
        return None
