"""No secret survives `redacted`, whatever it is made of; and the time does not grow faster than the text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from akrunner.redact import redacted, secrets
from akrunner.urls import unclear

#: in every password; nothing else of a text has it
CANARY = "Zq9Xk7"
SCHEMES = ["http://", "https://", "s3://", "postgresql://", "git+https://", "nonsense://", "://", "http:/", ""]
BEFORE = ["", "cannot open ", "see http://h:80/ and ", '{"url": "', "'", "(", "url=", "a\n"]
BEHIND = ["", "/x", ":80/x", "' failed", '"}', "/x: ask joe@example.org", "\nb", ", http://h:8081/"]
WORDS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"))
HARMLESS = WORDS.filter(lambda char: char not in "@")


@given(
    scheme=st.sampled_from(SCHEMES[:7]),
    user=st.sampled_from(["u", "", "first.last", "a@b.c", "h", "10"]),
    begin=st.sampled_from(["", "80/", "12345/", "80?", "8081#", "1", ":", "://", "@", "'", '"', "80,"]),
    inside=st.text(WORDS, max_size=8),
    before=st.sampled_from(BEFORE),
    behind=st.sampled_from(BEHIND),
)
@example(scheme="http://", user="u", begin="12345/", inside="", before="", behind="")
def test_passwords_of_urls(scheme: str, user: str, begin: str, inside: str, before: str, behind: str) -> None:
    shown = redacted(f"{before}{scheme}{user}:{begin}{CANARY}{inside}{CANARY}@host{behind}")
    assert CANARY not in shown
    assert redacted(shown) == shown


@given(
    scheme=st.sampled_from([*SCHEMES[:6], "http:///", "HTTP://", "ftp://", "zip://a.csv::http://", "u:", ""]),
    begin=st.text(st.sampled_from("/?#@\\:["), max_size=3).map(lambda text: text and f"x{text}"),
    shown=st.sampled_from(["{}", "nonnumeric port: '{}'", "invalid literal for int() with base 10: '{}'", "netloc {}"]),
)
def test_what_a_library_makes_of_it(scheme: str, begin: str, shown: str) -> None:
    """Refused without its password, or opened; and then what is shown of it by itself is hidden."""
    url = f"{scheme}u:{begin}{CANARY}@host/x.csv"
    told = unclear(url)
    assert CANARY not in told
    if not told:
        assert CANARY not in redacted(f"cannot open {url}: {shown.format(CANARY)}", secrets(url))


@given(
    scheme=st.sampled_from(SCHEMES[:6]),
    begin=st.sampled_from(["", "a", "80x ", "'", '"', "80 ", "8081/"]),
    inside=st.text(st.one_of(HARMLESS, st.sampled_from(" '\"")), max_size=8),
    before=st.sampled_from(BEFORE),
)
def test_passwords_with_spaces(scheme: str, begin: str, inside: str, before: str) -> None:
    port = begin in ("80 ", "8081/")
    shown = redacted(f"{before}{scheme}u:{begin}{CANARY}{'' if port else inside}@host/x")
    assert CANARY not in shown


@given(
    scheme=st.sampled_from(["http:/", ""]),
    begin=st.sampled_from(["", "80/", "12345/", "1", ","]),
    inside=st.text(HARMLESS.filter(lambda char: char not in "\"'<>"), max_size=8),
    behind=st.sampled_from(["", "/x", "' failed"]),
)
def test_what_was_meant_as_a_url(scheme: str, begin: str, inside: str, behind: str) -> None:
    assert CANARY not in redacted(f"cannot open '{scheme}u:{begin}{CANARY}{inside}{CANARY}@host{behind}")


@given(
    scheme=st.sampled_from(["http://", "https://", "git+https://", "s3://"]),
    token=st.text(st.sampled_from("abcXYZ019_.~%+=-"), max_size=30),
    before=st.sampled_from(BEFORE),
)
def test_tokens_in_place_of_a_user(scheme: str, token: str, before: str) -> None:
    assert CANARY not in redacted(f"{before}{scheme}{CANARY}{token}@host/x")


@given(
    name=st.sampled_from(
        [
            "password",
            "db_passwd",
            "PWD",
            "token",
            "access_token",
            "client_secret",
            "sig",
            "api-key",
            "X-Amz-Credential",
            "AccountKey",
        ]
    ),
    form=st.sampled_from(
        ["{}={}", "?{}={}&a=b", "a=b={}={}", "{}='{}'", '{}="{}"', "'{}': '{}'", '"{}":"{}"', '\\"{}\\": \\"{}\\"']
    ),
    inside=st.text(st.sampled_from("abcXYZ019_.~%+=/-"), max_size=8),
    before=st.sampled_from(BEFORE),
)
def test_what_names_say(name: str, form: str, inside: str, before: str) -> None:
    assert CANARY not in redacted(before + form.format(name, CANARY + inside + CANARY))


@given(st.text(st.sampled_from("http://u:p@a ?&='\"\\token\n*[]80"), max_size=60))
def test_once_is_enough(text: str) -> None:
    """`ours` compares: what has no secret any more must not look as if it had one."""
    shown = redacted(text)
    assert redacted(shown) == shown


@pytest.mark.parametrize(
    "part",
    [
        "http://u:", "http://u:p@", "http://u:80/", "http://u:80 ", "http://", "://", "a:/", "a:", "a:b@", "@", ":", "a@b ", "x", "password", "secret",
        "password=", "token='", "'token':", "'token':\"", "'token': ", "\\", "\\\"", "'", "'a", "-", "[", "http://[", "http://1.", "authorization",
        "authorization: ", "bearer ", "a=b=", "a-", " ", "http://u:p \n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "@h"])
def test_200_kilobytes_of_anything(part: str, end: str) -> None:
    """What takes more than linear time does not end within the test's time."""
    text = part * (200_000 // len(part)) + end
    assert redacted(text)
