"""TensorFlow's import, a fifth quicker: Python does not look for garbage meanwhile, and never again among what was made.

What is imported stays: half a million objects, which the collector would look through seven times while they are made, and once more at
each full collection of the script's.
"""

import gc
import importlib.util
import sys

_NAME = "tensorflow"


#: called when TensorFlow has been imported
_then = []


def afterwards(call):
    """Call it when TensorFlow has been imported: now, if it is already."""
    if _NAME in sys.modules:
        call()
    else:
        _then.append(call)
        import_quickly()


def import_quickly():
    """Have TensorFlow's import, whenever it comes, be so."""
    if _NAME not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(object):
    """Finds TensorFlow where the others do, until it is loaded; who only asks whether it is there changes nothing."""

    def __init__(self):
        self._asking = False

    def find_spec(self, name, path=None, target=None):
        if name != _NAME or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader(object):
    """Loads as another one does, which it leaves in its place. Args: finder: goes then."""

    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        collects = gc.isenabled()
        gc.disable()
        try:
            self._loader.exec_module(module)
        finally:
            if collects:
                gc.enable()
        gc.freeze()
        while _then:
            _then.pop(0)()
