"""Tells the user's own modules from those of installed packages."""

from __future__ import annotations

import os
import sys
import types


def is_users(module: types.ModuleType) -> bool:
    """Whether a module is the user's own: its file is in no installed package."""
    file, root = getattr(module, "__file__", None), module.__name__.partition(".")[0]
    if not isinstance(file, str) or not file.endswith(".py") or root in sys.stdlib_module_names or root == "akrunner":
        return False
    return not {"site-packages", "dist-packages"} & {*file.split(os.sep)} and os.path.isfile(file)
