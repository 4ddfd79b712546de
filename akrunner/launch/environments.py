"""Makes, finds and removes environments by name, unpacks packed environments, and installs requirements on top of them."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from akrunner.errors import PythonEnvError, UserFilesError
from akrunner.foreign import ours, redacted
from akrunner.launch import archives, cache, fetch
from akrunner.launch.asking import ask
from akrunner.launch.downloads import sha256
from akrunner.launch.trees import Blame

#: the bytes that a requirements file may have
_REQUIREMENTS = 16 << 20
#: matches the start of a line of a requirements file: an option, a path, a URL, an archive, or a package and what may follow
#: its name
_REQUIREMENT = re.compile(
    r"[-./~$]|[A-Za-z][\w+.-]*:|\S+\.(whl|zip|tar\.(gz|bz2|xz))\b|[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\])?\s*($|[<>=!~(;@#-])",
    re.ASCII,
)
#: seconds that an interpreter may take to say its version
_BASE_SECONDS = 60.0


@dataclass(frozen=True)
class Recipe:
    """A named environment.

    Attributes:
        name: the name that `python_env` takes.
        python: the version of its interpreter; "": any that is supported.
        tensorflow: the start of its TensorFlow's version.
        packages: packages that are known to fit together.
        variable: the environment variable by which Alink's users name such an environment; "": there is none.
    """

    name: str
    python: str
    tensorflow: str
    packages: tuple[str, ...]
    variable: str = ""


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("tf1.15", "3.7", "1.15.", ("tensorflow==1.15.5", "numpy<1.19", "protobuf<3.21"), "TF115_PYTHON_ENV_PATH"),
        Recipe("tf2.3", "3.8", "2.3.", ("tensorflow==2.3.*", "protobuf<3.21"), "TF231_PYTHON_ENV_PATH"),
        Recipe("tf2", "", "2.", ("tensorflow>=2.16", "tf-keras>=2.16")),
    )
}


def created(name: str) -> str:
    """Return the directory where `create` makes an environment; it need not exist."""
    return cache.directory("envs", name)


def create(name: str) -> str:
    """Make a named environment with packages that are known to fit together. This takes minutes, and a network.

    Returns:
        The environment's directory.
    Raises:
        PythonEnvError: there is no such name, no interpreter for it, or its packages cannot be installed.
    """
    recipe = recipe_of(name)

    def make(folder: str) -> None:
        uv = shutil.which("uv")
        if uv is not None:
            base = sys.executable
            if recipe.python:
                try:
                    base = _base(recipe)
                except PythonEnvError:
                    base = recipe.python  # uv downloads this version itself
            os.rmdir(folder)  # uv must make the directory itself
            _called([uv, "venv", "--quiet", "--python", base, folder], name)
            _called([uv, "pip", "install", "--quiet", "--python", python_in(folder), *recipe.packages], name)
        else:
            base = sys.executable if not recipe.python else _base(recipe)
            _called([base, "-m", "venv", folder], name)
            pip = [python_in(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _called([*pip, *recipe.packages], name)
        # an interpreter that cannot write byte code would compile TensorFlow again at every start
        ask([python_in(folder), "-m", "compileall", "-qq", folder], None, _compiling(), most=None)

    with ours(PythonEnvError, f"{name}: cannot make it in {cache.shown()}"):
        return cache.made_once(created(name), make)


def remove(name: str) -> bool:
    """Remove an environment that `create` made. Returns: whether there was one."""
    recipe_of(name)
    with ours(PythonEnvError, f"{name}: cannot remove it from {cache.shown()}"):
        return cache.forget(created(name))


def recipe_of(name: str) -> Recipe:
    """Return the recipe of a named environment. Raises: PythonEnvError: there is no such name."""
    if name not in RECIPES:
        raise PythonEnvError(f"no environment is called {name!r}; known: {', '.join(RECIPES)}")
    return RECIPES[name]


def candidates(recipe: Recipe) -> Iterator[str]:
    """Yield interpreters that may be of the environment that a name stands for, best first.

    The order is: the one that Alink's variable names, the one that `create` made, those of AKRUNNER_ENV_PATH, this process's,
    those of pyenv and PATH.

    Raises:
        PythonEnvError: Alink's variable names a path that does not exist.
    """
    given = os.environ.get(recipe.variable) if recipe.variable else None
    if given:
        if not os.path.exists(os.path.expanduser(given)):
            raise PythonEnvError(
                f"python_env={recipe.name!r}: {recipe.variable}={given}: there is no such directory; unset it, or name another"
            )
        given = os.path.expanduser(given)
        yield python_in(given) if os.path.isdir(given) else given
    if os.path.isdir(created(recipe.name)):
        yield python_in(created(recipe.name))
    yield from configured()
    yield sys.executable
    yield from found(recipe.python)


def configured() -> Iterator[str]:
    """Yield the interpreters of the environments that AKRUNNER_ENV_PATH lists, separated as in PATH."""
    for folder in filter(None, os.environ.get("AKRUNNER_ENV_PATH", "").split(os.pathsep)):
        with contextlib.suppress(PythonEnvError):
            yield python_in(folder) if os.path.isdir(folder) else folder


def found(version: str = "") -> Iterator[str]:
    """Yield the interpreters of pyenv and on PATH. A shim on PATH may exist and yet not run: the caller must try it."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    there = glob.glob(os.path.join(pyenv, "versions", f"{version}*", "bin", "python"))
    yield from sorted(there, key=_by_number, reverse=True)
    names = [f"python{version}"] if version else [f"python3.{minor}" for minor in range(14, 6, -1)]
    # a shim of pyenv starts one of the interpreters above, and hides those behind it
    shims = os.path.join(os.path.abspath(pyenv), "shims")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    behind = os.pathsep.join(one for one in folders if os.path.abspath(one) != shims)
    seen = set()
    for path in filter(None, (shutil.which(name, path=behind) for name in [*names, "python3"])):
        # python3 beside the python3.11 that it links to is the same interpreter; a venv's is another than the one it was made
        # from
        where = (os.path.dirname(os.path.abspath(path)), os.path.realpath(path))
        if where not in seen:
            seen.add(where)
            yield path


def _by_number(path: str) -> list[str | int]:
    """Return a key to sort paths by, in which 3.9 comes before 3.11."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", path))]


def unpacked(archive: str) -> str:
    """Unpack a packed environment (conda-pack, or a venv as tar or zip; local or a URL), unless it was unpacked before.

    Returns:
        The environment's directory.
    Raises:
        PythonEnvError: the archive is missing, no archive or too large, or has no interpreter.
    """
    fetched = fetch.fetch(archive, "python_env", PythonEnvError)
    path, blame = fetched.path, Blame("python_env", PythonEnvError, given=fetched.given)

    def make(folder: str) -> None:
        archives.unpack(path, folder, blame, fetched.most, may_lead_out=_leads_to_an_interpreter)
        python = python_in(_root(folder, archive))
        mender = os.path.join(os.path.dirname(python), "conda-unpack")
        if os.path.exists(mender):
            # replaces the prefix that it was packed with by the directory where it lies now
            _called([python, mender], archive)

    with blame.ours(f"cannot unpack {archive} into {cache.shown()}"):
        stat = os.stat(path)
        target = cache.directory("unpacked", cache.key(os.path.realpath(path), str(stat.st_size), str(stat.st_mtime_ns)))
        return _root(cache.made_once(target, make), archive)


def _leads_to_an_interpreter(place: str) -> bool:
    """Whether a link may be that of a venv to the interpreter it was made from, wherever that is: bin/python, bin/python3.11.

    No other link of an environment needs to lead outside; those of conda-pack and of venv lead to places within the
    environment.
    """
    folder, name = os.path.split(place)
    return os.path.basename(folder) == "bin" and name.startswith(("python", "pypy"))


def there(python_env: str) -> str:
    """Return the interpreter that a path means on the machine where the task runs: the path itself, or the interpreter in that
    directory or archive.

    Raises:
        PythonEnvError: there is no such interpreter.
    """
    if is_packed(python_env):
        return python_in(unpacked(python_env))
    if os.path.isdir(python_env):
        return python_in(python_env)
    if not os.access(python_env, os.X_OK):
        raise PythonEnvError(f"python_env: there is no {python_env}")
    return python_env


def is_packed(python_env: str) -> bool:
    """Whether a `python_env` names an archive, or a URL to download."""
    return fetch.is_url(python_env) or (archives.is_archive(python_env.partition("#")[0]) and not os.path.isdir(python_env))


def check_listed(requirements: str) -> None:
    """Raises: UserFilesError: a line of the file is nothing that pip can install."""
    with open(requirements, "rb") as file:
        text = file.read(_REQUIREMENTS).decode("utf-8-sig", "replace").replace("\\\n", " ")
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#") and not _REQUIREMENT.match(line):
            raise UserFilesError(
                f"requirements: {requirements} is no file of requirements: {line[:60]!r} is nothing that pip installs"
            )


def overlay(python: str, requirements: str) -> str:
    """Return a directory with the packages that a requirements file asks for, for one interpreter. They are installed once.

    Raises:
        UserFilesError: there is no such file.
        PythonEnvError: pip cannot install them.
    """
    path = fetch.fetch(requirements, "requirements", usual=_REQUIREMENTS).path
    if os.path.isdir(path):
        raise UserFilesError(f"requirements: {path} is a directory; name the file with the requirements")
    content = sha256(path, Blame("requirements"))

    def make(folder: str) -> None:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts"]
        _called([*pip, "--target", folder, "-r", path], f"requirements {requirements}")

    with ours(PythonEnvError, f"requirements: cannot install them in {cache.shown()}"):
        identity = cache.key(os.path.realpath(python), str(os.stat(python).st_mtime_ns), content)
        return cache.made_once(cache.directory("overlays", identity), make)


def _base(recipe: Recipe) -> str:
    """Find an interpreter of the version that a recipe needs, to make a venv with."""
    for path in found(recipe.python):
        try:
            done = ask([path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], _BASE_SECONDS)
        except OSError:
            continue
        if done.code == 0 and done.out.strip() == recipe.python:
            return path
    raise PythonEnvError(
        f"{recipe.name} needs Python {recipe.python}, and none was found by pyenv or on PATH; install one (`pyenv install "
        f"{recipe.python}`), or uv, which brings its own"
    )


def _root(folder: str, archive: str) -> str:
    """Return the directory of the environment in an unpacked archive: the top, or the only directory at the top."""
    inside = os.listdir(folder)
    for path in [folder] + ([os.path.join(folder, inside[0])] if len(inside) == 1 else []):
        if os.path.exists(os.path.join(path, "bin")):
            return path
    raise PythonEnvError(
        redacted(f"python_env: {archive} has no bin/python in it (there is {', '.join(sorted(inside)[:5]) or 'nothing'})")
    )


def python_in(folder: str) -> str:
    for name in ("python", "python3"):
        path = os.path.join(folder, "bin", name)
        if os.path.exists(path):
            return os.path.abspath(path)
    raise PythonEnvError(f"python_env: {folder} is a directory without bin/python; name a venv, or an interpreter")


def _called(command: list[str], what: str) -> None:
    try:
        done = ask(command, None, _compiling(), most=None)
    except OSError as e:
        raise PythonEnvError(redacted(f"{what}: cannot run {command[0]}: {e}")) from None
    if done.code:
        said = (done.err.strip() or done.out.strip())[-1500:]
        shown = " ".join(command[:6])
        raise PythonEnvError(redacted(f"{what}: `{shown} ...` failed with exit code {done.code}:\n{said}"))


def _compiling() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
