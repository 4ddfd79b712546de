"""What a script of PAI-TensorFlow expects beside its tables: its flags, the module path, and that flags nobody defined do no harm."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Sequence

from akrunner.wire.context import Context, TFConfig
from akrunner.worker import imports, oss_paths

_FLAGS_MODULE = "absl.flags._flagvalues"
#: given to every script, whether it defines them or not
_PAIS = ("tables", "outputs", "buckets", "checkpointDir", "job_name", "task_index", "ps_hosts", "worker_hosts")
_unknown: Dict[str, Any] = {}


def enter(context: Context, tf_config: TFConfig) -> None:
    """Before the script is imported; `sys.argv` and the module path are the task's already."""
    # a script may look for files beside it
    sys.argv[0] = os.path.join(context["work_dir"], *context["script"]["path"].split("/"))
    if context["cluster_flags"]:
        sys.argv[1:1] = cluster_flags(tf_config)
    folder = os.path.dirname(context["script"]["path"])
    if folder:
        # Python has the script's own directory first; PAI the archive's, too, from which packages are imported
        sys.path.insert(0, os.path.join(context["work_dir"], *folder.split("/")))
    tolerate_unknown_flags()
    oss_paths.refuse()


def cluster_flags(tf_config: TFConfig) -> List[str]:
    """`--job_name`, `--task_index`, `--ps_hosts`, `--worker_hosts`: the chief is PAI's worker 0, and worker 0 its worker 1."""
    cluster, task = tf_config["cluster"], tf_config["task"]
    role, index = task["type"], task["index"]
    if role == "chief":
        role, index = "worker", 0
    elif role == "worker":
        index += len(cluster.get("chief", ()))
    workers = list(cluster.get("chief", ())) + list(cluster.get("worker", ()))
    return [
        "--job_name=" + role,
        "--task_index=%d" % index,
        "--ps_hosts=" + ",".join(cluster.get("ps", ())),
        "--worker_hosts=" + ",".join(workers),
    ]


def tolerate_unknown_flags() -> None:
    """Have absl, `tf.app.flags` with it, pass over flags the script does not define, as PAI gives them to every script."""
    imports.when_imported(_FLAGS_MODULE, _soften)


def unknown_flags() -> List[str]:
    """Notes on flags the user gave, and the script has not defined: most likely misspelt."""
    values = _unknown.get("values")
    if values is None:
        return []
    defined = set(values)
    left = [name for name in _unknown["names"] if name not in defined and name not in _PAIS]
    if not left:
        return []
    names = ", ".join("--" + name for name in left)
    if len(left) == 1:
        return ["the script defines no flag %s, and it was passed over" % names]
    return ["the script defines no flags %s, and they were passed over" % names]


def _soften(module: Any) -> None:
    strict = module.FlagValues.__call__

    def __call__(self: Any, argv: Sequence[str], known_only: bool = False) -> List[str]:
        left = strict(self, argv, known_only=True)
        unknown = [word for word in left[1:] if word.startswith("-") and word.strip("-")]
        _unknown["values"] = self
        names = _unknown.setdefault("names", [])
        names += [name for name in (word.lstrip("-").partition("=")[0] for word in unknown) if name not in names]
        # who wanted to know of those that are not known is not shown them as arguments
        return left if known_only else [left[0]] + [word for word in left[1:] if word not in unknown]

    __call__.__doc__ = strict.__doc__
    module.FlagValues.__call__ = __call__
