"""Turns `oss://bucket[.host]/path` into a path on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from akrunner.errors import ConfigError
from akrunner.tables.chosen import tables_root
from akrunner.tables.layout import BUCKETS

SCHEME = "oss://"


def is_oss(text: object) -> bool:
    return isinstance(text, str) and text[: len(SCHEME)].lower() == SCHEME


def local_path(uri: str, roots: Mapping[str, str] | None = None, root: str | None = None) -> str:
    """Return the path on this machine for the files of a bucket.

    Args:
        uri: `oss://bucket/path` or `oss://bucket.host/path`. `?role_arn=...&host=...` behind it is cut off. A `/` at its end
            is kept.
        roots: bucket -> its directory (`--oss-root BUCKET=DIR`); other buckets are below the root of the local tables, in
            `oss/BUCKET`.
        root: the directory of the local tables.
    Raises:
        ConfigError: the text is no such URI, or the path would lead out of the bucket's directory.
    """
    if not is_oss(uri):
        raise ConfigError(f"invalid oss uri {uri!r}: it must begin with {SCHEME}")
    bucket, path = parts_of(uri)
    given = (roots or {}).get(bucket)
    base = os.path.abspath(os.path.expanduser(given)) if given else os.path.join(tables_root(root), BUCKETS, bucket)
    found = os.path.normpath(os.path.join(base, path)) if path else base
    return found + "/" if path.endswith("/") or (not path and uri.partition("?")[0].endswith("/")) else found


def parts_of(uri: str) -> tuple[str, str]:
    """Return (bucket, path in it).

    Raises:
        ConfigError: the text is no URI of OSS.
    """
    place = uri[len(SCHEME) :].partition("?")[0]
    authority, _, path = place.partition("/")
    bucket = authority.partition(".")[0].lower()
    if not bucket or not all(c.isalnum() or c in "-_" for c in bucket) or not bucket.isascii():
        raise ConfigError(f"invalid oss uri {uri!r}: it must be oss://bucket/path, or oss://bucket.host/path")
    if "\0" in path or ".." in path.split("/"):
        raise ConfigError(f"invalid oss uri {uri!r}: its path has a NUL, or .. in it")
    return bucket, path.lstrip("/")
