"""TensorFlow's errors name the line of the script an operation was made on: these modules are no script."""

from __future__ import annotations

import sys
from typing import Any, FrozenSet, Sequence

from akrunner.worker.waits import pipeline, shown

#: modules of TensorFlow and Keras that leave their own lines out of errors
_SHORTEN = (
    "tensorflow.python.util.traceback_utils",
    "keras.src.utils.traceback_utils",
    "tf_keras.src.utils.traceback_utils",
    "keras.utils.traceback_utils",
)


def pass_over(functions: Sequence[Any]) -> None:
    """Have them name none of our lines. Args: functions: of files that stand between the script and TensorFlow."""
    files = frozenset([shown.NAME, *(made.__code__.co_filename for made in functions)])
    errors = sys.modules.get("tensorflow.python.framework.error_interpolation")
    for name in ("_FRAMEWORK_PATH_PREFIXES", "_BAD_FILE_SUBSTRINGS"):
        passed_over = getattr(errors, name, None)
        if isinstance(passed_over, list):
            # as the stack of an operation has it, too: without the first "/"
            passed_over += [pipeline.HERE, pipeline.HERE.lstrip("/"), shown.NAME]
    # newer ones show the whole stack an operation was made in
    stacks = sys.modules.get("tensorflow.python.util.tf_stack")
    filters: Any = getattr(stacks, "_source_filter_stacks", None)
    kind: Any = getattr(stacks, "SentinelFilter", None)
    if not hasattr(filters, "default_factory") or not hasattr(kind, "get_filtered_filenames"):
        return

    class Ours(kind):
        def get_filtered_filenames(self) -> FrozenSet[str]:
            return files

    def outermost() -> Any:
        made = Ours()
        made.update()
        return made

    filters.default_factory = lambda: [outermost()]
    for stack in filters.values():
        if type(stack[0]) is kind:
            stack[0] = outermost()


def leave_out() -> None:
    """Have modules of TensorFlow and Keras leave our lines out, as they do with theirs: those that are there by now. Called again."""
    for name in _SHORTEN:
        module: Any = sys.modules.get(name)
        paths = getattr(module, "_EXCLUDED_PATHS", None)
        if isinstance(paths, (list, tuple)) and shown.NAME not in paths:
            module._EXCLUDED_PATHS = type(paths)([*paths, shown.NAME])
