"""Removal of passwords, tokens and signatures from a text: each is replaced by `***`.

::

    https://u:secret@h/x       hidden: the text between a URL's user and its last @; u:secret@h is taken for a URL, too
    ?sig=secret, 'token': 'x'  hidden: the value of a name that means a secret
    Authorization: Bearer x    hidden: the text after the kind of authorization

Whether `80/x` in `a:80/x@y` is a port and a path or a password cannot be told. Then everything up to the last @ is hidden, as
hiding too much only makes an error harder to read. Every search starts where the one before has ended, or is bounded, so that
the time is linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence

_HIDDEN = "***"
_WORD = re.compile(r"\S+")
#: a word that may be a URL without a scheme
_BARE_WORD = re.compile(r"[^\s\"'<>]+")
#: user:password@ within such a word, for instance in a path; the group is the password
_BARE = re.compile(r"(?<![\w.+-])[\w.+-]+:([^\s/@:\"'<>]+)@(?=\S)")
_DELIMITER = re.compile(r"[:/?#]")
_SCHEME = re.compile(r"[\w+.-]*\Z")
#: what may be a port behind a host: digits, followed by the end, by a path, or by a character that ends a URL in a text
_PORT = re.compile(r":\d{1,5}(?![^/?#,;:)\]}'\"])")
#: an address that cannot be a user's name, so that a port follows it
_ADDRESS = re.compile(r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:.]{2,45}(?:%\w{1,20})?\])(?=:\d{1,5}(?:[/?#]|$))")
#: schemes of URLs in which a name without a password, before the @, is a user's or a container's, and no token
_NAMING = frozenset(
    "abfs abfss wasb wasbs adl hdfs webhdfs viewfs ftp ftps sftp ssh git git+ssh smb mysql postgres postgresql grpc flightsql snowflake".split()
)
#: names of users are shorter than this; names of containers may be longer
_LONG_NAME = 20
_CONTAINERS = ("abfs", "wasb")

_NAMED = re.compile(r"(?<![\w%-])([\w%-]+)=")
_VALUE = re.compile(r"\"[^\"\n]+|'[^'\n]+|(?:(?!:\s)[^&\s;,\"'<>)\]}])+")
_KEY = re.compile(
    r"(\\{0,8}[\"'])([\w-]+)\1\s{0,20}[:=]\s{0,20}(?:(\\{0,8}[\"'])|(?!None\b|null\b|true\b|false\b)(?=\w))", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"(\bauthorization\\{0,8}[\"']?\s{0,20}[:=]\s{0,20}\\{0,8}[\"']?(?:(?:bearer|basic|digest|token|apikey) "
    r"{1,5})?)[^\s\"',;\\]+|"
    r"(\b(?:bearer|basic) {1,5})[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
#: how many times over a name may be percent-encoded
_ENCODED = 3
_NAMES = frozenset("awsaccesskeyid accountkey account_key passphrase pwd sig signature".split())
_ENDINGS = ("password", "passwd", "_pass", "token", "api_key", "apikey", "api-key", "access-key", "secret-key")
#: a URL of Kafka, in which key= is the name of a column, and how far before that name it may begin
_TOPIC = re.compile(r"\bkafka://(?:(?!://)[^\s\"'<>])*[?&]\Z", re.IGNORECASE)
_BEFORE = 500
#: names that mean a secret only in a URL; elsewhere they mean other things
_NAMES_IN_URLS = frozenset("key code pass jwt hmac".split())
_ENDINGS_IN_URLS = (
    "credential",
    "credentials",
    "hash",
    "accesskey",
    "access_key",
    "accesskeyid",
    "access_key_id",
    "accesskey_id",
)
#: keys of whom, or for what, are secrets also if they are numbers
_KEYS = (
    "api access account encryption decryption private secret signing ssh ssl tls client auth master admin root license shared sas storage "
    "subscription service consumer deploy webhook cipher crypto fernet hmac aes rsa jwt app openai anthropic google hf huggingface wandb comet"
)
#: parts of names that mean a secret where a value stands alone; `_NUMBERS`: also if the value is a number
_NUMBERS = re.compile(
    r"passw|passphrase|passcode|(?<![a-z])(pass|pwd|pw|pin|pin[_-]?code)(?![a-z])|secret|token(?!s|i)|"
    r"(?<![a-z])(api|access|auth|bearer|refresh|session|security)[_-]?tokens(?![a-z])|"
    rf"(?<![a-z])({_KEYS.replace(' ', '|')})[_-]?key|(?<![a-z])(aws|azure|gcp)[a-z_-]{{0,40}}key(?![a-z])|(?:^|\.)key$"
)
_PARTS = re.compile(
    r"(?<![a-z])(auth|dsn)(?![a-z])|credential|cookie|private|authorization|webhook|conn(ection)?[_-]?str|jwt|bearer|(?<![a-z])key\Z|[a-z][_-]keys\Z"
)
#: names of measures that have such a part in them, as numbers: max_token, token_size
_MEASURES = re.compile(
    r"(?<![a-z])(max|min|num|n|avg|mean|total)[_-]([a-z]{1,20}[_-])?(token|pin|key|secret|password)\Z|"
    r"(token|pin|key|secret|password|passphrase|passcode|cookie)[_-]?"
    r"(size|len|length|count|limit|min|max|dim|rate|ratio|weight|dropout|ttl|timeout|budget|memory|bits|bytes)\Z"
)
#: a measure as a text, which may have a unit: 512, 1e-3, 10m, 4 MB
_MEASURE = re.compile(r"[+-]?[\d.]{1,20}(e[+-]?\d{1,3})?\s?[a-z%]{0,2}", re.IGNORECASE)
#: names that have such a part in them and are those of columns, of keys that choose rows, or of parts of models: password_column, sort_key
_OTHERS = re.compile(
    r"(token|pin|key|secret|password|passphrase|passcode|cookie)[_-]?(col|columns?)\Z|pin[_-]memory\Z|"
    r"token[_-](ids?|type|embed|pattern|regex|sep|level|mask|vocab|loss|acc|class|pos|shift|ngram)\w{0,20}\Z|(bits|loss)_per_token\Z|"
    r"(?<![a-z])(sort|primary|foreign|partition|group|join|order|cache|row|unique|composite|natural|surrogate|lookup|merge|dedup|id|index|shard|"
    r"hash|range|label|feature|image|text|input|output|target|dict|json|map|metric|sample|example|column|table|date|time|query|batch|item|record|"
    r"message|parent|child|dim|dimension|weight|split|bucket|distribution|cluster|state|sequence|def|features|"
    r"labels|rng|prng|random|seed|loss|class|name|type|score|tag|title|caption|step|epoch|customer|product|store|region|prediction|"
    r"predictions|logits|mask|monitor|embedding|audio)[_-]?keys?\Z"
)
#: tokens of a language model's vocabulary, which are none: pad_token, eos_token
_VOCABULARY = re.compile(r"(\w+_)?(pad|eos|bos|unk|oov|mask|sep|cls|start|end|stop|image|special)_?token")
#: a word in the name of a variable of other languages: dbPassword
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: texts that are no secrets, whatever they are called
_NO_SECRETS = frozenset(["", "true", "false", "yes", "no", "on", "off", "none", "null"])
#: environment variables whose values are never shown
_VARIABLES = (
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "ALIBABA_CLOUD_SECURITY_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET",
    "FLIGHTSQL_PASSWORD",
    "FLIGHTSQL_TOKEN",
    "FSSPEC_OSS_SECRET",
    "FSSPEC_OSS_TOKEN",
    "HF_TOKEN",
    "GITHUB_TOKEN",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "ODPS_ACCESS_KEY",
    "ODPS_STS_ACCESS_KEY_SECRET",
    "ODPS_STS_TOKEN",
    "OSS_ACCESS_KEY_SECRET",
    "OSS_SESSION_TOKEN",
    "PGPASSWORD",
    "REDISCLI_AUTH",
    "SNOWFLAKE_PASSWORD",
    "SNOWFLAKE_TOKEN",
)

#: as `os.environ` holds them on POSIX
_AS_HELD = frozenset(map(os.fsencode, _VARIABLES))

#: schemes that are followed by a file's name, and then by the URL of the archive or store that the file is in
_WRAPPING = frozenset("zip tar libarchive dir reference cached simplecache filecache blockcache".split())
_CHAINED = re.compile(r"::[A-Za-z][\w+.-]*:/")
#: over how many further lines a password with line ends in it is looked for
_MOST_LINES = 3
#: separators at which libraries take a URL apart; an error may show one part without the others
_APART = re.compile(r"[\s/\\?#@:;&=\[\]\"',]+")
_SHORTEST_PART = 3

#: characters of the shortest value of the environment that is hidden
_SHORTEST = 8

#: start and end of a piece of text to hide
_Span = tuple[int, int]


def redacted(text: str, also: Iterable[str] = (), variables: Sequence[str] | None = None) -> str:
    """Return the text with passwords of URLs, signatures, tokens, and the environment's secrets replaced by ***.

    Args:
        also: further texts to hide, as `secrets` has found them in an argument.
        variables: what `of_environment` has returned; None: it is asked.
    """
    for part in also:
        text = text.replace(part, _HIDDEN)
    if "@" in text:
        lines = text.split("\n")
        text = "\n".join(_without(line, iter(spans)) for line, spans in zip(lines, _in_lines(lines)))
    if "=" in text:
        text = _without(text, _of_names(text))
    text = _without(text, _of_keys(text))
    text = _AUTHORIZATION.sub(lambda found: (found[1] or found[2]) + _HIDDEN, text)
    # a short text, as most words of an object are, has no secret in it: to ask for all variables takes longer than all else
    if len(text) >= _SHORTEST:
        for value in of_environment() if variables is None else variables:
            text = text.replace(value, _HIDDEN)
    return text


def of_environment() -> list[str]:
    """Return the values of environment variables that are never shown. Who hides them in many texts asks once."""
    held = getattr(os.environ, "_data", None) if os.name == "posix" else None
    if isinstance(held, dict) and _AS_HELD.isdisjoint(held):
        # as a rule; to ask `os.environ` for each takes twenty times as long, and each error has texts to look through
        return []
    found = [os.environ[name] for name in _VARIABLES if name in os.environ]
    return [value for value in found if len(value) >= _SHORTEST]


def secrets(text: str) -> list[str]:
    """Return what `redacted` hides of URLs in a text: each secret, and the parts of it that a library may show alone.

    Returns: the secrets, the longest first.
    """
    lines = text.split("\n")
    hidden = [line[start:end] for line, spans in zip(lines, _in_lines(lines)) for start, end in spans]
    hidden += [text[start:end] for start, end in _of_names(text)]
    parts = {part for one in hidden for part in (one, *_APART.split(one)) if part != _HIDDEN}
    parts |= {urllib.parse.unquote(part) for part in parts} | {urllib.parse.quote(part, safe="") for part in parts}
    return sorted((part for part in parts if len(part) >= _SHORTEST_PART and part != _HIDDEN), key=len, reverse=True)


def is_secret(name: str, value: object) -> bool:
    """Whether a value is a secret, by the name of its variable, parameter or flag. Where there is no text around it that says more, a name
    counts for which `redacted` would have to know its place. A number is none if it is called `auth` or `private`, and true, false and None
    never are."""
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value.lower() in _NO_SECRETS):
        return False
    plain = _plain(name)
    if _is_none(plain, value):
        return False
    return _means_number(plain) or (not isinstance(value, (int, float)) and _PARTS.search(plain) is not None)


def _plain(name: str) -> str:
    """Return a name of a flag or a parameter as others write it: --dbPassword is db_password."""
    return _HUMP.sub("_", name.lstrip("-")).lower().replace("-", "_")


def _is_none(name: str, value: object) -> bool:
    """Whether a name, in lower case, has a secret's name in it, and means something else. Its value may tell: a measure is a number."""
    if _VOCABULARY.fullmatch(name) is not None or _OTHERS.search(name) is not None:
        return True
    return _MEASURES.search(name) is not None and (not isinstance(value, str) or _MEASURE.fullmatch(value) is not None)


def _means_number(name: str) -> bool:
    """Whether a name means a secret that may be a number."""
    return _is_secret(name.replace("-", "_"), False) or _NUMBERS.search(name) is not None


def _without(text: str, spans: Iterator[_Span]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], _HIDDEN]
        at = end
    return "".join([*parts, text[at:]])


# -- passwords of URLs


def _in_lines(lines: list[str]) -> list[list[_Span]]:
    """Return for each line the pieces to hide; a password may go on in the next lines."""
    found: list[list[_Span]] = []
    open_at, since = -1, 0
    for number, line in enumerate(lines):
        spans = list(_in_urls(line)) if "@" in line or ":" in line else []
        found.append(spans)
        if "@" in line and 0 <= open_at and number - since <= _MOST_LINES:
            # everything since the password's beginning belongs to it
            found[since].append((open_at, len(lines[since])))
            for between in range(since + 1, number):
                found[between] = [(0, len(lines[between]))] if lines[between] else []
            last = line.rindex("@")
            found[number] = [(0, last)] if last else []
        if "@" in line:
            open_at = -1
        unfinished = _unfinished(line)
        if unfinished >= 0:
            open_at, since = unfinished, number
    return found


def _unfinished(line: str) -> int:
    """Return where a URL's password begins that does not end in this line, -1 if there is none."""
    at = line.rfind("://")
    if at < 0 or line.find("@", at) >= 0:
        return -1
    start = at + 3
    found = _DELIMITER.search(line, start)
    if found is None or found[0] != ":" or _PORT.match(line, found.start()) or _ADDRESS.match(line, start):
        return -1
    return found.end() if found.end() < len(line) else -1


def _in_urls(line: str) -> Iterator[_Span]:
    words = [(found.start(), found.end()) for found in _WORD.finditer(line)]
    lasts = [line.rfind("@", start, end) for start, end in words] + [-1]
    last_of_all = max(lasts)
    done = 0
    for number, (start, end) in enumerate(words):
        start = max(start, done)
        if start >= end:
            continue
        at = line.find("://", start, end)
        if at < 0:
            yield from _bare(line, start, end)
        while at >= 0:
            span = _in_url(line, at, end, lasts[number], (lasts[number + 1], last_of_all))
            if span is not None:
                yield span
                done = span[1]
            at = line.find("://", max(at + 3, done), end)


def _in_url(line: str, at: int, end: int, last: int, later: tuple[int, int]) -> _Span | None:
    """Return the piece to hide of one URL, None if there is nothing to hide.

    Args:
        line: the line.
        at: where the URL's `://` is.
        end: where the word that the URL is in ends.
        last: where the word's last @ is, -1 if it has none.
        later: where the last @ of the next word is, and the last @ of the line; -1 if there is none.
    """
    start = at + 3
    while line.startswith(("/", "\\"), start, end):
        start += 1
    if _ADDRESS.match(line, start, end):
        return None
    scheme = _SCHEME.findall(line[max(0, at - 20) : at])[0].lower()
    found = _DELIMITER.search(line, start, end)
    stop = found.start() if found else end
    user = line[start:stop]
    colon = stop if found and found[0] == ":" else None
    if scheme in _WRAPPING and _CHAINED.match(line, stop, end):
        return None
    if scheme == "github" and colon is not None and last > colon:
        # a version follows the @, or a token that the user put in its place
        behind = line.find("/", last, end)
        return colon + 1, behind if behind >= 0 else end
    if colon is not None and last > colon:
        return (start if "@" in user else colon + 1), last
    if "@" in user:
        name = user.rpartition("@")[0]
        plain = scheme in _NAMING and (len(name) < _LONG_NAME or scheme.startswith(_CONTAINERS))
        return None if plain or not name else (start, start + len(name))
    if colon is None:
        return None
    # a password with spaces in it. If the text may be a port, the URL may end here, so only the next word is looked at
    last = later[0] if _PORT.match(line, colon, end) else later[1]
    return (colon + 1, last) if last > colon else None


def _bare(line: str, start: int, end: int) -> Iterator[_Span]:
    """Yield the pieces to hide in words without `://` that were meant as a URL, or are a part of one."""
    for word in _BARE_WORD.finditer(line, start, end):
        text, offset = word[0], word.start()
        at = text.rfind("@")
        colon = text.find(":")
        if text.startswith("/", colon + 1):
            # http:/u:secret@h
            more = text.find(":", colon + 1)
            colon = more if 0 < more < at else colon
        user = text[:colon]
        if 0 < colon < at < len(text) - 1 and (user[-1].isalnum() or user[-1] in "_.+-") and "/" not in user.partition(":/")[0]:
            yield offset + colon + 1, offset + at
            continue
        for found in _BARE.finditer(text):
            yield offset + found.start(1), offset + found.end(1)


# -- values whose names say that they are secrets


def _of_names(text: str) -> Iterator[_Span]:
    done = 0
    for found in _NAMED.finditer(text):
        if found.start() < done or not _is_secret(found[1], text[found.start() - 1 : found.start()] in ("?", "&")):
            continue
        if found[1].lower() == "key" and _TOPIC.search(text, max(0, found.start() - _BEFORE), found.start()):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None:
            done = value.end()
            if text[found.start() - 1 : found.start()] in ("?", "&") or not _is_none(found[1].lower(), value[0].strip("\"'")):
                yield value.start() + (value[0][0] in "\"'"), done


def _of_keys(text: str) -> Iterator[_Span]:
    """Yield the values to hide in printed dicts, JSON and similar text."""
    done = stop = 0
    for found in _KEY.finditer(text):
        if found.start() < done or not _is_secret(found[2], False):
            continue
        start, quote = found.end(), found[3]
        if stop <= start:
            line = text.find("\n", start)
            stop = line if line >= 0 else len(text)
        if quote:
            closed = text.find(quote, start, stop)
            done = closed if closed >= 0 else stop
        else:
            value = _VALUE.match(text, start, stop)
            done = value.end() if value else start
        if done > start and not _is_none(found[2].lower(), text[start:done]):
            yield start, done


def _is_secret(name: str, in_url: bool) -> bool:
    for _ in range(_ENCODED):
        if "%" in name:
            name = urllib.parse.unquote(name)
    name = name.lower()
    last = name.rpartition("-")[2]
    if name.startswith(("x-amz-", "x-goog-")) or name.endswith(_ENDINGS):
        return True
    if last in _NAMES or "secret" in last or last.startswith("sharedaccess"):
        return True
    return in_url and (last in _NAMES_IN_URLS or "auth" in last or last.endswith(_ENDINGS_IN_URLS))
