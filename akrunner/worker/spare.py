"""The warm worker: a worker process that waits for its job, `python bundle.zip spare READ_FD WRITE_FD SOCKET_FD`.

::

    host                              warm worker (spare)
    spare(what to import)  ->         imports TensorFlow, as the job's script would
                           <-         waiting(why it cannot be forked, "" if it can)
    fork                   ->         becomes a template (`akrunner.worker.template`); its forks get the messages below:
    offer(the job's files) ->         checks whether a cold start would import the same modules
                           <-         answer(why not, "" if so)
    order(environment...)  ->         becomes the job's worker process, as if it had been started by `run`

It is used once. When the order comes, it sets everything by which a script could tell it from a cold start: environment,
current directory, module path, and the paths of akrunner's own modules.
"""

from __future__ import annotations

import array
import importlib
import os
import select
import sys
import time
import zipimport
from typing import Any, Callable, Collection, Dict, FrozenSet, Iterable, List, Optional, Sequence, Set, Tuple

from akrunner import worker
from akrunner.wire import frames, messages
from akrunner.wire.shapes import escaped
from akrunner.worker import link, template
from akrunner.worker.task import before_import

#: milliseconds between checks whether the host is alive; the end of its pipe is noticed at once
_LOOK = 2000
#: endings of files in a directory of the module path that can be imported, or that say what can
_IMPORTABLE = (".py", ".so", ".pyd", ".pth", ".egg", ".zip", ".dist-info", ".egg-info", ".egg-link")

#: numbers that are the state of a file; the largest that each can be
_FIELDS, _WORD = 3, (1 << 64) - 1
#: bytes behind a zip's directory
_END = 22


def wait_for_job(read_fd: int, write_fd: int, socket_fd: int) -> Tuple[int, int]:
    """Import the modules that the host names, wait for a job, and become its worker process; end if the host dies.

    Args:
        read_fd, write_fd: the pipes from and to the host.
        socket_fd: the socket on which the descriptors of forks arrive.
    Returns:
        the descriptors of the pipes; in a fork, they are its own. Returns in the process that becomes the worker process.
    """
    host = Host(read_fd, write_fd)
    link.remember_host()
    os.set_inheritable(socket_fd, False)
    ours = frozenset(sys.modules)
    opened = template.descriptors()
    _, told = host.next((frames.SPARE,))
    before_import(told["env"], told["cpus"], told["overlay"])
    began = time.monotonic()
    for name in told["preload"]:
        importlib.import_module(name)
    imported = {name.partition(".")[0] for name in sys.modules if name not in ours}
    modules = BundleModules(sys.argv[0])
    files = Files(told["began_ns"])
    alone = template.why_not(opened, told["temp"])
    # what was printed so far belongs in the log, as after a cold start
    sys.stdout.flush()
    host.writer.write_json(frames.WAITING, escaped(messages.Waiting(seconds=time.monotonic() - began, alone=alone)))
    kind, body = host.next((frames.OFFER, frames.FORK))
    if kind == frames.FORK:
        read_fd, write_fd = template.Template(host, socket_fd).serve(body)
        host = Host(read_fd, write_fd)
        host.writer.write_json(frames.WAITING, messages.Waiting(seconds=0, alone=""))
        _, body = host.next((frames.OFFER,))
    else:
        os.close(socket_fd)
    while True:
        stale = files.changed()
        why = stale or shadowed(body["names"], imported)
        host.writer.write_json(frames.ANSWER, escaped(messages.Answer(why=why, stale=bool(stale))))
        if not why:
            break
        _, body = host.next((frames.OFFER,))
    _, order = host.next((frames.ORDER,))
    _become(order, told["overlay"], [str(read_fd), str(write_fd)], modules)
    return read_fd, write_fd


class Host(object):
    """The connection to the host that has, or will have, a job for this process. Attributes: writer: writes frames to it."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)
        self.writer = frames.FrameWriter(write_fd)
        self._reader = frames.FrameReader(read_fd, frames.TO_SPARE)
        # the host itself, or the template that this process was forked from
        self._parent = os.getppid()

    def next(
        self, kinds: Sequence[int], fd: Optional[int] = None, noticed: Optional[Callable[[], Any]] = None
    ) -> Tuple[int, Dict[str, Any]]:
        """Return the (kind, body) of the next message; end this process if the host is dead.

        Args:
            kinds: the kinds that may come.
            fd: another descriptor to watch; None for none.
            noticed: called whenever `fd` can be read.
        Raises:
            WireError: a message of another kind came.
        """
        poll = select.poll()
        for one in (self._reader.fd, fd):
            if one is not None:
                poll.register(one, select.POLLIN | select.POLLHUP)
        while True:
            ready = dict(poll.poll(_LOOK))
            if os.getppid() != self._parent:
                link.host_is_gone()
            if noticed is not None and fd in ready:
                noticed()
            if self._reader.fd in ready:
                break
        frame = self._reader.read()
        if frame is None:
            link.host_is_gone()
        if frame.kind not in kinds:
            raise frames.WireError("expected %s, got %s" % (frames.NAMES[kinds[0]], frames.NAMES[frame.kind]))
        return frame.kind, messages.read(frame)

    def close(self) -> None:
        """Close this process's ends of the pipes."""
        self._reader.close()
        self.writer.close()


def shadowed(names: Iterable[str], imported: Collection[str]) -> str:
    """Return why a job's files conflict with the imported modules, "" if they do not.

    They conflict if a cold start would have imported one of the files in place of a module.

    Args:
        names: names of the files and directories beside the script.
        imported: names of the top-level modules that were imported.
    """
    for name in sorted(names):
        module = name.partition(".")[0]
        if module in imported or module in ("sitecustomize", "usercustomize"):
            return "%s, one of the job's files, has the name of a module that is imported already" % name
    return ""


class Files(object):
    """The state of the imported files on disk. If it changes, this process runs other code than a cold start would.

    It is kept as a text and an array. A fork gets a copy of each page of memory that it writes to, and Python writes to each object
    that it looks at: thousands of texts lie on as many pages, those of the modules.
    """

    def __init__(self, began_ns: int) -> None:
        """Record the state. Args: began_ns: when this process was started; a file changed after that is not trusted."""
        files = sorted(_files())
        self._files = "\0".join(files)
        self._states = _states(files)
        self._folders = {path: _importable(path) for path in sys.path}
        now = time.time_ns()
        late = [path for path, at in zip(files, self._states[::_FIELDS]) if began_ns < at <= now]
        self._late = "%s has changed while it was imported" % late[0] if late else ""

    def changed(self) -> str:
        """Return what has changed, in words; "" if nothing has."""
        if self._late:
            return self._late
        files = self._files.split("\0")
        states = _states(files)
        if states != self._states:
            differ = [at for at, (new, old) in enumerate(zip(states, self._states)) if new != old]
            return "%s has changed since" % files[differ[0] // _FIELDS]
        for path, names in self._folders.items():
            if _importable(path) != names:
                return "something was installed in, or removed from, %s since" % path
        return ""


def _files() -> Set[str]:
    """Return the files of this process's modules and libraries, and the files that determine what can be imported."""
    found = {os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg")}
    for module in list(sys.modules.values()):
        try:
            # a plain getattr would load those modules of TensorFlow that are loaded on first use
            path = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:
            continue
        if isinstance(path, str):
            found.add(path)
    try:
        with open("/proc/self/maps") as f:
            found.update(line[line.index("/") :].rstrip("\n") for line in f if "/" in line)
    except OSError:
        pass
    for folder in sys.path:
        found.update(os.path.join(folder, name) for name in _importable(folder) or () if name.endswith(".pth"))
    return {path for path in found if not path.startswith(sys.argv[0])}


def _states(paths: Iterable[str]) -> array.array[int]:
    """Return `_FIELDS` numbers for each file: when it was changed, its size, its number; zeros if it does not exist."""
    found = array.array("Q")
    for path in paths:
        try:
            stat = os.stat(path)
        except (OSError, ValueError):
            found.extend((0,) * _FIELDS)
            continue
        found.extend((stat.st_mtime_ns & _WORD, stat.st_size, stat.st_ino & _WORD))
    return found


def _importable(folder: str) -> Optional[FrozenSet[str]]:
    """Return the names in a directory of the module path that can be imported; None if there is no such directory."""
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    return frozenset(name for name in names if name.endswith(_IMPORTABLE) or ("." not in name and name != "__pycache__"))


class BundleModules(object):
    """What this process has of akrunner: the modules, and where each file of the bundle is in it. A fork does not look for them itself: to look
    through thousands of modules would copy their memory, and to read the zip's directory takes longer than all else before the job's script.
    """

    def __init__(self, bundle: str) -> None:
        """Args: bundle: the path of the bundle that the modules are from, or of a copy."""
        self.names = [name for name in sys.modules if name == "__main__" or name.partition(".")[0] == "akrunner"]
        self._end = end_of_zip(bundle)
        zipimport.zipimporter(bundle)
        places = dict(_directories().get(bundle, ()))
        # of another kind in a Python to come: each importer reads the directory itself then
        self._places = places if all(place is None or isinstance(place, tuple) for place in places.values()) else {}

    def move(self, old: str, new: str) -> None:
        """Make all of it look as if it had been loaded from another bundle. Args: old, new: the paths of both."""
        # only if it is the same in each file: they may have been compiled by two versions of Python
        if self._end and self._places and self._end == end_of_zip(new):
            # newer Pythons note a directory of which the zip has only the files, too: None
            _directories()[new] = {
                name: place if place is None else (new + os.sep + name,) + place[1:] for name, place in self._places.items()
            }
        loaders: Dict[str, Any] = {}
        for name in self.names:
            _move(sys.modules[name], old, new, loaders)


def _directories() -> Dict[str, Dict[str, Any]]:
    """Return where Python keeps the directories of zips that it has read; where it keeps none, each importer reads its own."""
    found: Dict[str, Dict[str, Any]] = getattr(zipimport, "_zip_directory_cache", {})
    return found


def end_of_zip(path: str) -> bytes:
    """Return a zip's directory as it is in the file, with a checksum of each file; b"" if there is none that ends as the bundle's does."""
    with open(path, "rb") as f:
        f.seek(-min(_END, os.fstat(f.fileno()).st_size), os.SEEK_END)
        last = f.read()
        if last[:4] != b"PK\5\6":
            return b""
        f.seek(-_END - int.from_bytes(last[12:16], "little"), os.SEEK_END)
        return f.read()


def _become(order: Dict[str, Any], overlay: Optional[str], pipes: List[str], modules: BundleModules) -> None:
    """Bring this process into the state of one that has just been started for the job.

    Args:
        order: the ORDER message.
        overlay: the directory of further packages; None or "" for none.
        pipes: the arguments with which that process's command line would end.
        modules: made before this process was forked.
    """
    for name, value in order["env"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    here = os.getcwd()
    os.chdir(order["cwd"])
    old, new = sys.argv[0], order["bundle"]
    if overlay:
        sys.path.remove(overlay)
    # an entry for the current directory, from PYTHONPATH, becomes the job's directory
    sys.path[:] = [{old: new, here: order["cwd"]}.get(path, path) for path in sys.path]
    for path in [path for path in sys.path_importer_cache if path == here or path.startswith(old)]:
        del sys.path_importer_cache[path]
    modules.move(old, new)
    sys.argv[0] = new
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [{old: new, "spare": "run"}.get(part, part) for part in sys.orig_argv[:-3]] + pipes
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        # an import may have asked for the temp directory; TMPDIR has another value now
        tempfile.tempdir = None
    # a process that was started for the job would not have loaded these modules
    for name in (__name__, template.__name__):
        del sys.modules[name]
    del worker.spare, worker.template


def _move(module: Any, old: str, new: str, loaders: Dict[str, Any]) -> None:
    """Make a module of akrunner's look as if it had been loaded from another bundle with the same contents.

    Args:
        old, new: the paths of the two bundles.
        loaders: those of the new one; gets what is not in it yet.
    """

    def moved(value: Any) -> Any:
        return new + value[len(old) :] if isinstance(value, str) and value.startswith(old) else value

    spec: Any = getattr(module, "__spec__", None)
    if not moved(getattr(module, "__file__", None) or "").startswith(new):
        return
    module.__file__ = moved(module.__file__)
    prefix = spec.loader.prefix
    if prefix not in loaders:
        # a package's modules share one
        loaders[prefix] = zipimport.zipimporter(moved(os.path.join(old, prefix)))
    module.__loader__ = spec.loader = loaders[prefix]
    spec.origin = moved(spec.origin)
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations[:] = map(moved, spec.submodule_search_locations)
        module.__path__ = spec.submodule_search_locations
