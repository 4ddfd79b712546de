"""Translation of any library's exception (a file system's, a source's, a driver's) into one of akrunner's own.

The message is one line, has no secrets, and says what to set or install.

::

    with ours(SourceError, "source: cannot open s3://b/a.csv"):    NoCredentialsError, ImportError, OSError, ...
        ...                                                        -> SourceError("source: cannot open s3://b/a.csv: no credentials ...")
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from akrunner.errors import AkrunnerError, ConfigError, JobError
from akrunner.redact import redacted, secrets

_LONGEST, _LONGEST_ANSWER = 600, 120
#: the module of aiohttp's exceptions about what is no HTTP
_NO_HTTP = "aiohttp.http_exceptions"
#: what is said of a text or a value with a number that Python does not read or write
LONG_NUMBER = "a number has thousands of digits"
#: the most lines that a library's exception may have to be shown as the cause of akrunner's
_LINES = 20
#: a missing package's import name -> its name for pip
_PACKAGES = {
    "adlfs": "adlfs",
    "aiohttp": "'fsspec[http]'",
    "gcsfs": "gcsfs",
    "huggingface_hub": "huggingface_hub",
    "odps": "'akrunner[odps]'",
    "oss2": "'akrunner[odps]'",
    "ocifs": "ocifs",
    "ossfs": "ossfs",
    "paramiko": "paramiko",
    "pygit2": "pygit2",
    "requests": "requests",
    "s3fs": "s3fs",
    "smbclient": "smbprotocol",
}
_AWS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), and AWS_ENDPOINT_URL for a server other than Amazon's"
#: error code of an S3 server's answer -> what it means
_S3 = {
    "NoSuchBucket": "there is no such bucket: is its name right (one to write to must be created first)? AWS_ENDPOINT_URL "
    "says at which server, if not Amazon's",
    "NoSuchKey": "there is no such object",
    "NoSuchUpload": "the upload was ended by somebody else; is a rule of the bucket ending uploads early?",
    "404": "there is no such bucket or object; AWS_ENDPOINT_URL says at which server",
    "403": f"access denied; check {_AWS}",
    "AccessDenied": f"access denied; check what the credentials may do, and {_AWS}",
    "InvalidAccessKeyId": "the server does not know the key in AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "AWS_SECRET_ACCESS_KEY does not fit AWS_ACCESS_KEY_ID",
    "ExpiredToken": "the credentials have expired; renew AWS_SESSION_TOKEN",
    "InvalidToken": "AWS_SESSION_TOKEN is not valid",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the server's; set it",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set AWS_DEFAULT_REGION",
    "PermanentRedirect": "the bucket is in another region; set AWS_DEFAULT_REGION",
    "IllegalLocationConstraintException": "the bucket is in another region; set AWS_DEFAULT_REGION",
    "SlowDown": "the server asked to slow down, also after several tries",
    "503": "the server is not available, also after several tries",
    "ServiceUnavailable": "the server is not available, also after several tries",
    "500": "the server failed, also after several tries",
    "InternalError": "the server failed, also after several tries",
}
_KEYS = "ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or the file of ODPS_CONFIG_FILE_PATH"
#: beginning of MaxCompute's answer -> what it means
_MAXCOMPUTE = {
    "ODPS-0410051": f"MaxCompute does not know the access key's id; check {_KEYS}",
    "ODPS-0410042": f"the secret does not fit the access key's id; check {_KEYS}",
    "ODPS-0410061": f"the key's temporary token is not valid; check {_KEYS}",
    "ODPS-0410": f"MaxCompute refused the credentials; check {_KEYS}",
    "ODPS-0420111": "MaxCompute has no such project at this endpoint (or the key may not see it); check its name and "
    "ODPS_ENDPOINT",
    "NoSuchDownload": "the download session has expired, also one opened anew",
    "NoSuchUpload": "the upload session has expired (MaxCompute keeps one for 24 hours); nothing was written: run the job again",
    "NoSuchPartition": "there is no such partition",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the server's; set it",
}
#: error code of OSS's answer -> what it means
_OSS = {
    "InvalidAccessKeyId": "OSS does not know the access key's id; check OSS_ACCESS_KEY_ID, or ALIBABA_CLOUD_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret does not fit the access key's id; check OSS_ACCESS_KEY_SECRET, or "
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "SecurityTokenExpired": "the credentials have expired; renew the token",
    "InvalidSecurityToken": "the temporary token is not valid; check OSS_SESSION_TOKEN, or ALIBABA_CLOUD_SECURITY_TOKEN",
    "AccessDenied": "access denied; check what the key may do, and that the bucket is at this endpoint (OSS_ENDPOINT)",
    "NoSuchBucket": "there is no such bucket at this endpoint; check its name and OSS_ENDPOINT",
    "NoSuchKey": "there is no such object",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the server's; set it",
}
_PG_PASSWORD = "it comes from PGPASSWORD, ~/.pgpass, or &password_file=FILE in the URL"
#: (pattern to search in an exception's type and text, what it means); the first that matches is taken
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"NoCredentialsError|NoAuthTokenError|PartialCredentialsError", f"no credentials for S3: set {_AWS}"),
    # without credentials, deltalake asks Amazon's machines for those of the machine
    (r"169\.254\.169\.254", f"no credentials for S3: set {_AWS}"),
    (r"ProfileNotFound", "AWS_PROFILE names a profile that is in no file of credentials"),
    (r"libjvm|libhdfs", "hdfs:// needs a Java and Hadoop's client on this machine (JAVA_HOME, HADOOP_HOME, CLASSPATH); "
    "webhdfs:// needs neither"),
    (r"DefaultCredentialsError|Anonymous caller", "no credentials for Google's storage: set GOOGLE_APPLICATION_CREDENTIALS"),
    (r"connection_string or account_name", "no account for Azure's storage: set AZURE_STORAGE_CONNECTION_STRING, or "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    (r"ClientAuthenticationError", "Azure's storage refused the credentials; check AZURE_STORAGE_CONNECTION_STRING"),
    (r"fe_sendauth: no password supplied", f"PostgreSQL asks for a password: {_PG_PASSWORD}"),
    (r"FATAL:  password authentication failed", f"PostgreSQL refuses the user or the password: {_PG_PASSWORD}"),
    (r"GatedRepoError|RepositoryNotFoundError|LocalTokenNotFoundError", "Hugging Face has no such repository, or none that "
    "may be seen: check the name and HF_TOKEN"),
    # `akrunner.io.systems.sqlite` waits so long
    (r"\[SQLite\].*database is locked", "another program has had the file locked for a minute (database is locked): end its "
    "transaction, or start again when it has ended"),
    (r"error_perm: (530|331|332)", "the FTP server refused the login; write ftp://user:password@host/path"),
    (r"CERTIFICATE_VERIFY_FAILED", "the server's certificate is signed by nobody this machine trusts; SSL_CERT_FILE names a "
    "file of those to trust"),
    (r"FileSystem\.__init__\(\) missing .*argument", "this file system needs options that a URL cannot hold; open it "
    "yourself, and give what comes of it"),
)  # fmt: skip


#: the schemes of URLs that no file system has: systems that keep tables, and streams
_OUR_SCHEMES = ("postgresql", "sqlite", "duckdb", "delta", "iceberg", "flightsql", "snowflake", "lance", "datasets", "odps", "kafka", "redis")  # fmt: skip
#: words of a database or a library for a full disk, which it tells without an errno -> the errno
_FULL = {
    "database or disk is full": errno.ENOSPC,
    os.strerror(errno.ENOSPC): errno.ENOSPC,
    os.strerror(errno.EDQUOT): errno.EDQUOT,
}


@contextlib.contextmanager
def ours(kind: type[AkrunnerError], what: str, at: str | None = None) -> Iterator[None]:
    """Turn an exception that a library raises in the block into `kind`, with the message "WHAT: the library's first line".

    If the meaning of the library's exception is known, the message has better words than the library's. akrunner's own
    exceptions pass (with the secrets of `what` hidden), and so do exceptions that are no `Exception` (Ctrl-C). If the machine
    has run out of something (`shortage`), neither the input nor the output is to blame: a plain `ConfigError` or `JobError` is
    raised.
    Args:
        kind: the exception to raise.
        what: names the parameter and what was tried: "source: cannot open s3://b/a.csv".
        at: the local path that was written, so that a full disk can be named.
    """
    try:
        yield
    except AkrunnerError as e:
        hidden = secrets(what)
        if hidden:
            _hide(e, hidden)
        raise
    except BaseException as e:
        # a panic in Rust code (polars) is a BaseException but no Exception
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        hidden = secrets(what)
        made = (_blameless(kind) if shortage(e) else kind)(f"{redacted(what)}: {redacted(in_words(e, at), hidden)}")
        if any(redacted(_text(one), hidden) != _text(one) or _text(one).count("\n") > _LINES for one in _chain(e)):
            # the traceback would show what the message hides: secrets, or 163 lines about a Java library
            raise made from None
        raise made from e


def _blameless(kind: type[AkrunnerError]) -> type[AkrunnerError]:
    return next((base for base in (ConfigError, JobError) if issubclass(kind, base)), kind)


@contextlib.contextmanager
def underway(kind: type[JobError], what: str, at: str | None = None) -> Iterator[None]:
    """Translate exceptions as `ours` does, in a block that runs while the job runs.

    A `ConfigError` becomes `kind`, too, as it would say that nothing was started. So does `sys.exit()` in a user's generator:
    it ends the job, and not the host.
    """
    try:
        with ours(kind, what, at):
            yield
    except ConfigError as e:
        _hide(e, ())
        raise (_blameless(kind) if shortage(e) else kind)(str(e)) from e
    except SystemExit as e:
        hidden = secrets(what)
        words = redacted(_text(e), hidden)
        raise kind(f"{redacted(what)}: {type(e).__name__}: {words}") from (e if words == _text(e) else None)


def _hide(error: AkrunnerError, hidden: Sequence[str]) -> None:
    """Replace the secrets in `hidden` in the message of one of akrunner's own exceptions."""
    if error.args and isinstance(error.args[0], str):
        error.args = (redacted(error.args[0], hidden), *error.args[1:])


def in_words(error: BaseException, at: str | None = None) -> str:
    """Return a library's exception as half a sentence: what it means and what to set, or its first line.

    The text is never more than one line, and has no secrets.
    Args: at: the local path that was written.
    """
    chain = _chain(error)
    written_out = next((number for one in chain for words, number in _FULL.items() if words in _text(one)), None)
    if at is not None and written_out is not None:
        return redacted(disk_full(at, written_out))
    for one in chain:
        known = next((words for words in (look(one) for look in _LOOKS) if words), None)
        if known:
            return redacted(known)
    full = next((one for one in chain if getattr(one, "errno", None) in (errno.ENOSPC, errno.EDQUOT)), None)
    if isinstance(full, OSError):
        return redacted(disk_full(at or _local(full.filename), full.errno))
    return redacted(_plain(error))


def disk_full(path: str | None, number: int | None = errno.ENOSPC) -> str:
    """Return half a sentence that says which disk is full, and how much is free on it.

    Args: path: a path on the disk, None if it is not known; number: ENOSPC, or EDQUOT for a quota.
    """
    what = "the disk quota is used up" if number == errno.EDQUOT else "the disk is full"
    no_inodes = False
    try:
        where = os.path.realpath(path or "")
        while path and not os.path.exists(where):
            where = os.path.dirname(where)
        free = shutil.disk_usage(where).free if path else None
        if path and number == errno.ENOSPC:
            found = os.statvfs(where)
            # a file system that does not count inodes reports 0 of them in total
            no_inodes = bool(found.f_files and not found.f_favail and free)
        while path and not os.path.ismount(where):
            where = os.path.dirname(where)
    except (OSError, ValueError):
        free = None
    if no_inodes:
        return f"no more files fit on the disk: it has no inodes left, and {free:,} bytes free, on {where}; remove files that nobody needs"
    return f"{what}: {free:,} bytes free on {where}" if free is not None else what


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exception, its cause, the cause's cause and so on; of an exception group, the first exception."""
    found: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in found and len(found) < 20:
        found.append(one)
        inner = getattr(one, "exceptions", None)
        group = inner[0] if isinstance(inner, tuple) and inner and isinstance(inner[0], BaseException) else None
        one = group or one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return found


#: errno of something the system has too little of, or refuses to do -> which limit it is
_LIMITS = {
    errno.EMFILE: "too many files are open: this process may open no more (ulimit -n); fewer tasks (num_workers=, num_ps=) "
    "need fewer",
    errno.ENFILE: "too many files are open on this machine; fewer tasks (num_workers=, num_ps=) need fewer",
    errno.EAGAIN: "this user may start no more processes or threads (ulimit -u, or for want of memory -v); fewer tasks "
    "(num_workers=, num_ps=) need fewer",
    errno.EFBIG: "the file would be larger than allowed (ulimit -f, or the file system)",
    errno.EROFS: "the file system is read-only",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ESTALE: "the network file system has lost it (stale file handle)",
    errno.EIO: "the disk or network file system failed (input/output error)",
}

#: words of the dynamic linker if there is no memory for a library
_NO_ROOM = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")

#: words of Python and of Arrow if a thread cannot be started
_NO_THREAD = ("start new thread", "launch worker thread")


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _plain(error: BaseException) -> str:
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    # of a key that exists, PostgreSQL tells in a line of its own which row has it
    first += "".join(f"; {line}" for line in lines[1:] if line.startswith("DETAIL:"))
    if isinstance(error, OSError) and isinstance(error.strerror, str) and error.strerror:
        first = error.strerror
    elif isinstance(error, FileNotFoundError) and " " not in first:
        # some file systems raise it with only the path as its message
        first = f"there is no such file ({first})" if first else "there is no such file"
    first = "".join(c if c.isprintable() else " " for c in first)
    first = first if len(first) <= _LONGEST else first[:_LONGEST] + "..."
    return first if len(first) > 12 else f"{type(error).__name__}: {first}".rstrip(": ")


def _local(name: Any) -> str | None:
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else None


# -- each function looks at one exception, and returns what it means, or "" if it does not know it


def _locale(error: BaseException) -> str:
    """Explain an error about a path with letters that the locale does not have; "" if the error is another one.

    Python keeps the bytes of such a path as surrogates, which libraries in C++ do not take.
    """
    encoding = sys.getfilesystemencoding()
    if encoding.replace("-", "").lower() == "utf8":
        return ""
    path = isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed" and "/" in str(error.object)
    # std::bad_cast is what DuckDB says of such a path
    if not path and _text(error) != "std::bad_cast":
        return ""
    return (
        f"a name in the path has letters beyond ASCII, and with this locale Python takes names for {encoding}; "
        "set LC_ALL=C.UTF-8, or PYTHONUTF8=1, and start again"
    )


def _package(error: BaseException) -> str:
    if not isinstance(error, ImportError) or not re.search(r"No module named|install|require", _text(error), re.IGNORECASE):
        return ""
    # fsspec's own exception has the package only in its message; Python's, from which it is raised, has it as `name`
    name = error.name or next((one for one in _PACKAGES if re.search(rf"\b{one}\b", _text(error))), "")
    top = name.partition(".")[0]
    if "HTTPFileSystem" in _text(error):
        top = "aiohttp"
    return f"the package {top} is missing: pip install {_PACKAGES.get(top, top)}" if top else ""


def _s3(error: BaseException) -> str:
    response = getattr(error, "response", None)
    if not isinstance(response, dict) or not isinstance(response.get("Error"), dict):
        return ""
    code = str(response["Error"].get("Code", ""))
    message = str(response["Error"].get("Message", ""))
    return _S3.get(code) or f"the S3 server answered {code}: {message}".rstrip(": ")


def _maxcompute(error: BaseException) -> str:
    if type(error).__module__.partition(".")[0] != "odps" or not hasattr(error, "request_id"):
        return ""
    message = str(error.args[0]) if error.args else ""
    told = f"{getattr(error, 'code', None) or ''} {type(error).__name__} {message}"
    known = next((words for start, words in _MAXCOMPUTE.items() if re.search(rf"\b{start}", told)), "")
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return known or f"MaxCompute answered {first or type(error).__name__}"[:_LONGEST]


def _oss(error: BaseException) -> str:
    if type(error).__module__ != "oss2.exceptions":
        return ""
    if not getattr(error, "code", ""):
        # an error of the oss2 library itself, whose text is a dict
        body = getattr(error, "body", "")
        return body.partition("ClientError: ")[2] if isinstance(body, str) else ""
    code = str(getattr(error, "code", ""))
    return _OSS.get(code) or f"OSS answered {code}: {getattr(error, 'message', '')}".rstrip(": ")[:_LONGEST]


def _meaning(error: BaseException) -> str:
    told = f"{type(error).__name__}: {_text(error)}"
    return next((words for pattern, words in _MEANINGS if re.search(pattern, told)), "")


def _chained(error: BaseException) -> str:
    """Return an error of deltalake, which has each cause on a line of its own with colours, as one line."""
    if "\u21b3" not in _text(error):
        return ""
    lines = [re.sub(r"\x1b\[[0-9;]*m|\u21b3", "", line).strip() for line in _text(error).splitlines()]
    return ": ".join(line for line in lines if line)[:_LONGEST]


def _unknown(error: BaseException) -> str:
    found = re.search(r"Protocol not known: (\S+)", _text(error)) if isinstance(error, ValueError) else None
    if found is None:
        return ""
    # it is fsspec that says so
    protocols: list[str] = getattr(sys.modules.get("fsspec"), "available_protocols", list)()
    near = difflib.get_close_matches(found[1].lower(), [*_OUR_SCHEMES, *sorted(protocols)], 1, 0.7)
    meant = f"; did you mean '{near[0]}://'?" if near else ""
    return (
        f"no file system is called {found[1]}://{meant} (known are s3, gs, abfs, hdfs, http, ftp, sftp "
        "and others; databases: postgresql, sqlite, duckdb; streams: kafka, redis, files)"
    )


def _connection(error: BaseException) -> str:
    named = {kind.__name__ for kind in type(error).__mro__}
    place = re.search(r"endpoint URL: \"(\w+://[^/\"]+)|host (\S+:\d+)", _text(error))
    at = f" to {place.group(1) or place.group(2)}" if place else ""
    hint = "; is AWS_ENDPOINT_URL right?" if type(error).__module__.startswith("botocore") else ""
    if "NameResolutionError" in named:
        return "no machine of that name was found"
    if "NewConnectionError" in named:
        # before the timeouts: urllib3's NewConnectionError is a subclass of one
        return f"cannot connect{at}: nobody listens there, or the network does not reach it"
    if named & {
        "TimeoutError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ServerTimeoutError",
        "ConnectTimeout",
        "ReadTimeout",
    }:
        return f"no answer in time{at}{hint}"
    if "gaierror" in named:
        return "no machine of that name was found"
    if named & {"EndpointConnectionError", "ClientConnectorError", "ConnectionRefusedError"}:
        return f"cannot connect{at}: nobody listens there, or the network does not reach it{hint}"
    if named & {
        "ConnectionResetError",
        "BrokenPipeError",
        "ServerDisconnectedError",
        "ConnectionClosedError",
        "IncompleteRead",
    }:
        # an exception without an errno was raised by a program, whose own words are shown
        own = _plain(error) if getattr(error, "errno", None) is None and _text(error) else ""
        return "the connection broke" + (f": {own}" if own else "")
    return ""


def _malformed(error: BaseException) -> str:
    """Return what is wrong with an answer of an HTTP server that breaks off, or is none: aiohttp calls that 400, as if the server had said so."""
    inner = error if type(error).__module__ == _NO_HTTP else error.__cause__ or error.__context__
    if type(inner).__module__ != _NO_HTTP or inner is None:
        return ""
    told = " ".join(_text(inner).split()).removeprefix("400, message: ").rstrip(" ^")
    came = re.search(r"received (\d+) of (\d+) bytes", told)
    if came:
        return f"the connection broke after {int(came[1]):,} of {int(came[2]):,} bytes"
    if told.startswith("Not enough data"):
        return "the connection broke before the whole answer had come"
    if any(kind.__name__ in ("PayloadEncodingError", "ContentEncodingError") for kind in type(inner).__mro__):
        return "the server's answer cannot be decoded"
    return f"the server's answer is no HTTP: {told}"[:_LONGEST_ANSWER]


def _status(error: BaseException) -> str:
    """Return the status that an HTTP server answered, from an exception of aiohttp, urllib or requests."""
    answered = getattr(error, "response", None)
    codes = (getattr(error, "status", None), getattr(error, "code", None), getattr(answered, "status_code", None))
    code = next((c for c in codes if isinstance(c, int)), 0)
    hints = {401: "it wants credentials", 403: "access denied", 404: "there is nothing of that name", 429: "too many requests"}
    if not 400 <= code < 600:
        return ""
    return f"the server answered HTTP {code}" + (f": {hints[code]}" if code in hints else "")


def no_memory(error: BaseException) -> bool:
    """Whether an exception was raised for want of memory; the import of a library fails if there is no memory for its code."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return isinstance(error, ImportError) and any(words in _text(error) for words in _NO_ROOM)


def shortage(error: BaseException) -> bool:
    """Whether an exception was raised because this process may have no more memory, threads, processes or open files."""
    return no_files(error) or any(
        no_memory(one) or _no_thread(one) or (isinstance(one, OSError) and one.errno == errno.EAGAIN) for one in _chain(error)
    )


def no_files(error: BaseException) -> bool:
    """Whether an exception was raised because too many files are open."""
    return any(isinstance(one, OSError) and one.errno in (errno.EMFILE, errno.ENFILE) for one in _chain(error))


def _no_thread(error: BaseException) -> bool:
    """Whether an exception's text says, in the words of Python or Arrow, that a thread could not be started."""
    return any(words in _text(error) for words in _NO_THREAD)


def _resources(error: BaseException) -> str:
    if no_memory(error):
        return "there is not enough memory (ulimit -v, or what this process may have); num_workers=, or chunks of fewer columns, need less"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if _no_thread(error):
        return _LIMITS[errno.EAGAIN]
    return _LIMITS.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def is_of_digits(error: BaseException) -> bool:
    """Whether an exception says, in Python's words, that a number has too many digits to be read or written: they name a setting of Python's."""
    return "set_int_max_str_digits" in _text(error)


_LOOKS: tuple[Callable[[BaseException], str], ...] = (
    lambda error: LONG_NUMBER if is_of_digits(error) else "",
    lambda error: _resources(error) if no_memory(error) else "",
    _locale,
    _package,
    _s3,
    _maxcompute,
    _oss,
    _meaning,
    _chained,
    _unknown,
    _malformed,
    _connection,
    _status,
    _resources,
)

__all__ = [
    "LONG_NUMBER",
    "disk_full",
    "in_words",
    "is_of_digits",
    "no_files",
    "no_memory",
    "ours",
    "redacted",
    "secrets",
    "shortage",
    "underway",
]
