"""The script's datasets: what each is, what it was told, and on which line of the script it was made."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, MutableMapping, Optional, Tuple

from akrunner.worker.reading import DOES
from akrunner.worker.waits import shown

if TYPE_CHECKING:
    from types import FrameType

    from akrunner.worker.waits.meter import Meter

_AT = "_akrunner_at"
#: where Python's own modules are (runpy, threading), wherever it is installed
_STDLIB = os.path.dirname(os.path.abspath(str(os.__file__))) + os.sep
_MOST = 8
_DEEPEST = 40
_NAME = re.compile(r"^_?(?P<name>.*?)Dataset(V\d)?$")
#: operations of a map's function that hold up Python's lock, decode, and read
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_DECODES = ("Decode", "ResizeBilinear", "ResizeArea", "ResizeBicubic", "ResizeNearestNeighbor")
#: of the first, those that take a row's bytes or text apart, and no image
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
#: operations whose names begin so give something else each time
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
#: operations that call functions
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
#: operations that only put together what is there, or do something with each of its numbers: training on them takes longer. A loop, a product or a picture is none of them
_LIGHT = set(
    "Placeholder _Arg _Retval Const NoOp Identity IdentityN EnsureShape PartitionedCall StatefulPartitionedCall "
    "Cast Bitcast Pack Unpack ConcatV2 Reshape Squeeze ExpandDims Shape StridedSlice Slice Split SplitV GatherV2 DecodeRaw ZerosLike OnesLike "
    "Add AddV2 Sub Mul RealDiv FloorDiv FloorMod Neg Abs Square Sqrt Rsqrt Exp Log Log1p Maximum Minimum ClipByValue "
    "Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalNot IsNan IsFinite Select SelectV2".split()
)
#: what the files of these modules begin with
HERE = os.path.join(shown.OURS, "worker", "waits", "")
#: of other code
_here = {"ours": shown.OURS, "waits": HERE, "tensorflow": ""}
#: graph of a function that gives a dataset (of interleave, flat_map) -> the nodes of the last dataset that was made in it
_inner: MutableMapping[Any, List[Dict[str, Any]]] = weakref.WeakKeyDictionary()


def install(meter: Meter) -> None:
    """Have every dataset remember its line, and every iterator tell the meter its pipeline."""
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
    """Where it is made."""
    try:
        vars(dataset)[_AT] = at(3)
    except Exception as e:
        # of a class without a dictionary; or there is no temp directory any more
        meter.say_failed(e)


def _keep_inner(meter: Meter, dataset: Any) -> None:
    """Remember what a dataset is that is made in the function of an interleave: nobody sees it afterwards."""
    try:
        if sys.modules["tensorflow.python.eager.context"].executing_eagerly():
            return
        graph = sys.modules["tensorflow.python.framework.ops"].get_default_graph()
        if getattr(graph, "outer_graph", None) is not None:
            _inner[graph] = chain(dataset)
    except Exception as e:
        # a dataset of another kind: nobody knows what is in it
        meter.say_failed(e)


def _watch(kind: Any, name: str, meter: Meter, first: bool = False) -> None:
    real = getattr(kind, name)

    @shown.named
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = tell(meter, args[0] if first and args else kwargs.get("dataset", self))
        made = real(self, *args, **kwargs)
        if first:
            _draws_from(meter, self, place)
        return made

    setattr(kind, name, make)


def _draws_from(meter: Meter, iterator: Any, place: Optional[int]) -> None:
    try:
        meter.draws_from(id(iterator._iterator_resource), place)
    except Exception as e:
        # of another TensorFlow: it is not known from which of them a batch comes
        meter.say_failed(e)


def tunes(version: str) -> bool:
    """Whether that TensorFlow runs maps in parallel, and makes batches ahead, where the script has not said so: 2.6 was the first, others may not."""
    found = [int(part) for part in version.split(".")[:2]]
    return found >= [2, 6]


def left_on(dataset: Any) -> List[str]:
    """What of that a dataset's own options leave to TensorFlow: maps (in parallel), ahead (batches). Without its tuner it does neither."""
    options: Any = getattr(dataset, "_options_attr", None)
    tuner, rewrites = (getattr(options, name, None) for name in ("autotune", "experimental_optimization"))
    wholly = ((tuner, "enabled"), (rewrites, "autotune"), (rewrites, "apply_default_optimizations"))
    if any(getattr(holder, name, None) is False for holder, name in wholly):
        return []
    each = (("maps", "map_parallelization"), ("ahead", "inject_prefetch"))
    return [what for what, name in each if getattr(rewrites, name, None) is not False]


def at(above: int = 2) -> Tuple[str, bool]:
    """(file and line of the script that makes something now, "" where it is none of the script's, as what Keras makes of arrays is; whether what makes it is
    `task_config`). Args: above: callers that are ours."""
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


def _is_of_arrays(frame: FrameType) -> bool:
    """Whether it is Keras's own pipeline over arrays in memory, which nobody can change."""
    name = frame.f_code.co_filename
    if "keras" not in name or "data_adapter" not in name:
        return False
    older = type(frame.f_locals.get("self")).__name__ == "TensorLikeDataAdapter"
    return older or os.path.basename(name) == "array_data_adapter.py"


def is_script(name: str) -> bool:
    """Whether a file of code is the script's own: not Python's, TensorFlow's, ours, nor anything that is installed."""
    if name == shown.MAIN or name.startswith(_STDLIB):
        return False
    # AutoGraph writes what it makes of a function into the temp directory
    made = os.path.dirname(name) == tempfile.gettempdir()
    foreign = made or "site-packages" in name or "/lib/python" in name or name.startswith("<")
    return not (foreign or name.startswith(_here["ours"]) or (_here["tensorflow"] and name.startswith(_here["tensorflow"])))


def tell(meter: Meter, dataset: Any) -> Optional[int]:
    """An iterator over a dataset is about to be made. Returns: its pipeline's place among the meter's, None: it has none."""
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
        # a dataset of another kind: nobody knows what is in it
        meter.say_failed(e)
    return None


def chain(dataset: Any) -> List[Dict[str, Any]]:
    """The nodes of a dataset, the outermost first: [{"node", "at", ...}]; of several inputs all, one after another; "depth": in so many functions that
    give datasets."""
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


def _within(dataset: Any) -> List[Dict[str, Any]]:
    """The nodes of the datasets that a dataset's function gives."""
    function = getattr(dataset, "_map_func", None)
    graph = None if function is None else _graph(function)[1]
    return [] if graph is None else _inner.get(graph, [])


def described(dataset: Any) -> Dict[str, Any]:
    """One node, as facts."""
    match = _NAME.match(type(dataset).__name__)
    where, ours = vars(dataset).get(_AT, ("", False))
    told = {"node": match.group("name") if match else type(dataset).__name__, "at": where}
    if ours:
        told["ours"] = True
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
    # what we have made ourselves says more: that images are augmented, and whether they are resized
    told.update(dict.fromkeys(vars(dataset).get(DOES, ()), True))
    if told.get("python") and told["node"] in ("Map", "ParallelMap"):
        # no map of ours calls Python: the script has given it, by map=
        told.pop("ours", None)
    return told


def keeps() -> bool:
    """Whether what `.cache()` holds in memory serves every iterator over the dataset: with TensorFlow 1's behaviour each fills one of its own."""
    behaviour = sys.modules.get("tensorflow.python.tf2") or sys.modules["tensorflow_core.python.tf2"]
    if not behaviour.enabled():
        return False
    eager = sys.modules["tensorflow.python.eager.context"].executing_eagerly()
    return bool(eager or sys.modules["tensorflow.python.framework.ops"].get_default_graph().building_function)


def _number(value: Any) -> Optional[int]:
    """Of a constant tensor, None: it is none."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if hasattr(value, "numpy"):
        return int(value.numpy())
    constant = sys.modules["tensorflow.python.framework.tensor_util"].constant_value(value)
    return None if constant is None else int(constant)


def _text(value: Any) -> Any:
    """Of a constant tensor of text, b"": it is none."""
    constant = sys.modules["tensorflow.python.framework.tensor_util"].constant_value(value) if value is not None else None
    return b"" if constant is None else constant.item() if hasattr(constant, "item") else constant


def _graph(function: Any) -> Tuple[Any, Any]:
    """Of a dataset's function: what TensorFlow made of it, and its graph, None: it has none."""
    made = getattr(function, "function", None) or getattr(function, "_function", None)
    return made, getattr(made, "graph", None)


def _function(function: Any) -> Dict[str, Any]:
    """What a map's function does, as far as the names of its operations tell."""
    made, graph = _graph(function)
    stateful = False
    if graph is not None:
        kinds = [op.type for op in graph.get_operations()]
        stateful = any(op.op_def.is_stateful for op in graph.get_operations())
        if any(kind in CALLS for kind in kinds):
            # a tf.function, or a branch: what they do is there, too
            inner = graph.as_graph_def().library.function
            kinds += [node.op for one in inner for node in one.node_def]
    else:
        definition = getattr(made, "definition", None)
        kinds = [node.op for node in definition.node_def] if definition is not None else []
    told = {"ops": len(kinds)}
    if stateful:
        # no TensorFlow runs several calls of it at once by itself
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
