"""Where on this machine is what a command names: `oss://`, `file://`, resources of a project, plain paths."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from akrunner.checks import nearest_file
from akrunner.errors import ConfigError, ScriptError
from akrunner.launch import archives, fetch
from akrunner.launch.files import collect_program
from akrunner.spec import ScriptSpec
from akrunner.tables.buckets import Buckets
from akrunner.tables.chosen import tables_root
from akrunner.tables.oss import is_oss

_RESOURCE = re.compile(r"(?:odps://)?(?P<project>\w+)/resources/(?P<name>[^/?]+)\Z")
_ARCHIVES = ".tar.gz, .tgz or .zip"


@dataclass(frozen=True)
class Places:
    """What `oss://` and relative paths lead to.

    Attributes: buckets: of the job; dry: nothing is made ready for a script, but for the script itself; folder: where relative paths begin
        if there is nothing in the current directory; root: of the tables; resources: of projects: name -> file.
    """

    buckets: Buckets
    dry: bool = False
    folder: str = ""
    root: str | None = None
    resources: Mapping[str, str] = field(default_factory=dict)

    def read(self, uri: str) -> str:
        """A directory, or a file, the script reads. Raises: ConfigError: invalid oss uri; it cannot be read."""
        return self.buckets.planned(uri) if self.dry else self.buckets.folder(uri)

    def kept(self, uri: str) -> str:
        """A directory the script writes. Raises: ConfigError: invalid oss uri; it cannot be written."""
        return self.buckets.planned(uri) if self.dry else self.buckets.kept(uri)

    def either(self, uri: str) -> str:
        """What a flag of the script's own names: it is read, and what is written there is uploaded at the end. A directory of this machine
        is made, unless it is a file by the look of it."""
        file = "." in uri.partition("?")[0].rpartition("/")[2]
        return self.read(uri) if file or self.buckets.remote(uri) else self.kept(uri)

    def found(self, text: str, name: str) -> str:
        """A file of a command. Args: name: of its parameter. Raises: ConfigError: it is not there; it says where it was looked for."""
        text = _bare(text)
        if fetch.is_url(text) and not is_oss(text) and not text.startswith(("file:", "odps:")):
            return text
        resource = _RESOURCE.match(text)
        if resource is not None or text.startswith(("@@", "file://@@")):
            return self._resource(resource["name"] if resource is not None else text.rpartition("@@")[2], text, name)
        tried = self._paths(text)
        for path in tried:
            if os.path.exists(path):
                return path
        how = ""
        if is_oss(text):
            how = f": put it there, name its bucket's directory (--oss-root BUCKET=DIRECTORY), or give the file itself: -D{name}=file:///..."
        shown = f", which {text.partition('?')[0]} stands for here" if is_oss(text) else ""
        raise ConfigError(f"-D{name}: there is no {tried[0]}{shown}{how}{nearest_file(tried[0])}")

    def _paths(self, text: str) -> list[str]:
        if is_oss(text):
            return [self.buckets.file(text)]
        if text.startswith("file:"):
            text = text[5:]
            # file:///abs, file://rel, file:rel
            text = text[2:] if text.startswith("//") else text
        path = os.path.expanduser(text)
        beside = [os.path.join(self.folder, path)] if self.folder and not os.path.isabs(path) else []
        return [os.path.abspath(one) for one in dict.fromkeys([path, *beside])]

    def _resource(self, name: str, text: str, parameter: str) -> str:
        folders = [*dict.fromkeys([self.folder or ".", "."]), os.path.join(tables_root(self.root), "oss", "resources")]
        for folder in folders:
            path = os.path.abspath(os.path.join(folder, os.path.expanduser(self.resources.get(name, name))))
            if os.path.exists(path):
                return path
        raise ConfigError(
            f"-D{parameter}: {text} is a resource of a project's, which here is a file: put {name} into the current directory, or into "
            f"{os.path.abspath(folders[-1])}"
        )


def program_of(parameters: Mapping[str, str], places: Places) -> tuple[ScriptSpec, list[str]]:
    """What -Dscript and -DentryFile name, and what is to be said of it. Raises: ConfigError, ScriptError."""
    given, entry = parameters.get("script", ""), _bare(parameters.get("entryFile", ""))
    if not given:
        raise ConfigError("-Dscript is missing: name the code, a .py or an archive: -Dscript=file:///path/train.py")
    path = places.found(given, "script")
    if not os.path.isdir(path) and not archives.is_archive(path.partition("#")[0]):
        if not path.partition("?")[0].partition("#")[0].lower().endswith(".py"):
            raise ScriptError(f"-Dscript: {os.path.basename(path)} is neither a .py nor an archive ({_ARCHIVES})")
        spec = collect_program(path)
        odd = entry and os.path.basename(entry) != os.path.basename(path)
        return spec, ["entryFile is for archives, and is passed over: the script is a file"] if odd else []
    if not entry:
        raise ScriptError(
            f"entryFile is missing: -Dscript is {'a directory' if os.path.isdir(path) else 'an archive'} ({os.path.basename(path)}), and which file "
            "of it is run is for -DentryFile=main.py to say"
        )
    if entry.startswith("/") or ".." in entry.split("/"):
        raise ScriptError(f"-DentryFile={entry} must be a path in the archive")
    return collect_program(path, entry), []


def directories(text: str, places: Places) -> list[tuple[str, str]]:
    """Those of -Dbuckets, as they were written and where they are; each ends with `/`. Raises: ConfigError: one does not."""
    found = []
    for one in filter(None, map(_bare, text.split(","))):
        if not one.partition("?")[0].endswith("/"):
            raise ConfigError(f"-Dbuckets: invalid oss uri {one.partition('?')[0]!r}: it must end with '/'")
        found.append((one.partition("?")[0], places.read(one) if is_oss(one) else _own(one)))
    return found


def checkpoints(text: str, places: Places) -> tuple[str, str] | None:
    """Of -DcheckpointDir, as it was written and where it is; None where there is none. Raises: ConfigError: invalid oss uri."""
    uri = _bare(text)
    if not uri:
        return None
    return uri.partition("?")[0], places.kept(uri) if is_oss(uri) else _own(uri)


def _own(uri: str) -> str:
    """A directory of this machine that is named by itself; a `/` at the end stays. Raises: ConfigError: it is another's."""
    if "://" in uri and not uri.startswith("file://"):
        raise ConfigError(
            f"invalid oss uri {uri.partition('?')[0]!r}: it must begin with oss://, or be a directory of this machine"
        )
    path = os.path.abspath(os.path.expanduser(uri[7:] if uri.startswith("file://") else uri))
    return path + "/" * (uri.endswith("/") and path != "/")


def _bare(text: str) -> str:
    """Without blanks and quotes around it."""
    return text.strip().strip("'\"").strip()
