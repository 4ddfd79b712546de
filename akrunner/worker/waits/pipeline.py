"""The script's datasets: the kind of each, its settings, and the line of the script that made it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, MutableMapping, Optional, Tuple

from akrunner.worker.reading import DOES, ROWS
from akrunner.worker.waits import shown

if TYPE_CHECKING:
    from types import FrameType

    from akrunner.worker.waits.meter import Meter

_AT = "_akrunner_at"
#: attribute of a map: the call of another name that made it, "" for none
_BY = "_akrunner_by"
#: the directory of Python's own modules (runpy, threading), wherever Python is installed
_STDLIB = os.path.dirname(os.path.abspath(str(os.__file__))) + os.sep
#: how many pipelines are kept; how many frames are searched for the script's line
_MOST = 8
_DEEPEST = 40
_NAME = r"^_?(?P<name>.*?)Dataset(V\d)?$"
#: operations of a map's function that call Python, and so need Python's lock; those that decode something, or resize images
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_DECODES = ("Decode", "ResizeBilinear", "ResizeArea", "ResizeBicubic", "ResizeNearestNeighbor")
#: of the operations that decode, those that take a row's bytes or text apart, and not an image
_SPLITS = (
    "DecodeCSV",
    "DecodeRaw",
    "DecodePaddedRaw",
    "DecodeBase64",
    "DecodeJSONExample",
    "DecodeProto",
    "StringSplit",
    "StringToNumber",
)
#: operations whose names begin with one of these give another result each time
_RANDOM = (
    "Random",
    "StatelessRandom",
    "StatefulUniform",
    "StatefulStandardNormal",
    "StatefulTruncated",
    "TruncatedNormal",
    "Parameterized",
    "Multinomial",
)
#: operations that call functions of the graph
CALLS = (
    "PartitionedCall",
    "StatefulPartitionedCall",
    "RemoteCall",
    "If",
    "While",
    "Case",
    "StatelessIf",
    "StatelessWhile",
    "StatelessCase",
)
#: operations that only rearrange their inputs, or compute each number by itself: training on the result takes longer than
#: they do. Loops, products of matrices and images are not among them
_LIGHT = set(
    "Placeholder _Arg _Retval Const NoOp Identity IdentityN EnsureShape PartitionedCall StatefulPartitionedCall "
    "Cast Bitcast Pack Unpack ConcatV2 Reshape Squeeze ExpandDims Shape StridedSlice Slice Split SplitV GatherV2 DecodeRaw "
    "ZerosLike OnesLike Add AddV2 Sub Mul RealDiv FloorDiv FloorMod Neg Abs Square Sqrt Rsqrt Exp Log Log1p Maximum Minimum "
    "ClipByValue Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalNot IsNan IsFinite Select "
    "SelectV2".split()
)
_MAPS = ("Map", "ParallelMap")
#: datasets that give as many batches, of as many rows, as what they are made of
_AS_MANY = (
    *_MAPS,
    "Prefetch",
    "Options",
    "Shuffle",
    "Cache",
    "Model",
    "Optimize",
    "MaxIntraOpParallelism",
    "PrivateThreadPool",
)
#: (the rows of one epoch, its epochs or None for endless, its batches in all or None)
Size = Tuple[int, Optional[int], Optional[int]]
#: the beginning of the paths of these modules' files
HERE = os.path.join(shown.OURS, "worker", "waits", "")
#: the beginnings of the paths of akrunner's, these modules' and TensorFlow's files
_here = {"ours": shown.OURS, "waits": HERE, "tensorflow": ""}
#: graph of a function that returns a dataset (for interleave, flat_map) -> the nodes of the last dataset that was made in it
_inner: MutableMapping[Any, List[Dict[str, Any]]] = weakref.WeakKeyDictionary()


def install(meter: Meter) -> None:
    """Have every dataset remember the script's line that made it, and every iterator report its pipeline to the meter."""
    _here["tensorflow"] = os.path.dirname(str(sys.modules["tensorflow.python"].__file__)) + os.sep
    meter.version = str(sys.modules["tensorflow"].__version__)
    meter.tunes = tunes(meter.version)
    module = sys.modules["tensorflow.python.data.ops.dataset_ops"]
    base = module.DatasetV2
    real = base.__init__

    @shown.named
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _remember(meter, self)
        real(self, *args, **kwargs)
        _keep_inner(meter, self)

    base.__init__ = init
    iterators = sys.modules["tensorflow.python.data.ops.iterator_ops"]
    owned = getattr(iterators, "OwnedIterator", None) or iterators.IteratorV2
    _watch(owned, "_create_iterator", meter, first=True)
    for name in ("_make_one_shot_iterator", "_make_initializable_iterator"):
        _watch(module.DatasetV1, name, meter)


def _remember(meter: Meter, dataset: Any) -> None:
    """Remember on which line a dataset is made."""
    try:
        vars(dataset)[_AT] = at(3)
        if _kind(dataset) in _MAPS:
            vars(dataset)[_BY] = made_by(3)
    except Exception as e:
        # the dataset's class has no dictionary; or the temp directory is gone
        meter.say_failed(e)


def _keep_inner(meter: Meter, dataset: Any) -> None:
    """Remember the nodes of a dataset that is made in the function of an interleave, as it cannot be found afterwards."""
    try:
        if sys.modules["tensorflow.python.eager.context"].executing_eagerly():
            return
        graph = sys.modules["tensorflow.python.framework.ops"].get_default_graph()
        if getattr(graph, "outer_graph", None) is not None:
            _inner[graph] = chain(dataset)
    except Exception as e:
        # a dataset of an unknown kind
        meter.say_failed(e)


def _watch(kind: Any, name: str, meter: Meter, first: bool = False) -> None:
    real = getattr(kind, name)

    @shown.named
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        dataset = args[0] if first and args else kwargs.get("dataset", self)
        place = tell(meter, dataset)
        made = real(self, *args, **kwargs)
        if first:
            _draws_from(meter, self, place, dataset)
        return made

    setattr(kind, name, make)


def _draws_from(meter: Meter, iterator: Any, place: Optional[int], dataset: Any) -> None:
    try:
        meter.draws_from(id(iterator._iterator_resource), place, size_of(dataset))
    except Exception as e:
        # an unknown version of TensorFlow: it is not known from which pipeline a batch comes
        meter.say_failed(e)


def tunes(version: str) -> bool:
    """Whether a version of TensorFlow runs maps in parallel and makes batches ahead by itself, if the script does not say so.

    2.6 was the first to do it.
    """
    found = [int(part) for part in version.split(".")[:2]]
    return found >= [2, 6]


def left_on(dataset: Any) -> List[str]:
    """Return what a dataset's options leave to TensorFlow: "maps" (run in parallel), "ahead" (batches made ahead).

    If the options switch TensorFlow's tuner off, it does neither.
    """
    options: Any = getattr(dataset, "_options_attr", None)
    tuner, rewrites = (getattr(options, name, None) for name in ("autotune", "experimental_optimization"))
    wholly = ((tuner, "enabled"), (rewrites, "autotune"), (rewrites, "apply_default_optimizations"))
    if any(getattr(holder, name, None) is False for holder, name in wholly):
        return []
    each = (("maps", "map_parallelization"), ("ahead", "inject_prefetch"))
    return [what for what, name in each if getattr(rewrites, name, None) is not False]


def at(above: int = 2) -> Tuple[str, bool]:
    """Find the line of the script that makes something now.

    Args:
        above: how many frames above this one belong to these modules.
    Returns:
        "file:line", "" if the script does not make it itself, such as the dataset that Keras makes of arrays; and whether
        `task_config` makes it for the script.
    """
    frame: Optional[FrameType] = sys._getframe(above)
    ours = False
    for _ in range(_DEEPEST):
        if frame is None:
            break
        name = frame.f_code.co_filename
        if is_script(name):
            return "%s:%d" % (name, frame.f_lineno), ours
        ours = ours or (name.startswith(_here["ours"]) and not name.startswith(_here["waits"]))
        if _is_of_arrays(frame):
            break
        frame = frame.f_back
    return "", ours


def made_by(above: int = 2) -> str:
    """Find the call of TensorFlow or Keras that makes a map for purposes of its own, as `unbatch` does.

    Args:
        above: how many frames above this one belong to these modules.
    Returns:
        Its name; "" if the map is made by a call of `map`.
    """
    frame: Optional[FrameType] = sys._getframe(above)
    datasets = _here["tensorflow"] + "data" + os.sep
    outermost = ""
    for _ in range(_DEEPEST):
        if frame is None:
            break
        path, name = frame.f_code.co_filename, frame.f_code.co_name.lstrip("_")
        keras = "keras" in path and not is_script(path)
        if not keras and path != shown.NAME and not path.startswith((_here["tensorflow"], _STDLIB)):
            break
        if (keras or path.startswith(datasets)) and name not in ("init__", "apply", "apply_fn"):
            outermost = name
        frame = frame.f_back
    return "" if outermost in ("map", "map_with_legacy_function") else outermost


def _is_of_arrays(frame: FrameType) -> bool:
    """Whether a frame belongs to Keras's own pipeline over arrays in memory, which the user cannot change."""
    name = frame.f_code.co_filename
    if "keras" not in name or "data_adapter" not in name:
        return False
    older = type(frame.f_locals.get("self")).__name__ == "TensorLikeDataAdapter"
    return older or os.path.basename(name) == "array_data_adapter.py"


def is_script(name: str) -> bool:
    """Whether a file of code is the script's own: not Python's, TensorFlow's or akrunner's, nor of an installed package."""
    if name == shown.MAIN or name.startswith(_STDLIB):
        return False
    # AutoGraph writes the code that it makes of a function into the temp directory
    made = os.path.dirname(name) == tempfile.gettempdir()
    foreign = made or "site-packages" in name or "/lib/python" in name or name.startswith("<")
    return not (foreign or name.startswith(_here["ours"]) or (_here["tensorflow"] and name.startswith(_here["tensorflow"])))


def tell(meter: Meter, dataset: Any) -> Optional[int]:
    """Report to the meter that an iterator over a dataset is about to be made.

    Returns:
        The index of its pipeline among the meter's, None if it is not among them.
    """
    try:
        meter.keeps = keeps()
        found = chain(dataset)
        for place, one in enumerate(meter.pipelines):
            if one["nodes"] == found:
                if one["passes"] == 1:
                    meter.pass_done(place)
                one["passes"] += 1
                return place
        if len(meter.pipelines) < _MOST:
            meter.pipelines.append({"nodes": found, "passes": 1, "tunes": left_on(dataset) if meter.tunes else []})
            return len(meter.pipelines) - 1
    except Exception as e:
        # a dataset of an unknown kind
        meter.say_failed(e)
    return None


def chain(dataset: Any) -> List[Dict[str, Any]]:
    """Return the nodes of a dataset, the outermost first: [{"node", "at", ...}].

    The nodes of several inputs come one after another. "depth" is the number of functions returning datasets that a node is
    made in.
    """
    found: List[Dict[str, Any]] = []
    waiting, looks = [dataset], 0
    while waiting and len(found) < 64 and looks < 256:
        looks += 1
        one = waiting.pop(0)
        inner = getattr(one, "_dataset", None)
        if type(one).__name__ == "DatasetV1Adapter" and inner is not None:
            waiting.insert(0, inner)
            continue
        found.append(described(one))
        found += [dict(node, depth=node.get("depth", 0) + 1) for node in _within(one)]
        waiting = list(one._inputs()) + waiting
    return found


def size_of(dataset: Any) -> Optional[Size]:
    """Return how many rows and batches a dataset has, if akrunner has made it, or what it is made of; None: not known."""
    try:
        one: Any = dataset
        for _ in range(_DEEPEST):
            found: Optional[Size] = vars(one).get(ROWS)
            if found is not None:
                return found
            inner = getattr(one, "_dataset", None) if type(one).__name__ == "DatasetV1Adapter" else None
            below = one._inputs() if inner is None else [inner]
            if len(below) != 1 or (inner is None and _kind(one) not in _AS_MANY):
                return None
            one = below[0]
    except Exception:
        # a dataset of an unknown kind
        return None
    return None


def _within(dataset: Any) -> List[Dict[str, Any]]:
    """Return the nodes of the datasets that a dataset's function returns."""
    function = getattr(dataset, "_map_func", None)
    graph = None if function is None else _graph(function)[1]
    return [] if graph is None else _inner.get(graph, [])


def _kind(dataset: Any) -> str:
    match = re.match(_NAME, type(dataset).__name__)
    return match.group("name") if match else type(dataset).__name__


def described(dataset: Any) -> Dict[str, Any]:
    """Return the facts about one node, as JSON values."""
    where, ours = vars(dataset).get(_AT, ("", False))
    told = {"node": _kind(dataset), "at": where}
    if ours:
        told["ours"] = True
    if vars(dataset).get(_BY):
        told["made_by"] = vars(dataset)[_BY]
    for name, attribute in (
        ("buffer", "_buffer_size"),
        ("rows", "_batch_size"),
        ("parallel", "_num_parallel_calls"),
        ("cycle", "_cycle_length"),
        ("count", "_count"),
    ):
        number = _number(getattr(dataset, attribute, None))
        if number is not None:
            told[name] = number
    if str(getattr(dataset, "_deterministic", "")).lower() == "false":
        told["unordered"] = True
    if told["node"] == "Cache" and _text(getattr(dataset, "_filename", None)):
        told["file"] = True
    function = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    if function is not None:
        told.update(_function(function))
    # datasets of akrunner's own carry more facts: that images are augmented, and whether they are resized
    told.update(dict.fromkeys(vars(dataset).get(DOES, ()), True))
    if told.get("python") and told["node"] in _MAPS:
        # no map of akrunner's own calls Python: the script has given this function, by map=
        told.pop("ours", None)
    return told


def keeps() -> bool:
    """Whether all iterators over a dataset share what `.cache()` holds in memory.

    With the behaviour of TensorFlow 1, each iterator fills a cache of its own.
    """
    behaviour = sys.modules.get("tensorflow.python.tf2") or sys.modules["tensorflow_core.python.tf2"]
    if not behaviour.enabled():
        return False
    eager = sys.modules["tensorflow.python.eager.context"].executing_eagerly()
    return bool(eager or sys.modules["tensorflow.python.framework.ops"].get_default_graph().building_function)


def _number(value: Any) -> Optional[int]:
    """Return a constant tensor's number; None if it is not constant."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if hasattr(value, "numpy"):
        return int(value.numpy())
    constant = sys.modules["tensorflow.python.framework.tensor_util"].constant_value(value)
    return None if constant is None else int(constant)


def _text(value: Any) -> Any:
    """Return a constant tensor's text; b"" if it is not constant."""
    constant = sys.modules["tensorflow.python.framework.tensor_util"].constant_value(value) if value is not None else None
    return b"" if constant is None else constant.item() if hasattr(constant, "item") else constant


def _graph(function: Any) -> Tuple[Any, Any]:
    """Return TensorFlow's object for a dataset's function, and its graph; None for either if there is none."""
    made = getattr(function, "function", None) or getattr(function, "_function", None)
    return made, getattr(made, "graph", None)


def _function(function: Any) -> Dict[str, Any]:
    """Return what a map's function does, as far as the names of its operations tell."""
    made, graph = _graph(function)
    stateful = False
    if graph is not None:
        kinds = [op.type for op in graph.get_operations()]
        stateful = any(op.op_def.is_stateful for op in graph.get_operations())
        if any(kind in CALLS for kind in kinds):
            # the operations of a called tf.function, or of a branch, are in the graph's library
            inner = graph.as_graph_def().library.function
            kinds += [node.op for one in inner for node in one.node_def]
    else:
        definition = getattr(made, "definition", None)
        kinds = [node.op for node in definition.node_def] if definition is not None else []
    told = {"ops": len(kinds)}
    if stateful:
        # TensorFlow does not, by itself, run several calls of a stateful function at once
        told["stateful"] = True
    if any(kind in _PYTHON for kind in kinds):
        told["python"] = True
    if any(kind.startswith(_SPLITS) for kind in kinds):
        told["splits"] = True
    if any(kind.startswith(_DECODES) and not kind.startswith(_SPLITS) for kind in kinds):
        told["decodes"] = True
    if any(kind.startswith(_RANDOM) for kind in kinds):
        told["random"] = True
    if "ReadFile" in kinds:
        told["reads"] = True
    if any(kind.startswith("ParseExample") for kind in kinds):
        told["parses"] = True
    if all(kind in _LIGHT or kind.startswith("ParseExample") for kind in kinds):
        told["light"] = True
    return told
