"""Keeps the lines of these modules out of TensorFlow's errors, which name the line of the script that made an operation."""

from __future__ import annotations

import sys
from typing import Any, FrozenSet, Sequence

from akrunner.worker.waits import pipeline, shown

#: modules of TensorFlow and Keras that keep their own lines out of errors
_SHORTEN = (
    "tensorflow.python.util.traceback_utils",
    "keras.src.utils.traceback_utils",
    "tf_keras.src.utils.traceback_utils",
    "keras.utils.traceback_utils",
)


def pass_over(functions: Sequence[Any]) -> None:
    """Have TensorFlow's errors skip akrunner's lines.

    Args:
        functions: functions of akrunner that stand between the script and TensorFlow: the lines of their files are skipped.
    """
    files = frozenset([shown.NAME, *(made.__code__.co_filename for made in functions)])
    errors = sys.modules.get("tensorflow.python.framework.error_interpolation")
    for name in ("_FRAMEWORK_PATH_PREFIXES", "_BAD_FILE_SUBSTRINGS"):
        passed_over = getattr(errors, name, None)
        if isinstance(passed_over, list):
            # the stack of an operation has paths without the first "/", too
            passed_over += [pipeline.HERE, pipeline.HERE.lstrip("/"), shown.NAME]
    # newer versions of TensorFlow show the whole stack in which an operation was made
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
    """Have modules of TensorFlow and Keras keep akrunner's lines out of errors, as they do with their own.

    Only modules that are imported by now are changed; call it again later.
    """
    for name in _SHORTEN:
        module: Any = sys.modules.get(name)
        paths = getattr(module, "_EXCLUDED_PATHS", None)
        if isinstance(paths, (list, tuple)) and shown.NAME not in paths:
            module._EXCLUDED_PATHS = type(paths)([*paths, shown.NAME])
