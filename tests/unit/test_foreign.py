"""What libraries raise becomes ours: one line, what to set, no secrets."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest
from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import BadHttpMessage, ContentLengthError, PayloadEncodingError, TransferEncodingError
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from akrunner import errors
from akrunner.foreign import disk_full, in_words, no_memory, ours, redacted


def answered(code: str, message: str = "something") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "PutObject")


def raised_from(outer: Exception, inner: Exception) -> Exception:
    """As s3fs does: Python's own exception, from the server's."""
    try:
        try:
            raise inner
        except Exception as e:
            raise outer from e
    except Exception as e:
        return e


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NoCredentialsError(), "no credentials for S3: set AWS_ACCESS_KEY_ID"),
        (answered("NoSuchBucket"), "no such bucket.*AWS_ENDPOINT_URL"),
        (answered("403"), "access denied.*AWS_ACCESS_KEY_ID"),
        (answered("ExpiredToken"), "expired.*AWS_SESSION_TOKEN"),
        (answered("RequestTimeTooSkewed"), "clock"),
        (answered("Strange", "no idea"), "answered Strange: no idea"),
        (raised_from(PermissionError("Forbidden"), answered("403")), "access denied"),
        (raised_from(FileNotFoundError("b/x"), answered("NoSuchBucket")), "no such bucket"),
        (
            EndpointConnectionError(endpoint_url="http://127.0.0.1:1/b"),
            r"cannot connect to http://127.0.0.1:1: .*AWS_ENDPOINT_URL",
        ),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "cannot connect: nobody listens"),
        (TimeoutError(), "no answer in time"),
        *[
            (raised_from(ClientPayloadError(f"not completed: {inner!r}"), inner), f"{words}$")
            for inner, words in (
                (
                    ContentLengthError("Not enough data to satisfy it (received 1200 of 9000 bytes)."),
                    "broke after 1,200 of 9,000 bytes",
                ),
                (
                    TransferEncodingError("Not enough data to satisfy transfer length header."),
                    "broke before the whole answer had come",
                ),
                (PayloadEncodingError("Span callback error in on_body"), "answer cannot be decoded"),
                (
                    BadHttpMessage("Bad status line:\n  Invalid status code:\n\n  b'HTTP/1.1 abc OK'\n   ^"),
                    "is no HTTP: .*'HTTP/1.1 abc OK'",
                ),
            )
        ],
        (socket.gaierror(-2, "Name or service not known"), "no machine of that name"),
        (OSError("Unable to load libjvm\n" + "dlopen failed\n" * 160), "^hdfs:// needs a Java"),
        (ModuleNotFoundError("No module named 'nice'", name="nice"), "the package nice is missing: pip install nice"),
        (ImportError("cannot import name 'a' from 'b'", name="b"), "cannot import name 'a'"),
        (ImportError("Please install gcsfs to access Google Storage"), "pip install gcsfs"),
        (ImportError("HTTPFileSystem requires requests and aiohttp to be installed"), r"pip install 'fsspec\[http\]'"),
        (ValueError("Protocol not known: nonsense"), r"no file system is called nonsense:// \(known"),
        (ValueError("Protocol not known: kafak"), "no file system is called kafak://; did you mean 'kafka://'"),
        (ValueError("Protocol not known: postgre"), "did you mean 'postgresql://'"),
        (ValueError("Protocol not known: s33"), "did you mean 's3://'"),
        (OSError(errno.EIO, "Input/output error", "/x"), "disk or network file system failed"),
        (OSError(errno.EACCES, "Permission denied", "/x"), "^Permission denied$"),
        (FileNotFoundError("b/x"), "no such file .b/x."),
        (KeyError("a"), "KeyError: 'a'"),
        (MemoryError(), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (RuntimeError(""), "^RuntimeError$"),
        (RuntimeError("a\x1b[2Jscreen\x07 that blinks"), "^a .2Jscreen  that blinks$"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, Exception) else "",
)
def test_words(error: Exception, words: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        with ours(errors.SinkError, "output: cannot open x"):
            raise error
    message = str(caught.value)
    assert message.startswith("output: cannot open x: ") and "\n" not in message and len(message) < 800
    assert re.search(words, message.removeprefix("output: cannot open x: "))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gs://b/x", "pip install gcsfs"),
        ("abfs://c@a/x", "pip install adlfs"),
        ("sftp://h/x", "pip install paramiko"),
        ("nonsense://x", "nonsense://"),
        ("github://a/b", "options that a URL cannot hold"),
        ("ftp://127.0.0.1:1/x", "cannot connect"),
    ],
)
def test_file_systems_that_are_not_there(url: str, words: str) -> None:
    with pytest.raises(errors.SourceError, match=words):
        with ours(errors.SourceError, "source"):
            fsspec.core.url_to_fs(url)[0].exists(url)


def test_a_full_disk_says_what_is_free_and_where(tmp_path: Any) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    words = in_words(full, str(tmp_path / "not" / "there"))
    assert words.startswith("the disk is full: ") and " bytes free on /" in words
    assert in_words(full) == "the disk is full" == disk_full(None)
    assert "bytes free on /" in in_words(OSError(errno.ENOSPC, "No space left on device", os.fspath(tmp_path / "x")))
    assert in_words(OSError(errno.EDQUOT, "Disk quota exceeded"), str(tmp_path)).startswith("the disk quota is used up: ")


@pytest.mark.parametrize("files", [1000, 0])
def test_a_disk_without_inodes_is_not_full_of_bytes(tmp_path: Any, monkeypatch: Any, files: int) -> None:
    found = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: _Found(found, f_files=files, f_favail=0))
    for number, told in ((errno.ENOSPC, bool(files)), (errno.EDQUOT, False)):
        words = in_words(OSError(number, os.strerror(number)), str(tmp_path))
        assert ("has no inodes left, and " in words) == told and " bytes free" in words


class _Found:
    """What `statvfs` gives, but for some of it."""

    def __init__(self, found: os.statvfs_result, **but: int) -> None:
        self._found = found
        self.__dict__.update(but)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def test_ours_pass_and_what_is_no_exception() -> None:
    for error in (errors.DataError("a row"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)) as caught, ours(errors.SinkError, "output"):
            raise error
        assert caught.value is error


def test_an_exception_that_cannot_even_be_printed() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(errors.SourceError, match="^source: Hostile$"), ours(errors.SourceError, "source"):
        raise Hostile


def test_a_cause_that_is_its_own_cause() -> None:
    one, other = ValueError("this one is long enough"), ValueError("and the other as well")
    one.__cause__, other.__cause__ = other, one
    assert in_words(one) == "this one is long enough"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://u:secret@h/x", "https://u:***@h/x"),
        ("https://u:se@cret@h/x", "https://u:***@h/x"),
        ("postgresql://u:se/cret@h/db", "postgresql://u:***@h/db"),
        ("ftp://u:1234@h/x and http://h:80/", "ftp://u:***@h/x and http://h:80/"),
        ("https://u:a'secret@h/x: no", "https://u:***@h/x: no"),
        ('https://u:a"secret@h/x', "https://u:***@h/x"),
        ("https://u:a secret@h/x", "https://u:***@h/x"),
        ("https://u:a<secret@h/x", "https://u:***@h/x"),
        ("https://u:80,secret@h/x", "https://u:***@h/x"),
        ("http://a:80,b:80/x", "http://a:80,b:80/x"),
        ("http://a:80/x: write to m@h", "http://a:80/x: write to m@h"),
        ("http:/u:secret@h/x", "http:/u:***@h/x"),
        ("u:12345/secret@h", "u:***@h"),
        ("netloc 'u:secret@\u2100.com' contains", "netloc 'u:***@\u2100.com' contains"),
        ("https://h/x?auth=secret&pass=secret&code=secret: no", "https://h/x?auth=***&pass=***&code=***: no"),
        ("https://h/x?access_key=secret&auth_key=secret&v=1", "https://h/x?access_key=***&auth_key=***&v=1"),
        ("exit code=1", "exit code=1"),
        ("git+https://ghp_secretsecretsecret@github.com/x", "git+https://***@github.com/x"),
        ("host=h password=secret dbname=d", "host=h password=*** dbname=d"),
        ("https://b/x?X-Amz-Signature=secret&X-Amz-Credential=secret%2F1&v=1", "https://b/x?X-Amz-Signature=***&X-Amz-Credential=***&v=1"),
        ("https://a/x?se=1&sig=secret%3D", "https://a/x?se=1&sig=***"),
        ("https://a/x?access_token=secret#f", "https://a/x?access_token=***"),
        ("{'token': 'secret', 'a': 'b'}", "{'token': '***', 'a': 'b'}"),
        ("Authorization: Bearer secretsecret", "Authorization: Bearer ***"),
        ("http://u:80?secret@h", "http://u:***@h"),
        ("http://u:12345/secret@h", "http://u:***@h"),
        ("http://tok@h/x", "http://***@h/x"),
        ("http://a@b.c:secret@h/x", "http://***@h/x"),
        ("http://u:12 34@h", "http://u:***@h"),
        ("'u:a,sec:ret@h'", "'u:***@h'"),
        ("abfs://container@account/x sftp://me@h/x", "abfs://container@account/x sftp://me@h/x"),
        ("https://github.com/a/b@v1", "https://github.com/a/b@v1"),
        ("/data/10:30/a@b", "/data/10:30/a@b"),
        ("dbname=d password='a secret' host=h", "dbname=d password='***' host=h"),
        ("a=b=token=secret", "a=b=token=***"),
        ('{\\"password\\": \\"a secret\\", \\"a\\": 1}', '{\\"password\\": \\"***\\", \\"a\\": 1}'),
        ("{'password': 1234, 'token': None}", "{'password': ***, 'token': None}"),
        ("authorization: token secret", "authorization: token ***"),
        ("http://127.0.0.1:80/a@b", "http://127.0.0.1:80/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("the token is a word, x=1", "the token is a word, x=1"),
        ("http:///u:secret@h/x", "http:///u:***@h/x"),
        ("http://u:secret\nsecret\nsecret@h/x: no", "http://u:***\n***\n***@h/x: no"),
        ("http://h:80/x\n@decorated", "http://h:80/x\n@decorated"),
        ("see http://host:port\n\n\n\n@decorated", "see http://host:port\n\n\n\n@decorated"),
        ("https://h/x?p%61ssword=secret&%2574oken=secret", "https://h/x?p%61ssword=***&%2574oken=***"),
        ("github://org:repo@secret/x", "github://org:***/x"),
        ("zip://a.csv::http://u:se/cret@h/a.zip", "zip://a.csv::http://u:***@h/a.zip"),
        ("http:\\\\u:secret@h\\x", "http:***@h\\x"),
    ],
)  # fmt: skip
def test_secrets(given: str, shown: str) -> None:
    assert redacted(given) == shown


def test_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    assert redacted("signed with wJalrXUtnFEMI/x") == "signed with ***/x"


def test_no_secret_in_the_traceback_either() -> None:
    caught: dict[str, BaseException] = {}
    for url in ("https://u:secret@h/x", "https://h/x"):
        with pytest.raises(errors.SourceError) as one, ours(errors.SourceError, "source"):
            raise ValueError("cannot open " + url)
        caught[url] = one.value
    hidden, plain = caught.values()
    assert hidden.__cause__ is None and hidden.__suppress_context__
    assert isinstance(plain.__cause__, ValueError)


def test_what_a_program_says_of_a_broken_connection_is_kept() -> None:
    assert in_words(BrokenPipeError("the queue is gone")) == "the connection broke: the queue is gone"
    assert in_words(BrokenPipeError(32, "Broken pipe")) == "the connection broke"


def test_an_error_of_many_lines_and_colours_is_one_line() -> None:
    told = "Kernel error -> Generic S3 error\n   \x1b[31m\u21b3\x1b[0m Error performing GET http://h/b\n    \x1b[31m\u21b3\x1b[0m refused\n"
    assert in_words(OSError(told)) == "Kernel error -> Generic S3 error: Error performing GET http://h/b: refused"
    lost = told.replace("http://h/b", "http://169.254.169.254/latest/api/token")
    assert in_words(OSError(lost)).startswith("no credentials for S3: set AWS_ACCESS_KEY_ID")


def test_a_library_that_finds_no_memory() -> None:
    lost = ImportError("/x/_core.so: failed to map segment from shared object")
    assert no_memory(lost) and "ulimit -v" in in_words(lost)
    assert not no_memory(ImportError("No module named 'x'"))


@pytest.mark.slow
def test_a_name_that_the_locale_has_no_letters_for(tmp_path: Path) -> None:
    folder = tmp_path / "\u00f6"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n")
    code = "import os, akrunner\nfrom akrunner.tables.opening import open_input\nopen_input(os.path.abspath('t.csv'), read_examples=None)"
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.stderr.rstrip().endswith("takes names for ascii; set LC_ALL=C.UTF-8, or PYTHONUTF8=1, and start again"), (
        done.stderr
    )


@pytest.mark.parametrize("said", ["fe_sendauth: no password supplied", 'FATAL:  password authentication failed for user "me"'])
def test_where_a_password_of_postgresql_comes_from_is_told(said: str) -> None:
    assert "PGPASSWORD, ~/.pgpass, or &password_file=FILE" in in_words(OSError(f"IO: [libpq] Failed to connect: {said}"))
