"""The local paths of what a command names: `oss://` and `file://` URIs, resources of a project, plain paths."""

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
    """Finds the local paths of `oss://` URIs, relative paths and resources.

    Attributes:
        buckets: the job's buckets.
        dry: whether the job is only planned: then only the script itself is fetched, and no directory is made.
        folder: the directory in which a relative path is looked for if it is not found in the current directory.
        root: the root directory of the tables, None for the default.
        resources: the resources of projects: name -> file.
    """

    buckets: Buckets
    dry: bool = False
    folder: str = ""
    root: str | None = None
    resources: Mapping[str, str] = field(default_factory=dict)

    def read(self, uri: str) -> str:
        """Return the local path of a directory, or file, that the script reads.

        Raises:
            ConfigError: the OSS URI is invalid, or it cannot be read.
        """
        return self.buckets.planned(uri) if self.dry else self.buckets.folder(uri)

    def kept(self, uri: str) -> str:
        """Return the local path of a directory that the script writes.

        Raises:
            ConfigError: the OSS URI is invalid, or it cannot be written.
        """
        return self.buckets.planned(uri) if self.dry else self.buckets.kept(uri)

    def either(self, uri: str) -> str:
        """Return the local path of a URI in one of the script's own flags.

        The script may read it, and what the script writes there is uploaded at the end. A directory on this machine is made,
        unless the URI looks like a file: its last part has a dot.
        """
        file = "." in uri.partition("?")[0].rpartition("/")[2]
        return self.read(uri) if file or self.buckets.remote(uri) else self.kept(uri)

    def found(self, text: str, name: str) -> str:
        """Return the local path of a file that a command names, or its URL if it has to be downloaded.

        Args:
            text: the parameter's value.
            name: the parameter's name.
        Raises:
            ConfigError: there is no such file; the error says where it was looked for.
        """
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
            f"-D{parameter}: {text} is a resource of a project's, which here is a file: put {name} into the current "
            f"directory, or into {os.path.abspath(folders[-1])}"
        )


def program_of(parameters: Mapping[str, str], places: Places) -> tuple[ScriptSpec, list[str]]:
    """Return the program that -Dscript and -DentryFile name, and warnings about it.

    Raises:
        ConfigError: -Dscript is missing, or its file does not exist.
        ScriptError: the file is neither a .py nor an archive, or -DentryFile is missing or wrong.
    """
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
            f"entryFile is missing: -Dscript is {'a directory' if os.path.isdir(path) else 'an archive'} "
            f"({os.path.basename(path)}), and which file of it is run is for -DentryFile=main.py to say"
        )
    if entry.startswith("/") or ".." in entry.split("/"):
        raise ScriptError(f"-DentryFile={entry} must be a path in the archive")
    return collect_program(path, entry), []


def directories(text: str, places: Places) -> list[tuple[str, str]]:
    """Return the directories of -Dbuckets: for each, the URI without its query, and the local path. Both end with `/`.

    Raises:
        ConfigError: a URI does not end with `/`.
    """
    found = []
    for one in filter(None, map(_bare, text.split(","))):
        if not one.partition("?")[0].endswith("/"):
            raise ConfigError(f"-Dbuckets: invalid oss uri {one.partition('?')[0]!r}: it must end with '/'")
        found.append((one.partition("?")[0], places.read(one) if is_oss(one) else _own(one)))
    return found


def checkpoints(text: str, places: Places) -> tuple[str, str] | None:
    """Return the directory of -DcheckpointDir, as its URI without its query, and its local path; None if the text is empty.

    Raises:
        ConfigError: the OSS URI is invalid.
    """
    uri = _bare(text)
    if not uri:
        return None
    return uri.partition("?")[0], places.kept(uri) if is_oss(uri) else _own(uri)


def _own(uri: str) -> str:
    """Return the absolute path of a local directory, given as a path or a `file://` URI. A `/` at its end is kept.

    Raises:
        ConfigError: the URI has another scheme.
    """
    if "://" in uri and not uri.startswith("file://"):
        raise ConfigError(
            f"invalid oss uri {uri.partition('?')[0]!r}: it must begin with oss://, or be a directory of this machine"
        )
    path = os.path.abspath(os.path.expanduser(uri[7:] if uri.startswith("file://") else uri))
    return path + "/" * (uri.endswith("/") and path != "/")


def _bare(text: str) -> str:
    """Return the text without the blanks and quotes around it."""
    return text.strip().strip("'\"").strip()
