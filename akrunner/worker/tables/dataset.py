"""PAI's `TableRecordDataset`: a `tf.data.Dataset` of a table's rows.

::

    chunks of columns -> a generator of stretches of many rows -> unbatch, in TensorFlow: Python is not called for each row

If the first transformations are `shuffle`, `repeat` and `batch`, in a usual order (`batch` last), they are done with whole
columns in Python, before TensorFlow sees a row. All transformations after these are TensorFlow's own.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from akrunner.worker import chunks, tf_data
from akrunner.worker.tables.errors import NoSuchColumn, TableError
from akrunner.worker.tables.rows import READ_BY, Table, check_arguments, names_of, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _tensorflow() -> Any:
    import tensorflow

    return tensorflow


class _Default(object):
    """One of `record_defaults`.

    Attributes:
        dtype: TensorFlow's name of the type.
        value: the value that stands for a null, as a numpy scalar or bytes.
    """

    def __init__(self, tf: Any, given: Any) -> None:
        given = getattr(given, "numpy", lambda: given)()
        if tf.is_tensor(given):
            # in a graph, it must be a constant
            given = tf.get_static_value(given) if hasattr(tf, "get_static_value") else tf.contrib.util.constant_value(given)
        if isinstance(given, tf.DType):
            given = np.zeros((), given.as_numpy_dtype) if given != tf.string else b""
        while isinstance(given, (list, tuple)) and len(given):
            given = given[0]
        values = np.asarray(given)
        if values.size < 1:
            raise ValueError("record_defaults: %r has no value" % (given,))
        value = values.reshape(-1)[0]
        if values.dtype.kind in "SUO":
            self.dtype = "string"
            self.value = value.encode("utf-8") if isinstance(value, str) else bytes(value)
            return
        if not isinstance(given, (np.ndarray, np.generic)):
            # the type that TensorFlow gives a Python number
            value = np.asarray(value, {"i": np.int32, "f": np.float32}.get(values.dtype.kind, values.dtype))[()]
        self.dtype, self.value = value.dtype.name, value
        if self.dtype not in ("float32", "float64", "int32", "int64", "bool"):
            raise ValueError(
                "record_defaults: %r is %s; FLOAT32, FLOAT64, INT32, INT64, BOOL and STRING can be read" % (given, self.dtype)
            )


def _of_column(column: Dict[str, Any]) -> Any:
    """Return the default of a column for which the script gives none: a zero or an empty text of the column's own type."""
    return np.dtype(column["dtype"]).type(0) if column["dtype"] != "bytes" else b""


def fitting(
    table: str, column: Dict[str, Any], values: NDArray[Any], valid: Optional[NDArray[Any]], default: _Default
) -> NDArray[Any]:
    """Return a column as an array of its default's type; the default stands for nulls.

    Raises:
        TableError: the types do not fit.
    """
    if column["dtype"] == "bytes" or default.dtype == "string":
        if column["dtype"] != "bytes" or default.dtype != "string":
            raise _unfit(table, column, default)
        if valid is not None and not valid.all():
            values = values.copy()
            values[~valid] = default.value
        return values
    target = np.dtype(default.dtype)
    if values.dtype != target:
        if (values.dtype.kind == "f" and target.kind != "f") or (values.dtype.kind == "b") != (target.kind == "b"):
            raise _unfit(table, column, default)
        there = values if valid is None else values[valid]
        if target.kind == "i" and len(there) and values.dtype.kind in "iu":
            limits = np.iinfo(target)
            if there.max() > limits.max or there.min() < limits.min:
                beyond = there[(there > limits.max) | (there < limits.min)][0]
                raise TableError(
                    "table %s: column %r has the value %d, which %s of its record_defaults cannot hold; give np.int64(0)"
                    % (table, column["name"], beyond, default.dtype)
                )
        with np.errstate(over="ignore"):
            # a value beyond float32's range becomes infinite, as by TensorFlow's own cast
            values = values.astype(target)
    if valid is not None and not valid.all():
        values = np.where(valid, values, default.value).astype(target)
    return values


def _unfit(table: str, column: Dict[str, Any], default: _Default) -> TableError:
    return TableError(
        "table %s: column %r is %s, and its record_defaults are %s; give a default of its type"
        % (table, column["name"], column["type"], default.dtype)
    )


class _Source(object):
    """The columns and slice to read of each table; `chunks(name)` yields the rows of one table.

    Attributes:
        selected, excluded: names of columns to read, or to leave out.
        slice: (slice_id, slice_count).
        defaults: one for each column; empty until `look` if the script gives none.
    """

    def __init__(self, tf: Any, record_defaults: Any, selected: Any, excluded: Any, slice_id: int, slice_count: int) -> None:
        self.selected, self.excluded = names_of(selected), names_of(excluded)
        self.slice = slice_id, slice_count
        given = record_defaults
        if given is not None and not isinstance(given, (list, tuple)):
            given = list(given) if hasattr(given, "__iter__") and not isinstance(given, (str, bytes)) else [given]
        self.defaults = [_Default(tf, one) for one in given] if given else []
        if self.defaults and self.selected and len(self.defaults) != len(self.selected):
            raise ValueError(
                "TableRecordDataset: %d record_defaults for %d selected_cols (%s)"
                % (len(self.defaults), len(self.selected), ", ".join(self.selected))
            )
        if self.selected and self.excluded:
            raise ValueError("TableRecordDataset: give selected_cols or excluded_cols, not both")

    def look(self, tf: Any, names: Any) -> None:
        """Check the first table, if its name is known by now, so that errors are raised where the script makes the dataset.

        If the script gives no defaults, take those of the table's own types.
        """
        if isinstance(names, list) and names:
            columns = self.table(names[0]).columns
            self.defaults = self.defaults or [_Default(tf, _of_column(column)) for column in columns]
            for column, default in zip(columns, self.defaults):
                nothing = np.array([], object if column["dtype"] == "bytes" else column["dtype"])
                fitting(names[0], column, nothing, None, default)
        if not self.defaults:
            raise ValueError("TableRecordDataset needs record_defaults: names of tables that are not known yet say no types")

    def table(self, name: str) -> Table:
        table = Table(name, self.selected, self.excluded, *self.slice)
        if self.defaults and len(table.columns) != len(self.defaults):
            raise NoSuchColumn(
                "table %s: %d record_defaults for %d columns (%s); name those that are read by selected_cols"
                % (table.name, len(self.defaults), len(table.columns), ", ".join(column["name"] for column in table.columns))
            )
        return table

    def chunks(self, name: str) -> Iterator[Tuple[int, Dict[int, NDArray[Any]]]]:
        """Yield (number of rows, {number of the column: array}) of a table's chunks, in order."""
        table = self.table(name)
        for _, rows, columns in table.rows().chunks():
            yield (
                rows,
                {
                    at: fitting(table.name, column, *columns[column["name"]], default=default)
                    for at, (column, default) in enumerate(zip(table.columns, self.defaults))
                },
            )

    def types(self, tf: Any) -> Tuple[Any, ...]:
        return tuple(tf.as_dtype(default.dtype) for default in self.defaults)


class _Plan(object):
    """What is done with the rows before TensorFlow sees them: tables are read, rows shuffled, repeated, and put into batches.

    Attributes:
        source: reads a table.
        names: the names of the tables.
        steps: ("shuffle", rows, seed, anew) and ("repeat", count), in their order; anew yields the number of the pass, and is
            None if all passes have the same order.
        batch: (rows, whether only full batches are kept), or None.
    """

    def __init__(
        self,
        source: _Source,
        names: Iterable[str],
        steps: Tuple[Tuple[Any, ...], ...] = (),
        batch: Optional[Tuple[int, bool]] = None,
    ) -> None:
        self.source = source
        self.names = names
        self.steps = steps
        self.batch = batch

    def then(self, step: Tuple[Any, ...]) -> _Plan:
        return _Plan(self.source, self.names, self.steps + (step,), self.batch)

    def batched(self, rows: int, full: bool) -> _Plan:
        return _Plan(self.source, self.names, self.steps, (rows, full))

    def rows(self) -> Iterator[Tuple[int, Any]]:
        """Yield (number of rows, columns) of all passes."""
        # each step is a function that makes a new iterator, so that every pass begins anew
        make = self._once
        for step in self.steps:
            make = _repeated(make, step[1]) if step[0] == "repeat" else _shuffled(make, *step[1:])
        return make()

    def _once(self) -> Iterator[Tuple[int, Any]]:
        return itertools.chain.from_iterable(self.source.chunks(name) for name in self.names)

    def stretches(self) -> Iterator[Tuple[Any, ...]]:
        """Yield a tuple with an array for each column: of shape [rows], or [batches, rows of a batch]."""
        width = range(len(self.source.defaults))
        if self.batch is None:
            for rows, columns in self.rows():
                if rows:
                    yield tuple(columns[at] for at in width)
            return
        size, full = self.batch
        # the keys of the columns are their numbers, not their names
        batches: Iterator[Any] = chunks.stacks(self.rows(), size, full, chunks.ROWS_AT_ONCE)
        for columns in batches:
            yield tuple(columns[at] for at in width)


def _repeated(make: Callable[[], Iterator[Tuple[int, Any]]], count: Optional[int]) -> Callable[[], Iterator[Tuple[int, Any]]]:
    def run() -> Iterator[Tuple[int, Any]]:
        for _ in itertools.count() if count is None or count < 0 else range(count):
            some = False
            for chunk in make():
                some = some or chunk[0] > 0
                yield chunk
            if not some:
                return  # without rows, repeating would never end

    return run


def _shuffled(
    make: Callable[[], Iterator[Tuple[int, Any]]], rows: int, seed: Optional[int], anew: Optional[Iterator[int]]
) -> Callable[[], Iterator[Tuple[int, Any]]]:
    def run() -> Iterator[Tuple[int, Any]]:
        number = next(anew) if anew is not None else 0
        return chunks.shuffled(make(), max(1, rows), None if seed is None else (seed + number) % (1 << 32))

    return run


def _generated(tf: Any, make: Callable[..., Any], source: _Source, batch: Optional[Tuple[int, bool]], *args: Any) -> Any:
    """Return a dataset of the stretches of rows, or of batches, that a generator yields."""
    shape = [None] if batch is None else [None, batch[0] if batch[1] else None]
    dataset = tf_data.from_generator(make, tuple((dtype, shape) for dtype in source.types(tf)), args)
    return dataset


def _unbatched(tf: Any, dataset: Any, single: bool) -> Any:
    """Split a dataset's stretches into rows, or batches, in TensorFlow.

    `apply` is used because in TensorFlow 1 its result has the methods of TensorFlow 1's datasets, too.
    """
    if single:
        # TensorFlow up to 2.3 cannot unbatch a tuple of one element
        return dataset.flat_map(
            tf.autograph.experimental.do_not_convert(lambda *columns: tf.data.Dataset.from_tensor_slices(columns))
        )
    if hasattr(dataset, "unbatch"):
        return dataset.apply(lambda stretches: stretches.unbatch())
    return dataset.apply(tf.data.experimental.unbatch())


def _planned(plan: _Plan) -> Any:
    """Return the dataset of a plan."""
    tf = _tensorflow()
    dataset = tf_data.unsharded(
        _unbatched(tf, _generated(tf, plan.stretches, plan.source, plan.batch), len(plan.source.defaults) == 1)
    )
    return _with_plan(dataset, plan)


_classes: Dict[type, type] = {}


def _with_plan(dataset: Any, plan: Optional[_Plan]) -> Any:
    """Return the dataset with a plan.

    Its class is a subclass of its own class, whose `shuffle`, `repeat` and `batch` extend the plan as long as they can.
    """
    base = type(dataset)
    if base not in _classes:
        _classes[base] = type("TableRecordDataset", (_Table, base), {"__doc__": TableRecordDataset.__doc__})
    made: Any = object.__new__(_classes[base])
    vars(made).update(vars(dataset))
    made._plan = plan
    # keep the original dataset alive as long as this one
    made._made_of = dataset
    return made


class _Table(object):
    """The transformations of a table's dataset that are done with whole columns; same arguments as in `tf.data.Dataset`."""

    _plan: Optional[_Plan]

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: Optional[bool] = None, *args: Any, **kwargs: Any
    ) -> Any:
        size, number = _number(buffer_size), _number(seed)
        known = (seed is None or number is not None) and not args and not kwargs
        if not known or size is None or self._plan is None or self._plan.batch is not None or size < 1:
            return super(_Table, self).shuffle(buffer_size, seed, reshuffle_each_iteration, *args, **kwargs)  # type: ignore[misc]
        if number is None:
            number = _graph_seed(_tensorflow())
        return _planned(
            self._plan.then(("shuffle", size, number, None if reshuffle_each_iteration is False else itertools.count()))
        )

    def repeat(self, count: Any = None, *args: Any, **kwargs: Any) -> Any:
        number = -1 if count is None else _number(count)
        if number is None or self._plan is None or self._plan.batch is not None or args or kwargs:
            return super(_Table, self).repeat(count, *args, **kwargs)  # type: ignore[misc]
        return _planned(self._plan.then(("repeat", number)))

    def batch(self, batch_size: Any, drop_remainder: bool = False, *args: Any, **kwargs: Any) -> Any:
        size = _number(batch_size)
        known = drop_remainder in (True, False) and size is not None and size > 0
        if size is None or not known or self._plan is None or self._plan.batch is not None:
            return super(_Table, self).batch(batch_size, drop_remainder, *args, **kwargs)  # type: ignore[misc]
        return _planned(self._plan.batched(size, bool(drop_remainder)))


def _number(value: Any) -> Optional[int]:
    """Return a Python whole number, None if the value is not known yet (a tensor in a graph)."""
    try:
        return int(value) if isinstance(value, (int, np.integer)) else int(value.numpy())
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return None


def _graph_seed(tf: Any) -> Optional[int]:
    """Return the seed that `tf.set_random_seed` has set, None if there is none."""
    seed = tf.compat.v1.get_seed(None)[0]
    return None if seed is None else int(seed)


class _Instances(type):
    """Makes `isinstance(dataset, TableRecordDataset)` true for the datasets, whose classes are made from TensorFlow's own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Table) or type.__instancecheck__(cls, instance)


class TableRecordDataset(metaclass=_Instances):
    """Rows of tables, as tuples of scalars in the order of the columns.

    Args:
        filenames: the name of a table, or several names; also as a tensor, or as a dataset of names. All tables have the same
            schema.
        record_defaults: one value for each column, which gives the column's type (0: int32, np.int64(0): int64, 0.0: float32,
            np.float64(0): float64, "": string, False: bool), and stands for nulls.
        selected_cols: the columns to read, "a,b", in that order.
        excluded_cols: in place of selected_cols, the columns to leave out.
        slice_id, slice_count: read slice number slice_id, from 0, of slice_count slices of each table.
        num_threads, capacity: ignored.
    """

    def __new__(
        cls, filenames: Any, record_defaults: Any = None, selected_cols: Any = None, excluded_cols: Any = None,
        slice_id: int = 0, slice_count: int = 1, num_threads: int = 0, capacity: int = 0, **ignored: Any,
    ) -> Any:  # fmt: skip
        check_arguments("TableRecordDataset", ignored, "filenames record_defaults " + READ_BY)
        tf = _tensorflow()
        # for the dataset of a WorkQueue, Python takes the works, each one only when the one before it has been read
        names = getattr(filenames, "works_taken", None) or _static_names(tf, filenames)
        source = _Source(tf, record_defaults, selected_cols, excluded_cols, slice_id, slice_count)
        source.look(tf, names)
        if names is not None:
            return _planned(_Plan(source, names))
        if not isinstance(filenames, _dataset_types(tf)):
            filenames = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.convert_to_tensor(filenames), [-1]))

        def read(name: Any) -> Any:
            return _generated(tf, lambda text: _Plan(source, [text_of(text)]).stretches(), source, None, name)

        # AutoGraph cannot convert it, because its source is in a zip
        read = tf.autograph.experimental.do_not_convert(read)
        return _with_plan(tf_data.unsharded(_unbatched(tf, filenames.flat_map(read), len(source.defaults) == 1)), None)


def _dataset_types(tf: Any) -> Tuple[type, ...]:
    return tuple({tf.data.Dataset, tf.compat.v1.data.Dataset, getattr(tf.compat, "v2", tf).data.Dataset})


def _static_names(tf: Any, filenames: Any) -> Optional[List[str]]:
    """Return the names of the tables if they are known by now, otherwise None."""
    if isinstance(filenames, _dataset_types(tf)):
        return None
    if tf.is_tensor(filenames) or (isinstance(filenames, (list, tuple)) and any(map(tf.is_tensor, filenames))):
        if not hasattr(filenames, "numpy"):
            return None
        try:
            filenames = filenames.numpy()
        except (AttributeError, NotImplementedError):
            return None
    if isinstance(filenames, (str, bytes)):
        filenames = [filenames]
    return [text_of(name) for name in np.asarray(filenames, dtype=object).reshape(-1).tolist()]
