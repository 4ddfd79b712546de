"""Sets up what a PAI-TensorFlow script expects besides its tables: PAI's flags, the module path, tolerance of unknown flags."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Sequence

from akrunner.wire.context import Context, TFConfig
from akrunner.worker import imports, oss_paths

_FLAGS_MODULE = "absl.flags._flagvalues"
#: flags that PAI gives to every script, whether the script defines them or not
_PAIS = ("tables", "outputs", "buckets", "checkpointDir", "job_name", "task_index", "ps_hosts", "worker_hosts")
_unknown: Dict[str, Any] = {}


def enter(context: Context, tf_config: TFConfig) -> None:
    """Set up the process. Called before the script is imported, when `sys.argv` and the module path are set for the task."""
    # a full path, because a script may look for files beside it
    sys.argv[0] = os.path.join(context["work_dir"], *context["script"]["path"].split("/"))
    if context["cluster_flags"]:
        sys.argv[1:1] = cluster_flags(tf_config)
    folder = os.path.dirname(context["script"]["path"])
    if folder:
        # the module path begins with the script's own directory, as in Python; PAI also has the archive's root in it
        sys.path.insert(0, os.path.join(context["work_dir"], *folder.split("/")))
    tolerate_unknown_flags()
    oss_paths.refuse()


def cluster_flags(tf_config: TFConfig) -> List[str]:
    """Return the flags `--job_name`, `--task_index`, `--ps_hosts` and `--worker_hosts`.

    The chief is PAI's worker 0; if there is one, worker 0 is PAI's worker 1.
    """
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
    """Make absl, and with it `tf.app.flags`, ignore flags that the script does not define: PAI gives such to every script."""
    imports.when_imported(_FLAGS_MODULE, _soften)


def unknown_flags() -> List[str]:
    """Return notes on flags that the user gave and the script has not defined: most likely they are misspelt."""
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
        # a caller that asks for the unknown flags (known_only) gets them; otherwise they are not passed on as arguments
        return left if known_only else [left[0]] + [word for word in left[1:] if word not in unknown]

    __call__.__doc__ = strict.__doc__
    module.FlagValues.__call__ = __call__
