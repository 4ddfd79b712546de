"""The user's script and files: checked before anything starts, then laid out in each task's work dir."""

from __future__ import annotations

import ast
import os
import posixpath
from collections.abc import Iterable, Sequence

from akrunner import leftovers
from akrunner.checks import ALIKE, nearest_file
from akrunner.errors import JobError, ScriptError, UserFilesError
from akrunner.launch import archives
from akrunner.launch.entry import check_program, check_script, context_entry
from akrunner.launch.fetch import fetch, is_url
from akrunner.launch.limits import shown
from akrunner.launch.trees import Blame, Tree, opened, pieces_of, walk
from akrunner.spec import ScriptSpec
from akrunner.wire.near import nearest

#: the bytes that a script may have
_LONGEST_SCRIPT = 16 << 20
_PLACE = "the work dir"
_SCRIPT = Blame("script", ScriptError, _PLACE)
_FILES = Blame("user_files", UserFilesError, _PLACE)

#: (archive, directory it is unpacked into, bytes it may unpack to, path or URL as the user wrote it)
_Archive = tuple[str, str, int, str]


def collect(script: str | os.PathLike[str], user_files: Sequence[str | os.PathLike[str]]) -> ScriptSpec:
    """Check the script and its files and say where each of them will lie. Archives are read to their ends, but nothing of them
    is kept.

    Args:
        script: a file or URL; or, if there is no file of that name, the path of a file inside one of the user files.
        user_files: files, directories and archives (.zip, .tar, .tar.gz ...), local or URLs. A directory keeps its name; an
            archive is unpacked into the work dir itself, `a.zip#models` into its sub-directory `models`
            (`akrunner.launch.fetch`).
    Raises:
        ScriptError: the script is missing, does not parse, or has no `main` and is no program.
        UserFilesError: a user file is missing, two files would lie at the same path, or an archive would write outside the work
            dir.
    """
    if isinstance(user_files, (str, os.PathLike)):
        raise UserFilesError(f"user_files must be a list of paths; give [{os.fspath(user_files)!r}]")
    files: dict[str, str] = {}
    packed: list[_Archive] = []
    for given in user_files:
        fetched = fetch(given, "user_files")
        path = fetched.path
        if os.path.isdir(path):
            base = fetched.name or os.path.basename(os.path.realpath(path))
            for real, place in walk(path, _FILES, skip="__pycache__"):
                _add(files, posixpath.join(base, place), real)
        elif archives.is_archive(path):
            packed.append((path, fetched.name, fetched.most, fetched.given))
        else:
            _add(files, fetched.name or os.path.basename(path), path)
    real = _local(os.fspath(script))
    beside = [os.path.basename(real)] if os.path.isfile(real) and real not in files.values() else []
    members = _laid_on_trial(packed, [*files, *beside]) if user_files else {}
    return _with_script(os.fspath(script), real, files, packed, members)


def collect_program(path: str, entry: str = "") -> ScriptSpec:
    """Check a program, whatever its `main` takes, and the archive or directory it comes in, which is unpacked into the work
    dir.

    Args:
        path: the program, the archive, or a directory in place of an archive; or a URL.
        entry: the program's path in the archive or directory; "": `path` is the program itself.
    Raises:
        ScriptError, UserFilesError: as `collect`.
    """
    real = _local(path)
    if not entry:
        check_program(_source(real), real)
        return ScriptSpec(real, os.path.basename(real), ((real, os.path.basename(real)),), program=True, pai=True)
    inside = posixpath.normpath(entry)
    if os.path.isdir(real):
        files = {place: one for one, place in walk(real, _SCRIPT, skip="__pycache__")}
        _check_inside(inside, files, path)
        check_program(_source(files[inside]), files[inside])
        laid = tuple((one, place) for place, one in files.items())
        return ScriptSpec(files[inside], inside, laid, program=True, pai=True)
    members = _laid_on_trial([(real, "", 0, path)], ())
    _check_inside(inside, members, path)
    name = members[inside][1]
    check_program(archives.read(real, name, _FILES, _LONGEST_SCRIPT), f"{real}/{name}")
    return ScriptSpec(f"{real}/{name}", inside, (), ((real, "", 0),), program=True, pai=True)


def _check_inside(entry: str, places: Iterable[str], path: str) -> None:
    """Raises: ScriptError: the entry is not among the places; the error names those that the user may mean."""
    if entry not in places:
        programs = sorted(name for name in places if name.endswith(".py"))
        known = nearest(entry, programs) or f"; it holds {', '.join(programs[:8])}{', ...' * (len(programs) > 8)}" * bool(
            programs
        )
        raise ScriptError(f"script: {path} has no {entry}{known}")


def _local(script: str) -> str:
    """Return the path where the script is, or would be, on this machine; a URL is downloaded."""
    if is_url(script):
        return fetch(script, "script", usual=_LONGEST_SCRIPT).path
    return os.path.abspath(os.path.expanduser(script))


def _laid_on_trial(packed: Sequence[_Archive], places: Sequence[str]) -> dict[str, tuple[_Archive, str]]:
    """Lay all files out, but without their bytes, so that what cannot be laid out is known now.

    Args:
        places: the paths of the files that come from no archive.
    Returns:
        The path where each member of an archive will lie -> (the archive, the member's name in it).
    """
    members: dict[str, tuple[_Archive, str]] = {}
    with _FILES.ours("cannot check them in the temp directory (TMPDIR)"):
        folder = leftovers.temp_folder("akrunner-")
    try:
        tree = Tree(folder, _FILES, checking=True)
        for one in packed:
            path, place, most, given = one
            tree.blame = Blame("user_files", UserFilesError, _PLACE, given)
            for at, name in archives.extract(path, tree, place, most).items():
                members[at] = (one, name)
        for place in places:
            tree.file(place, ())
        tree.check_links()
    finally:
        leftovers.drop(folder)
    return members


def _with_script(
    script: str, real: str, files: dict[str, str], packed: Sequence[_Archive], members: dict[str, tuple[_Archive, str]]
) -> ScriptSpec:
    inside = posixpath.normpath(script.replace(os.sep, "/"))
    if os.path.isdir(real):
        raise ScriptError(f"script: {script} is a directory; name the file that has main(task_config)")
    if os.path.exists(real):
        source = _source(real)
        place = next((place for place, other in files.items() if other == real), None)
        if place is None:
            place = os.path.basename(real)
            _add(files, place, real)
    elif inside in files:
        place, real = inside, files[inside]
        source = _source(real)
    elif inside in members:
        (archive, _, most, _), name = members[inside]
        place, real = inside, f"{archive}/{name}"
        source = archives.read(archive, name, _FILES, _LONGEST_SCRIPT, most)
    else:
        near = nearest_file(script) or nearest(os.path.basename(script), sorted(members), ALIKE)
        raise ScriptError(f"script: there is no file {script}{near}")
    takes_context = context_entry(source, real)
    program = not takes_context and check_script(source, real)
    laid = tuple((r, p) for p, r in files.items())
    return ScriptSpec(real, place, laid, tuple(one[:3] for one in packed), program=program, context_entry=takes_context)


def _source(path: str) -> bytes:
    with opened(path, _SCRIPT) as f, _SCRIPT.ours(f"cannot read {path}"):
        source = f.read(_LONGEST_SCRIPT + 1)
    if len(source) > _LONGEST_SCRIPT:
        raise ScriptError(f"script: {path} is larger than {shown(_LONGEST_SCRIPT)}; it is not a script")
    return source


def read_local_text(path: str, parameter: str) -> str:
    """Return the text of a file of this machine, or behind a URL.

    Raises:
        UserFilesError: it cannot be read, is not UTF-8, or is too long.
    """
    blame = Blame(parameter, UserFilesError, _PLACE)
    with opened(fetch(path, parameter).path, blame) as f, blame.ours(f"cannot read {path}"):
        data = f.read(_LONGEST_SCRIPT + 1)
    if len(data) > _LONGEST_SCRIPT:
        raise blame.error(f"{path} is larger than {shown(_LONGEST_SCRIPT)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise blame.error(f"{path} is not UTF-8 (it has a byte 0x{e.object[e.start]:02x})") from None


def writes_output(source: bytes) -> int | None:
    """Return the line of the first `....output_writer.write(...)` or `.write_batch(...)` of a script; None if it has no such
    call.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("write", "write_batch"):
            owner = node.func.value
            if isinstance(owner, ast.Attribute) and owner.attr == "output_writer":
                return node.lineno
    return None


def saves_by_checkpoint(source: bytes) -> int | None:
    """Return the line of the first `task_config.checkpoint(...)` of a script, whatever `main` calls its argument; None if it has no
    such call."""
    tree = ast.parse(source)
    mains = [
        node.args.args[0].arg
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "main" and node.args.args
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "checkpoint":
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in ("task_config", *mains):
                return node.lineno
    return None


def read_script(spec: ScriptSpec) -> bytes:
    """Return the script's source."""
    if os.path.isfile(spec.real):
        return _source(spec.real)
    for archive, place, most in spec.archives:
        inside = posixpath.relpath(spec.path, place) if place else spec.path
        if spec.real == f"{archive}/{inside}":
            return archives.read(archive, inside, _FILES, _LONGEST_SCRIPT, most)
    raise ScriptError(f"script: {spec.real} is gone")


def lay_out(spec: ScriptSpec, work_dir: str) -> None:
    """Put the script and its files into an empty directory. Archives are unpacked first, so that a plain file replaces a member
    of the same name.

    Raises:
        JobError: a file has changed since it was checked, or there is no room.
    """
    tree = Tree(work_dir, Blame("user_files", JobError, _PLACE))
    for archive, place, most in spec.archives:
        archives.extract(archive, tree, place, most)
    for real, place in spec.files:
        with tree.blame.ours(f"cannot read {real}"):
            now = os.stat(real)
        tree.file(place, pieces_of(real, tree.blame), bool(now.st_mode & 0o111), now.st_mtime)
    tree.check_links()


def _add(files: dict[str, str], place: str, real: str) -> None:
    other = files.get(place)
    if other is not None and other != real:
        raise UserFilesError(f"user_files: {other} and {real} would both lie at {place}; rename one")
    files[place] = real
