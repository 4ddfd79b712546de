"""What is the user's own, and what a package brings that was installed."""

from __future__ import annotations

import os
import sys
import types


def is_users(module: types.ModuleType) -> bool:
    """Whether a module is the user's own: its file is in no package that was installed."""
    file, root = getattr(module, "__file__", None), module.__name__.partition(".")[0]
    if not isinstance(file, str) or not file.endswith(".py") or root in sys.stdlib_module_names or root == "akrunner":
        return False
    return not {"site-packages", "dist-packages"} & {*file.split(os.sep)} and os.path.isfile(file)
