"""Says how TaskManagers open the store that this process has open: fsspec's file system becomes the arguments of pyarrow's.

::

    S3FileSystem, as its client was made from the environment, files and options -> endpoint, region; keys, unless they expire
    GCSFileSystem                                                                -> endpoint
    HadoopFileSystem                                                             -> the name node and the user; its extra_conf
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import fsspec.asyn

from akrunner.io.paths import is_local, protocols
from akrunner.io.shared import DISKS, Place, Store, Unshared

#: Google's own address, and the answers of Amazon's that no setting has changed
_GOOGLE = "storage.googleapis.com"
_AMAZON = ("https://s3.amazonaws.com", "https://s3.{region}.amazonaws.com", "https://s3.{region}.amazonaws.com.cn")


def place_of(filesystem: Any, paths: Sequence[str], trusted: bool) -> Place:
    """Return where files lie, as other machines may open it.

    Args:
        filesystem: fsspec's file system.
        paths: the files on it.
        trusted: whether secrets may be sent to the machines. If not, they have to have credentials of their own.
    Raises:
        Unshared: only this process can open it.
    """
    if is_local(filesystem):
        return DISKS
    known = protocols(filesystem)
    make = next((_MAKERS[name] for name in known if name in _MAKERS), None)
    if make is None:
        raise Unshared(f"they do not read {known[0]}://, but s3://, gs:// and hdfs://")
    return make(filesystem, paths, trusted)


def _s3(fs: Any, paths: Sequence[str], trusted: bool) -> Store:
    buckets = {path.partition("/")[0] for path in paths}
    if len(buckets) > 1:
        raise Unshared("the files are in several buckets")
    if fs.requester_pays or fs.s3_additional_kwargs or fs.version_aware:
        raise Unshared(
            "it is opened with options (requester_pays, version_aware, s3_additional_kwargs) that Arrow does not have"
        )
    meta = fs.s3.meta
    settings = _s3_address(meta.endpoint_url, meta.region_name, *buckets)
    if (meta.config.s3 or {}).get("addressing_style") == "virtual":
        settings["force_virtual_addressing"] = True
    if fs.anon:
        return Store("s3", {**settings, "anonymous": True})
    return Store("s3", settings, _s3_keys(fs) if trusted else {})


def _s3_address(endpoint: str, region: str, bucket: str) -> dict[str, Any]:
    if endpoint in [one.format(region=region) for one in _AMAZON]:
        # a client of Python's goes to a bucket's region by itself, and Arrow's does not
        with contextlib.suppress(Exception):
            from pyarrow.fs import resolve_s3_region

            region = resolve_s3_region(bucket)
        return {"region": region}
    at = urlsplit(endpoint)
    if at.path.strip("/"):
        raise Unshared("the store's endpoint has a path, which Arrow does not take")
    return {"region": region, "endpoint_override": at.netloc, "scheme": at.scheme}


def _s3_keys(fs: Any) -> dict[str, str]:
    """Return the keys with which a file system was opened; {} if there are none, or they expire and are renewed (those of a
    machine's or a pod's role): TaskManagers then have their own."""
    keys: tuple[str | None, ...] = fs.key, fs.secret, fs.token
    if not (fs.key and fs.secret):
        given = [fs.client_kwargs.get(f"aws_{name}") for name in ("access_key_id", "secret_access_key", "session_token")]
        keys = tuple(given)
    if not (keys[0] and keys[1]):
        found = fsspec.asyn.sync(fs.loop, fs.session.get_credentials)
        if found is None or hasattr(found, "refresh_needed"):
            return {}
        keys = found.access_key, found.secret_key, found.token
    names = ("access_key", "secret_key", "session_token")
    return {name: str(key) for name, key in zip(names, keys) if key}


def _google(fs: Any, paths: Sequence[str], trusted: bool) -> Store:
    if fs.requester_pays or fs.version_aware:
        raise Unshared("it is opened with options (requester_pays, version_aware) that Arrow does not have")
    settings: dict[str, Any] = {}
    # the base of its requests: the address, and a path
    at = urlsplit(fs.base)
    if at.netloc != _GOOGLE:
        settings = {"endpoint_override": at.netloc, "scheme": at.scheme}
    if fs.credentials.method == "anon":
        settings["anonymous"] = True
    # tokens of Google's live for an hour, so none is sent
    return Store("gs", settings)


def _hadoop(fs: Any, paths: Sequence[str], trusted: bool) -> Store:
    given = fs.storage_options
    settings = {"host": given.get("host") or "default", "port": int(given.get("port") or 0)}
    if given.get("user"):
        settings["user"] = given["user"]
    conf = given.get("extra_conf")
    if conf and not trusted:
        raise Unshared(
            "it is opened with extra_conf=, which may have passwords, and with tls=False (--flink-no-tls) none is sent"
        )
    return Store("hdfs", settings, {"extra_conf": dict(conf)} if conf else {})


_MAKERS: dict[str, Callable[[Any, Sequence[str], bool], Store]] = {"s3": _s3, "gs": _google, "gcs": _google, "hdfs": _hadoop}
