"""PAI's -name -> the environment that runs the script."""

from __future__ import annotations

import difflib
import re

from akrunner.checks import shown
from akrunner.errors import ConfigError

#: tensorflow, tensorflow1150, tensorflow1120_cpu_ext, tensorflow180_hvd_test, TensorFlow2.3
_TENSORFLOW = re.compile(r"tensorflow([0-9.]*)((?:[_-]\w+)*)\Z", re.IGNORECASE)
_KNOWN = ("tensorflow", "tensorflow1150", "tensorflow1120", "tensorflow180", "tensorflow1120_ext")
#: products whose command does not contain the script: part of their name -> how the user can run them here
_PRODUCTS = {
    "easy_rec": "its own archive and entry: -name tensorflow1120 -Dscript=easy_rec_ext.tar.gz -DentryFile=run.py "
    "-DuserDefinedParameters=...",
    "easytransfer": "its script by -name tensorflow1120 -Dscript=... -DentryFile=...",
    "alink": "its operators by akrunner.alink",
}
_OTHERS = ("pytorch", "easynlp", "mxnet", "caffe", "xgboost", "ps_", "horovod")


def environment_of(name: str) -> tuple[str, list[str]]:
    """Return the named environment (`akrunner env`) that stands for an algorithm of PAI, and notes for the user about it.

    Args:
        name: the value of -name.
    Raises:
        ConfigError: the name is not one of PAI-TensorFlow's.
    """
    match = _TENSORFLOW.match(name.strip())
    if match is None:
        raise ConfigError(_refusal(name))
    if match[1].strip(".") == "2":
        # the name says 2, but not which minor version
        return "tf2", _hints(name, match[2].lower())
    version, ending = _version(match[1]), match[2].lower()
    # tensorflow_cpu_1150: the version may stand at the end
    later = re.search(r"_([0-9][0-9.]*)(?=_|\Z)", ending) if version is None else None
    version = _version(later[1]) if later is not None else version
    notes = _hints(name, ending)
    if version is None:
        notes.append("-name tensorflow says no version; TensorFlow 1.15 is taken (another one: python_env=, --python-env)")
        return "tf1.15", notes
    major, minor = version
    if major == 1:
        if minor != 15:
            old = ", on Python 2.7," if minor <= 12 and "py3" not in ending else ""
            notes.append(f"{name} is TensorFlow 1.{minor}{old} on PAI; here it is 1.15 on Python 3.7, the oldest there is")
        return "tf1.15", notes
    if major == 2:
        return ("tf2.3", notes) if minor <= 3 else ("tf2", notes)
    raise ConfigError(
        f"-name {shown(name)}: there is no TensorFlow {major}; write tensorflow1150, or choose by python_env= (--python-env)"
    )


def _hints(name: str, ending: str) -> list[str]:
    """Return the notes for the user about the part of a name after its version."""
    if "hvd" in ending or "horovod" in ending:
        return [f"{name} has Horovod on PAI; here is none unless the environment has it (python_env=, --python-env)"]
    return []


def _version(digits: str) -> tuple[int, int] | None:
    """Return the major and minor version: (1, 15) for "1150", "115" and "1.15"; None for ""."""
    if "." in digits:
        parts = [part for part in digits.split(".") if part]
        # more than any version has, and no more than Python reads as a number
        return (int(parts[0][:9]), int(parts[1][:9]) if len(parts) > 1 else 0) if parts else None
    if not digits:
        return None
    major, rest = int(digits[0]), digits[1:]
    if len(rest) == 2 and rest.endswith("0") and rest != "10":
        rest = rest[0]
    return major, int(rest[:2] or 0)


def _refusal(name: str) -> str:
    lower = name.lower()
    for product, how in _PRODUCTS.items():
        if product in lower:
            return f"-name {name} is a product on top of PAI-TensorFlow, and what it runs is not in the command; run {how}"
    if lower == "tensorboard":
        return "-name tensorboard: run `tensorboard --logdir DIRECTORY` with the directory `akrunner pai --dry-run` shows for the bucket"
    for other in _OTHERS:
        if lower.startswith(other):
            return f"-name {name} is none of PAI-TensorFlow's, and akrunner runs those: tensorflow1150, tensorflow1120, tensorflow180, ..."
    close = difflib.get_close_matches(lower, _KNOWN, 1, 0.7)
    if close:
        return f"PAI has no algorithm {name!r}; did you mean {close[0]}?"
    return (
        f"-name {name} is an algorithm of PAI's own, and akrunner runs scripts of TensorFlow: -name tensorflow1150 -Dscript=..."
    )
