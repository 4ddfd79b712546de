"""The user's script and files: checked before anything starts, then laid out in each task's work dir."""

from __future__ import annotations

import ast
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from akrunner.errors import ScriptError, UserFilesError
from akrunner.launch.fetch import fetch, is_url
from akrunner.schema import nearest
from akrunner.spec import ScriptSpec

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def collect(script: "str | os.PathLike[str]", user_files: Sequence["str | os.PathLike[str]"]) -> ScriptSpec:
    """Check the script and its files and say where each will lie.

    Args:
        script: a file or URL; or, when there is none of that name, the path of a file inside one of the user files.
        user_files: files, directories and archives (.zip, .tar, .tar.gz ...), local or URLs. A directory keeps its name, an
            archive is unpacked into the work dir itself; `a.zip#models` into its sub-directory `models` (`akrunner.launch.fetch`).
    Raises:
        ScriptError: the script is missing, does not parse, or has no `main`.
        UserFilesError: a user file is missing, two would lie at the same place, or an archive would write outside.
    """
    if isinstance(user_files, (str, os.PathLike)):
        raise UserFilesError(f"user_files must be a list of paths; give [{os.fspath(user_files)!r}]")
    files: Dict[str, str] = {}
    archives: List[Tuple[str, str]] = []
    members: Dict[str, Tuple[str, str]] = {}
    for given in user_files:
        fetched = fetch(given, "user_files")
        path, renamed = fetched.path, fetched.name
        if os.path.isdir(path):
            for real, place in _walk(path):
                _add(files, posixpath.join(renamed, *place.split("/")[1:]) if renamed else place, real)
        elif is_archive(path):
            archives.append((path, renamed))
            for name in _checked_members(path):
                members.setdefault(posixpath.join(renamed, name), (path, name))
        else:
            _add(files, renamed or os.path.basename(path), path)
    return _with_script(os.fspath(script), files, archives, members)


def _with_script(
    script: str, files: Dict[str, str], archives: List[Tuple[str, str]], members: Dict[str, Tuple[str, str]]
) -> ScriptSpec:
    real = os.path.abspath(os.path.expanduser(script))
    if is_url(script):
        real = fetch(script, "script").path
    inside = posixpath.normpath(script.replace(os.sep, "/"))
    if os.path.isdir(real):
        raise ScriptError(f"script: {script} is a directory; name the file that has main(task_config)")
    if os.path.isfile(real):
        place = next((place for place, other in files.items() if other == real), None)
        if place is None:
            place = os.path.basename(real)
            _add(files, place, real)
        with open(real, "rb") as f:
            source = f.read()
    elif inside in files:
        place, real = inside, files[inside]
        with open(real, "rb") as f:
            source = f.read()
    elif inside in members:
        archive, name = members[inside]
        place, real, source = inside, f"{archive}/{name}", _read_member(archive, name)
    else:
        known = [os.path.basename(p) for p in _beside(real)] + sorted(members)
        raise ScriptError(f"script: there is no file {script}{nearest(os.path.basename(script), known)}")
    check_script(source, real)
    return ScriptSpec(real, place, tuple((r, p) for p, r in files.items()), tuple(archives))


def check_script(source: bytes, name: str) -> None:
    """Raises: ScriptError: it does not parse (file, line), or no `main` is defined or imported at its top level."""
    try:
        tree = ast.parse(source, name)
    except (SyntaxError, ValueError) as e:
        line = getattr(e, "lineno", None)
        text = (getattr(e, "text", None) or "").rstrip()
        where = f'File "{name}", line {line}' if line else name
        shown = f"\n    {text.strip()}" if text else ""
        raise ScriptError(f"the script does not parse: {getattr(e, 'msg', e)}\n  {where}{shown}") from None
    names = list(_top_level_names(tree))
    if "main" not in names and "*" not in names:
        raise ScriptError(f"{name} defines no main(task_config){nearest('main', names)}")
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "main":
            arguments = node.args
            takes = len(arguments.posonlyargs) + len(arguments.args)
            if isinstance(node, ast.AsyncFunctionDef):
                raise ScriptError(f'main is async; it must be a plain function\n  File "{name}", line {node.lineno}')
            if (takes == 0 and arguments.vararg is None) or takes - len(arguments.defaults) > 1:
                raise ScriptError(f'main must take one argument, task_config\n  File "{name}", line {node.lineno}')


def writes_output(source: bytes) -> Optional[int]:
    """Line of the first `....output_writer.write(...)` or `.write_batch(...)`, None when it says so nowhere."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("write", "write_batch"):
            owner = node.func.value
            if isinstance(owner, ast.Attribute) and owner.attr == "output_writer":
                return node.lineno
    return None


def read_script(spec: ScriptSpec) -> bytes:
    """The script's source."""
    if os.path.isfile(spec.real):
        with open(spec.real, "rb") as f:
            return f.read()
    for archive, place in spec.archives:
        inside = posixpath.relpath(spec.path, place) if place else spec.path
        if spec.real == f"{archive}/{inside}":
            return _read_member(archive, inside)
    raise ScriptError(f"script: {spec.real} is gone")


def lay_out(spec: ScriptSpec, work_dir: str) -> None:
    """Put the script and its files into an empty directory. Archives first, so that a plain file wins over a member."""
    for archive, place in spec.archives:
        unpack(archive, os.path.join(work_dir, *place.split("/")))
    for real, place in spec.files:
        target = os.path.join(work_dir, *place.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(real, target)


def is_archive(path: str) -> bool:
    """By its name."""
    return path.lower().endswith((".zip",) + _TAR)


def unpack(archive: str, directory: str, trusted: bool = False) -> None:
    """Unpack into a directory.

    Args: trusted: links may lead outside, as those of a virtual environment to its interpreter do; members may not lie there.
    Raises: UserFilesError: it is damaged, or a member would lie outside.
    """
    _checked_members(archive, trusted)
    os.makedirs(directory, exist_ok=True)
    try:
        if archive.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as z:
                z.extractall(directory)
                for info in z.infolist():
                    mode = info.external_attr >> 16
                    if stat.S_ISLNK(mode):
                        path = os.path.join(directory, info.filename)
                        os.remove(path)
                        os.symlink(z.read(info).decode("utf-8", "replace"), path)
                    elif mode & 0o111 and not info.is_dir():
                        os.chmod(os.path.join(directory, info.filename), stat.S_IMODE(mode) | 0o600)
        else:
            with tarfile.open(archive) as t:
                if hasattr(tarfile, "data_filter"):
                    t.extractall(directory, filter="tar" if trusted else "data")
                else:
                    t.extractall(directory)
    except (OSError, zipfile.BadZipFile, tarfile.TarError) as e:
        raise UserFilesError(f"user_files: cannot unpack {archive}: {e}") from None


def _checked_members(archive: str, trusted: bool = False) -> List[str]:
    """Names of the archive's plain files; none leads outside. trusted: links may."""
    names = []
    try:
        if archive.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as z:
                for info in z.infolist():
                    _check_inside(archive, info.filename)
                    if stat.S_ISLNK(info.external_attr >> 16):
                        if not trusted:
                            _check_inside(archive, _target(info.filename, z.read(info).decode("utf-8", "replace")))
                    elif not info.is_dir():
                        names.append(posixpath.normpath(info.filename))
        else:
            with tarfile.open(archive) as t:
                for member in t:
                    _check_inside(archive, member.name)
                    if member.issym():
                        if not trusted:
                            _check_inside(archive, _target(member.name, member.linkname))
                    elif member.islnk():
                        _check_inside(archive, member.linkname)
                    elif not (member.isfile() or member.isdir()):
                        raise UserFilesError(f"user_files: {archive} holds {member.name}, which is a device or a pipe")
                    if member.isfile():
                        names.append(posixpath.normpath(member.name))
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as e:
        raise UserFilesError(f"user_files: {archive} is not an archive that can be read: {e}") from None
    return names


def _target(name: str, link: str) -> str:
    return link if link.startswith("/") else posixpath.join(posixpath.dirname(name), link)


def _check_inside(archive: str, name: str) -> None:
    path = posixpath.normpath(name.replace("\\", "/"))
    if path.startswith(("/", "../")) or path == ".." or (len(path) > 1 and path[1] == ":"):
        raise UserFilesError(
            f"user_files: {archive} holds {name!r}, which would lie outside the work dir; nothing was unpacked"
        )


def _read_member(archive: str, name: str) -> bytes:
    if archive.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as z:
            for info in z.infolist():
                if posixpath.normpath(info.filename) == name:
                    return z.read(info)
    else:
        with tarfile.open(archive) as t:
            for member in t:
                found = t.extractfile(member) if posixpath.normpath(member.name) == name else None
                if found is not None:
                    return found.read()
    raise UserFilesError(f"user_files: {archive} has no {name}")


def _walk(directory: str) -> Iterator[Tuple[str, str]]:
    base = os.path.basename(directory)
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            real = os.path.join(folder, name)
            yield real, posixpath.join(base, *os.path.relpath(real, directory).split(os.sep))


def _add(files: Dict[str, str], place: str, real: str) -> None:
    other = files.get(place)
    if other is not None and other != real:
        raise UserFilesError(f"user_files: {other} and {real} would both lie at {place}; rename one")
    files[place] = real


def _beside(path: str) -> List[str]:
    try:
        return os.listdir(os.path.dirname(path))
    except OSError:
        return []


def _top_level_names(tree: ast.Module) -> Iterator[str]:
    """Names the module binds at its top level, also under if, try and with; "*" for a star import."""
    pending: List[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, (ast.If, ast.With, ast.Try, ast.For, ast.While)):
            pending = list(node.body) + list(getattr(node, "orelse", [])) + list(getattr(node, "finalbody", [])) + pending
            for handler in getattr(node, "handlers", []):
                pending = handler.body + pending
