"""Checks of the interpreters that jobs would use: their packages, the import of TensorFlow, why it sees no graphics card."""

from __future__ import annotations

import glob
import json
import os
import re
import resource
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from akrunner.checkup.limits import MORE_ADDRESSES
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.errors import PythonEnvError
from akrunner.foreign import redacted
from akrunner.launch import interpreters
from akrunner.launch.asking import Asked, ask
from akrunner.launch.environments import RECIPES

#: how many seconds an import of TensorFlow may take; on a network disk a minute is common
IMPORT_SECONDS = 90.0
#: how many seconds an interpreter may take to report its version and packages
PROBE_SECONDS = 10.0
_OURS = ("numpy", "pyarrow", "psutil", "typer", "duckdb")
#: a missing module of these packages is a missing part of TensorFlow itself
_TENSORFLOW = ("tensorflow", "tensorflow_core", "tensorboard", "tensorflow_estimator", "keras")
#: words of errors of packages that are complete, but do not fit each other or the system
_UNFIT = re.compile(
    r"numpy|_ARRAY_API|GLIBC|CXXABI|undefined symbol|protobuf|Descriptor|cannot open shared "
    r"object|DLL|ml_dtypes|wrapt|typing_extensions"
)
#: a value of CUDA_VISIBLE_DEVICES: numbers and names of graphics cards
_CARDS = re.compile(
    r"|(?:-1|[0-9]{1,3}|NoDevFiles|(?:GPU|MIG)-[0-9a-fA-F/-]{1,60})(?:, "
    r"?(?:-1|[0-9]{1,3}|(?:GPU|MIG)-[0-9a-fA-F/-]{1,60})){0,64}"
)

#: the program that is run under the task's interpreter; it must run on Python 3.7
_LOOK = """
import importlib.util, json, os, resource, sys, time
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
told = {"gpus": [], "build": {}, "error": "", "missing": ""}
if importlib.util.find_spec("pip") is None:
    print("NO PIP", flush=True)
began = time.time()
try:
    import tensorflow as tf
    told["tensorflow"] = tf.__version__
    told["gpus"] = [device.name for device in tf.config.experimental.list_physical_devices("GPU")]
    told["cuda"] = bool(tf.test.is_built_with_cuda())
    try:
        build = tf.sysconfig.get_build_info()
    except AttributeError:
        from tensorflow.python.platform import build_info
        build = {k: getattr(build_info, k) for k in ("cuda_version_number", "cudnn_version_number") if hasattr(build_info, k)}
    told["build"] = {str(k): str(v) for k, v in dict(build).items()}
    where = os.path.dirname(os.path.dirname(tf.__file__))
    told["seconds"] = time.time() - began
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        print("IMPORTED", flush=True)
        import numpy as np
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
        model.compile(loss="mse", optimizer="sgd")
        model.fit(np.zeros((4, 1)), np.zeros((4, 1)), verbose=0)
    told["wheels"] = sorted(os.listdir(os.path.join(where, "nvidia"))) if os.path.isdir(os.path.join(where, "nvidia")) else []
except BaseException as e:
    lines = str(e).strip().splitlines()
    told["error"] = type(e).__name__ + ": " + (lines[-1] if lines else "")
    told["missing"] = str(getattr(e, "name", None) or "") if type(e).__name__ == "ModuleNotFoundError" else ""
import ctypes
def loads(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False
told["driver"] = loads("libcuda.so.1")
print("AKRUNNER " + json.dumps(told))
"""


def own() -> list[Line]:
    """Check this interpreter, and the packages that akrunner needs in it."""
    versions, missing = [], []
    for name in _OURS:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    about = f"{sys.version.split()[0]} ({sys.executable}); {', '.join(versions)}"
    if missing:
        do = f"{interpreters.completing(sys.executable)} brings what akrunner needs"
        return [Line("Python", BROKEN, f"{about}; not there: {', '.join(missing)}", do)]
    if not 11 <= sys.version_info[1] <= 13:
        return [
            Line("Python", LOOK, about, "3.11 to 3.13 are the versions that are tried; tasks may have their own (--python-env)")
        ]
    return [Line("Python", OK, about)]


def environment(python_env: str | None, importing: bool = True) -> list[Line]:
    """Check the interpreter of a job with this `python_env=`.

    Args: importing: whether to import its TensorFlow, which takes seconds.
    """
    about = "TensorFlow" if python_env is None else f"TensorFlow of {python_env}"
    try:
        found = interpreters.asked_for(python_env, PROBE_SECONDS, remember=False)
    except PythonEnvError as e:
        return [Line(about, BROKEN, str(e), "akrunner env list shows what is there")]
    version = ".".join(map(str, found.python))
    if found.python < (3, 7):
        return [Line(about, BROKEN, f"{found.path} is Python {version}", "3.7 is the oldest that is supported")]
    if not found.tensorflow:
        return [_without(about, python_env, found.path)]
    told = f"{found.tensorflow} on Python {version} ({found.path})"
    if found.tf_keras:
        told += f", tf-keras {found.tf_keras}"
    if not importing:
        return [Line(about, OK, f"{told}; it was not imported")]
    return _imported(about, told, found.path)


def _without(about: str, python_env: str | None, path: str) -> Line:
    """Return the line for an interpreter without TensorFlow: "broken" if the user named it, else a hint at others with it."""
    if python_env is not None:
        return Line(
            about, BROKEN, f"{path} has none", f"{interpreters.installing(path, 'tensorflow')}, or another --python-env"
        )
    there = []
    for recipe in RECIPES.values():
        try:
            there.append(f"{recipe.name} ({interpreters.named(recipe, PROBE_SECONDS, remember=False).path})")
        except PythonEnvError:
            continue
    here = interpreters.installing(path, "tensorflow")
    do = f"--python-env {there[0].split()[0]} has it" if there else f"{here}; or akrunner env create tf2, and --python-env tf2"
    said = f"; found by name: {', '.join(there)}" if there else ""
    return Line(about, LOOK, f"{path} has none, and a job without --python-env would use it{said}", do)


def _imported(about: str, told: str, path: str) -> list[Line]:
    try:
        done = ask([path, "-c", _LOOK], IMPORT_SECONDS, noted=False)
    except OSError as e:
        return [Line(about, BROKEN, f"{told}; importing it: {e}", "an environment on a local disk, a machine that does less")]
    try:
        said: dict[str, Any] = json.loads(next(line for line in done.out.splitlines() if line.startswith("AKRUNNER "))[9:])
    except (StopIteration, ValueError):
        return [_dead(about, told, path, done)]
    if said["error"]:
        if "IMPORTED" in done.out.splitlines():
            found = f"{told}; it is imported, and a training of four rows failed under ulimit -v: {redacted(said['error'])}"
            return [Line(about, BROKEN, found, MORE_ADDRESSES)]
        return [
            Line(
                about,
                BROKEN,
                f"{told}; it cannot be imported: {redacted(said['error'])}",
                _of_error(said, path, _has_pip(done)),
            )
        ]
    return [
        Line(about, OK, f"{told}; imported in {said['seconds']:.1f} s"),
        gpu(about.replace("TensorFlow", "graphics card"), said),
    ]


def _dead(about: str, told: str, path: str, done: Asked) -> Line:
    """Return the line for an interpreter that ended before it had reported anything about TensorFlow."""
    last = next((line.strip() for line in reversed(done.err.splitlines()) if line.strip()), "it said nothing")
    ended = f"ended with {f'signal {-done.code}' if done.code < 0 else f'exit code {done.code}'}: {redacted(last)}"
    if "IMPORTED" in done.out.splitlines():
        return Line(
            about, BROKEN, f"{told}; it is imported, and a training of four rows under ulimit -v {ended}", MORE_ADDRESSES
        )
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    if done.code == -4:
        do = "SIGILL: this processor lacks instructions its wheel was built for (AVX)"
    elif done.code == -9:
        do = "SIGKILL: out of memory, as a rule"
    elif limited:
        do = MORE_ADDRESSES
    elif done.code >= 0:
        do = f"TensorFlow does not end its process when it is whole: {_reinstalled(path, _has_pip(done))}"
    else:
        do = (
            f"{path} -X faulthandler -c 'import tensorflow' shows where; if it is damaged, {_reinstalled(path, _has_pip(done))}"
        )
    return Line(about, BROKEN, f"{told}; its import {ended}", do)


def _has_pip(done: Asked) -> bool:
    """Whether the interpreter that ran `_LOOK` has pip."""
    return "NO PIP" not in done.out.splitlines()


def _of_error(said: Mapping[str, Any], path: str, pip: bool) -> str:
    """Return what helps if the import of TensorFlow has raised.

    Args: said: the result of `_LOOK`; path: the interpreter; pip: whether the interpreter has pip.
    """
    error, missing = str(said["error"]), str(said.get("missing", ""))
    if "failed to map segment" in error or "Cannot allocate memory" in error or error.startswith("MemoryError"):
        limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        return MORE_ADDRESSES if limited else "there is too little memory: see the line of it"
    if (missing and missing.partition(".")[0] not in _TENSORFLOW) or _UNFIT.search(error):
        check = f"{path} -m pip check" if pip else f"uv pip check --python {path} (it has no pip)"
        return f"{check} tells what does not fit together; akrunner env create makes one that does"
    return f"it is not whole, or damaged: {_reinstalled(path, pip)}"


def _reinstalled(path: str, pip: bool) -> str:
    by = f"{path} -m pip install --force-reinstall" if pip else f"uv pip install --reinstall --python {path}"
    return f"reinstall it: {by} tensorflow (its version, as above, or another); or akrunner env create makes a new one"


# -- graphics cards


def gpu(about: str, said: Mapping[str, Any], root: str = "/", environ: Mapping[str, str] = os.environ) -> Line:
    """Check which graphics cards TensorFlow sees, and why it sees none.

    Args: said: the result of `_LOOK`; root: where the kernel's files are; environ: the environment variables.
    """
    if said["gpus"]:
        return Line(about, OK, f"{len(said['gpus'])} seen by TensorFlow")
    cards = _cards(root)
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if not cards and not said["driver"] and not _driver(root):
        return Line(about, OK, "there is none on this machine, nor a driver; TensorFlow computes on the processor")
    what = f"{cards} on this machine" if cards else "a driver is installed, and no card is seen"
    for found, do in _obstacles(said, cards, hidden, root):
        return Line(about, LOOK, f"{what}, and TensorFlow sees none: {found}", do)
    return Line(
        about,
        LOOK,
        f"{what}, and TensorFlow sees none",
        "TF_CPP_MIN_LOG_LEVEL=0 python -c 'import tensorflow as tf; tf.config.list_physical_devices()' there says why",
    )


def _obstacles(said: Mapping[str, Any], cards: int, hidden: str | None, root: str) -> list[tuple[str, str]]:
    """Return (what hides the graphics cards, what to do about it), the first obstacle to remove first."""
    found = []
    named = f"={hidden!r}" if hidden is not None and _CARDS.fullmatch(hidden) else ""
    if hidden is not None and hidden.strip().split(",")[0] in ("", "-1", "NoDevFiles"):
        found.append((f"CUDA_VISIBLE_DEVICES{named} hides all", "unset it, or name cards: CUDA_VISIBLE_DEVICES=0"))
    elif hidden is not None and cards and named and hidden.isdecimal() and int(hidden) >= cards:
        found.append((f"CUDA_VISIBLE_DEVICES={hidden} names one that is not there", f"cards are numbered 0 to {cards - 1}"))
    devices = glob.glob(os.path.join(root, "dev/nvidia[0-9]*"))
    if not said["cuda"]:
        found.append(("its wheel is built without CUDA", "pip install 'tensorflow[and-cuda]' there, not tensorflow-cpu"))
    if not _driver(root) and not said["driver"]:
        found.append(("there is no NVIDIA driver", "install it on the machine (not in the container); nvidia-smi has to work"))
    elif not devices:
        found.append(
            (
                "there is no /dev/nvidia0 here",
                "docker run --gpus all (with NVIDIA's container toolkit); a pod asks for nvidia.com/gpu",
            )
        )
    elif not all(os.access(device, os.R_OK | os.W_OK) for device in devices):
        found.append((f"this user may not open {devices[0]}", "add the user to the group that owns it (video, render)"))
    elif not said["driver"]:
        found.append(
            (
                "libcuda.so.1 is not found",
                "in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility; else ldconfig, LD_LIBRARY_PATH",
            )
        )
    version = said["build"].get("cuda_version") or said["build"].get("cuda_version_number", "")
    cudnn = said["build"].get("cudnn_version") or said["build"].get("cudnn_version_number", "")
    if said["cuda"] and not {"cudnn", "cuda_runtime"} & set(said.get("wheels", ())):
        new = version[:2].isdigit() and int(version[:2]) >= 12
        do = (
            "pip install 'tensorflow[and-cuda]' there"
            if new
            else f"install CUDA {version} and cuDNN {cudnn}, and name their directory in LD_LIBRARY_PATH"
        )
        found.append(
            (f"it wants CUDA {version or '?'} and cuDNN {cudnn or '?'}, and no wheels of them are installed beside it", do)
        )
    return found


def _cards(root: str) -> int:
    """Return the number of NVIDIA cards on the machine's PCI bus."""
    count = 0
    for vendor in glob.glob(os.path.join(root, "sys/bus/pci/devices/*/vendor")):
        try:
            with open(vendor) as f, open(os.path.join(os.path.dirname(vendor), "class")) as g:
                count += f.read().strip() == "0x10de" and g.read().startswith("0x03")
        except OSError:
            continue
    return count


def _driver(root: str) -> bool:
    return os.path.exists(os.path.join(root, "proc/driver/nvidia/version")) or shutil.which("nvidia-smi") is not None
