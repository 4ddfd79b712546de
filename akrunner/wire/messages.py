"""The shape of each message's JSON: the sender makes a message by its shape, and the receiver checks it before it uses a field.

Further fields are ignored, as the other end may send more.
"""

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

from akrunner.wire import frames
from akrunner.wire.frames import WireError
from akrunner.wire.shapes import Amount, Count, Int64, Name, Number, Positive, Text, TypedDict, check, fits


class _LineFields(TypedDict):
    main: bool
    at: Text
    share: Amount


class _Line(_LineFields, total=False):
    computes: Amount


class _Stage(TypedDict):
    node: Text
    at: Text


def _is_line(value: Any) -> bool:
    # no class can declare a field that is called "in"
    return fits(value, _Line) and fits(value.get("in"), Text)


def _is_stage(value: Any) -> bool:
    return fits(value, _Stage) and all(any(fits(fact, kind) for kind in (bool, Text, Number)) for fact in value.values())


def _is_window(value: Any) -> bool:
    return fits(value, List[Amount]) and len(value) == 4


if TYPE_CHECKING:
    #: a line of Python and its share of the time; a node of a pipeline: its name, a line of the script, and any further facts
    Line = Dict[str, Any]
    Stage = Dict[str, Any]
    #: four times of a look at an input
    Window = List[float]
else:
    Line, Stage, Window = _is_line, _is_stage, _is_window


class Empty(TypedDict):
    """A message whose kind says all."""


class End(TypedDict):
    """The host has sent all rows. Attributes: shares: the rows of each fed task; splits: those of each split, task by task."""

    rows: Count
    total_rows: Count
    shares: List[Count]
    splits: List[List[Count]]


class Barrier(TypedDict):
    """A mark among the rows of a stream: a task that has been trained on the rows before it can save, and go on behind it. (A
    mark of Flink's checkpoints has no body.)

    Attributes:
        save: whether tasks that save do it here.
        place: the place in the stream behind the rows before the mark, as its source tells it.
    """

    save: bool
    place: Dict[str, Any]


class Hello(TypedDict):
    """A worker process is there. Attributes: version: that of the protocol."""

    version: Count
    pid: Count
    python: Text
    executable: Text


class Ready(TypedDict):
    """A task has its rows and has imported the script. Attributes: waited_ns: how long it has waited for the rows."""

    rows: Count
    waited_ns: Count


#: names that no metric has: those of what is kept of a report beside its metrics
TAKEN = ("task", "step", "time_ns")


class Report(TypedDict):
    """Metrics of the script."""

    metrics: Dict[Text, Number]
    step: Optional[Int64]
    time_ns: Count


class Reached(TypedDict):
    """How far `main` is (`akrunner.worker.reached`).

    Attributes:
        done: steps, batches or rows of this epoch that are done.
        total: of how many; None: not known.
        epoch: which epoch it is, from 1; 0: these are no epochs.
        epochs: how many there will be; None: not known.
    """

    done: Count
    total: Optional[Count]
    epoch: Count
    epochs: Optional[Count]


class Failure(TypedDict):
    """What a task has failed with (`akrunner.wire.failure`)."""

    type: Text
    message: Text
    traceback: Text
    phase: Text
    time_ns: Count


class _Node(TypedDict):
    path: Text
    own: Amount
    calls: Count


class Node(_Node, total=False):
    """One node of an input's trace."""

    of: Optional[Count]


class _Pipeline(TypedDict):
    nodes: List[Stage]
    passes: Count


class Pipeline(_Pipeline, total=False):
    """A dataset of the script.

    Attributes:
        passes: how many iterators over it have been drawn from.
        ended: how often one has come to its end.
        tunes: what its options leave to TensorFlow: maps, ahead.
        waited, filled: seconds that the script has waited for it, and those until its second iterator.
    """

    ended: Count
    tunes: List[Text]
    waited: Amount
    filled: Amount


class _Measured(TypedDict):
    asked: Count
    main: Amount
    lines: List[Line]
    looks: Count
    busy: Optional[Amount]
    cores: Count
    idle: Optional[Amount]
    by: Text
    batches: Count
    rows: Optional[Count]
    wait: Amount
    between: Amount
    outside: Amount
    first: Amount
    looked: Count
    known: bool
    hidden: bool
    elsewhere: bool
    unlooked: Amount
    look: Amount
    spent: Dict[Text, Amount]
    nodes: List[Node]
    windows: List[Window]
    pipelines: List[Pipeline]


class Input(_Measured, total=False):
    """What a task has measured of its input (`akrunner.worker.waits.meter.Meter.record`); some depends on the system."""

    calls: Dict[Text, Amount]
    python: Dict[Text, Amount]
    times: Dict[Text, Amount]
    early: Dict[Text, Amount]
    early_times: Dict[Text, Amount]
    within: Dict[Text, Amount]
    keeps: bool
    served: bool
    tensorflow: bool
    tunes: bool
    used: Optional[Amount]
    watched: Optional[Amount]
    disk: Optional[Count]
    given: Optional[Count]
    hindered: Text
    version: Text
    cards: Optional[bool]


class _Closed(TypedDict):
    ok: bool
    rows: Count
    rows_read: Count
    main_ns: Count
    output_blocked_ns: Count
    rows_dropped: Count
    rows_padded: Count
    notes: List[Text]


class Closed(_Closed, total=False):
    """The last word of a task (`akrunner.engines.supervision.states.LastWord`). Attributes: failure: there if it is not ok."""

    failure: Failure
    input: Input
    unasked: List[Text]
    asked: bool


class Left(TypedDict):
    """What the script has left behind."""

    notes: List[Text]


class Passed(TypedDict, total=False):
    """Flink's agent has passed rows on: both counts, or why it could not."""

    rows: Count
    bytes: Count
    lost: Text
    error: Text
    broken: Text


class _Passed(TypedDict):
    rows: Count
    bytes: Count


class Spare(TypedDict):
    """What a warm worker is kept for. Attributes: env: variables to set, None: to remove."""

    env: Dict[str, Optional[str]]
    cpus: List[Count]
    overlay: Name
    preload: List[Text]
    began_ns: Count
    temp: Name


class Offer(TypedDict):
    """The files that a job would give to a warm worker."""

    names: List[Name]


class Order(TypedDict):
    """A warm worker becomes a task."""

    env: Dict[str, Optional[str]]
    cwd: Name
    bundle: Name


class Waiting(TypedDict):
    """A warm worker waits. Attributes: seconds: since it began; alone: why it cannot be forked; "": it can."""

    seconds: Number
    alone: Text


class Answer(TypedDict):
    """A warm worker's answer to an offer. Attributes: why: why it does not take the job; "": it does."""

    why: Text
    stale: bool


class LookTable(TypedDict):
    """A script asks what a table is like."""

    request: Count
    table: Text


class ReadTable(TypedDict):
    """A script reads rows of a table."""

    request: Count
    table: Text
    columns: List[Text]
    start: Count
    stop: Count
    credits: Positive


class WriteTable(TypedDict):
    """A script writes a slice of a table. Attributes: process: the process that writes it."""

    request: Count
    table: Text
    slice: Count
    process: Text


class CloseTable(TypedDict):
    """A script is done with a table."""

    request: Count
    rows: Count
    whole: bool


class TakeWork(TypedDict):
    """A script takes work from a queue of the job."""

    request: Count
    queue: Text
    works: List[Text]
    digest: Text
    epochs: Optional[Count]
    shuffle: bool
    seed: Optional[Int64]
    slices: Optional[Count]


class TableColumn(TypedDict):
    """A column of a table. Attributes: type: its type in the store; dtype: on the wire; partition: whether it is a partition's."""

    name: Text
    type: Text
    dtype: Text
    partition: bool
    nullable: bool


class TableOpened(TypedDict):
    """A table is open. Attributes: replaces: the requests whose rows of the same slice do not count."""

    request: Count
    columns: List[TableColumn]
    start: Count
    rows: Count
    credits: Count
    replaces: List[Count]


class TableDone(TypedDict):
    """All rows of a table were read or written."""

    request: Count
    rows: Count


class TableFailed(TypedDict):
    """A request about a table has failed."""

    request: Count
    type: Text
    message: Text


class Work(TypedDict):
    """Work of a queue. Attributes: work: None: there is no more."""

    request: Count
    work: Optional[Text]


class More(TypedDict):
    """The receiver takes this many chunks more of a table's rows."""

    request: Count
    chunks: Positive


class Fork(TypedDict):
    """The host wants one more worker. Attributes: mark: what tells it from others."""

    mark: Text


class Forked(TypedDict):
    """There is one more worker. Attributes: why: why there is none; "": there is."""

    mark: Text
    pid: Count
    why: Text


class Ended(TypedDict):
    """A worker that was forked has ended."""

    mark: Text
    status: Count
    peak_rss: Count
    cpu_seconds: Number


#: kind of frame -> the shape of its JSON
SHAPES: Mapping[int, Any] = {
    frames.END: End,
    frames.START: Empty,
    frames.STOP: Empty,
    frames.BARRIER: Barrier,
    frames.HELLO: Hello,
    frames.OPENED: Empty,
    frames.READY: Ready,
    frames.ENTERED: Empty,
    frames.SERVING: Empty,
    frames.REPORT: Report,
    frames.REACHED: Reached,
    frames.REFUSED: Failure,
    frames.CLOSED: Closed,
    frames.PASSED: Passed,
    frames.LEFT: Left,
    frames.SPARE: Spare,
    frames.OFFER: Offer,
    frames.ORDER: Order,
    frames.WAITING: Waiting,
    frames.ANSWER: Answer,
    frames.LOOK_TABLE: LookTable,
    frames.READ_TABLE: ReadTable,
    frames.WRITE_TABLE: WriteTable,
    frames.CLOSE_TABLE: CloseTable,
    frames.TAKE_WORK: TakeWork,
    frames.TABLE_OPENED: TableOpened,
    frames.TABLE_DONE: TableDone,
    frames.TABLE_FAILED: TableFailed,
    frames.WORK: Work,
    frames.READ_MORE: More,
    frames.WRITE_MORE: More,
    frames.FORK: Fork,
    frames.FORKED: Forked,
    frames.ENDED: Ended,
}
#: the other kinds: the context, whose shape is in a module of its own; rows, and their splits; and what the header alone says
WITHOUT_SHAPE = frozenset({
    frames.CONTEXT, frames.DATA, frames.MARKS, frames.ROWS, frames.EXAMPLES, frames.COLUMNS, frames.TABLE_ROWS, frames.ADD_ROWS,
    frames.ANSWERED, frames.DUE,
})  # fmt: skip


def read(frame: frames.Frame) -> Any:
    """Return a message's body, checked against the shape of its kind: assign it to a variable of that type.

    Raises:
        WireError: a field is missing or does not fit, or frames of this kind are no messages.
    """
    kind = frame.kind
    if kind in WITHOUT_SHAPE:
        raise WireError("a %s frame is no message" % frames.NAMES[kind])
    body = frame.json()
    name = "%s message" % frames.NAMES[kind]
    if kind == frames.CLOSED and body.get("ok") is False and not isinstance(body.get("failure"), dict):
        raise WireError("a closed message does not say what failed")
    if kind == frames.PASSED and not {"lost", "error", "broken"}.intersection(body):
        check(name, body, _Passed)
    check(name, body, SHAPES[kind])
    return body
