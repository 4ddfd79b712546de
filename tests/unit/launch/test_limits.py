"""The sizes that files from outside may have: how they are said, counted, and raised."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError, PythonEnvError, UserFilesError
from akrunner.launch import limits
from akrunner.launch.trees import Blame


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AKRUNNER_MAX_DOWNLOAD", "AKRUNNER_MAX_UNPACKED", "AKRUNNER_MAX_MEMBERS"):
        monkeypatch.delenv(name, raising=False)


def budget(most: int, given: str = "") -> limits.Budget:
    return limits.downloading("a.zip", Blame("user_files", given=given), most)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("2b", 2),
        ("3k", 3000),
        ("3 KB", 3000),
        ("3KiB", 3 << 10),
        (" 4mB ", 4 * 10**6),
        ("4gi", 4 << 30),
        ("5TB", 5 * 10**12),
        ("5TiB", 5 << 40),
    ],
)
def test_a_size_is_read_in_any_unit(text: str, size: int) -> None:
    assert limits.parsed(text, "max") == size


@pytest.mark.parametrize("text", ["", " ", "GB", "0GB", "1 PB", "1e9", "1,000", "20 G B", "1" * 16, "\u0661"])
def test_what_is_no_size_is_refused_by_its_parameter(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^AKRUNNER_MAX_DOWNLOAD=.*: give a size like 20GB, 512MB or 1000000$"):
        limits.parsed(text, "AKRUNNER_MAX_DOWNLOAD")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1550, "1.6 kB"),
        (999_940, "999.9 kB"),
        (999_950, "1 MB"),
        (1_500_000, "1.5 MB"),
        (20 * 10**9, "20 GB"),
        (16 << 30, "17.2 GB"),
        (5 * 10**12, "5 TB"),
        (1 << 50, "1125.9 TB"),
        (10**15 << 40, "1099511627776000 TB"),
    ],
)
def test_a_size_is_shown_in_the_largest_unit(size: int, words: str) -> None:
    assert limits.shown(size) == words


def test_a_budget_takes_as_much_as_it_has_and_no_byte_more() -> None:
    some = budget(10)
    some.take(4)
    some.take(6)
    some.take(0)
    with pytest.raises(
        UserFilesError, match=r"^user_files: a.zip has more than 10 bytes; if it should, set AKRUNNER_MAX_DOWNLOAD=1MB$"
    ):
        some.take(1)


@pytest.mark.parametrize(
    ("most", "taken", "wanted"),
    [
        (3 * 10**6, 3 * 10**6 + 1, "6MB"),
        (3 * 10**6, 7_000_001, "8MB"),
        (10**9, 2 * 10**9, "2GB"),
        (10**9, 2 * 10**9 + 1, "3GB"),
    ],
)
def test_what_is_suggested_is_enough(most: int, taken: int, wanted: str) -> None:
    """At least twice what there was, so that nobody has to ask for each byte."""
    with pytest.raises(UserFilesError, match=f"AKRUNNER_MAX_DOWNLOAD={wanted}$"):
        budget(most).take(taken)
    budget(limits.parsed(wanted, "max")).take(taken)


@pytest.mark.parametrize(
    ("given", "behind"),
    [
        ("a.zip", "a.zip#max="),
        ("a.zip#there", "a.zip#there&max="),
        ("a.zip#max=5", "a.zip#max="),
        ("a.zip#max=5&there", "a.zip#there&max="),
        ("a.zip#there&max=5", "a.zip#there&max="),
        ("a.zip#there&max=5&sha256=12", "a.zip#there&sha256=12&max="),
    ],
)
def test_the_error_says_what_to_write_behind_what_was_given(given: str, behind: str) -> None:
    with pytest.raises(UserFilesError) as caught:
        budget(5, given).take(6)
    assert f"; if it should, write {behind}1MB, or set AKRUNNER_MAX_DOWNLOAD=1MB" in str(caught.value)


def test_members_are_counted_one_by_one_and_as_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_MAX_MEMBERS", "2000")
    some = limits.unpacking("a.zip", Blame("python_env", PythonEnvError))
    some.member()
    some.announced(1999)
    words = r"^python_env: a.zip unpacks to more than 2,000 files; if it should, set AKRUNNER_MAX_MEMBERS=20000$"
    with pytest.raises(PythonEnvError, match=words):
        some.announced(2000)
    for _ in range(1999):
        some.member()
    with pytest.raises(PythonEnvError, match=words):
        some.member()


def test_the_user_comes_before_the_environment_and_that_before_what_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    blame = Blame("user_files")
    assert limits.downloading("a", blame).most == limits.DOWNLOAD
    assert limits.downloading("a", blame, usual=7).most == 7
    monkeypatch.setenv("AKRUNNER_MAX_DOWNLOAD", "2kB")
    assert limits.downloading("a", blame, usual=7).most == 2000
    assert limits.downloading("a", blame, most=3, usual=7).most == 3
    monkeypatch.setenv("AKRUNNER_MAX_UNPACKED", "5kB")
    assert limits.unpacking("a", blame, packed=1).most == 5000
    assert limits.unpacking("a", blame, packed=1, most=3).most == 3


@pytest.mark.parametrize(
    ("packed", "most"),
    [
        (None, limits.UNPACKED),
        (0, limits.ALWAYS),
        (limits.ALWAYS // limits.RATIO, limits.ALWAYS),
        (20 << 20, limits.RATIO * (20 << 20)),
        (limits.UNPACKED, limits.UNPACKED),
    ],
)
def test_an_archive_may_unpack_to_so_many_times_its_own_size(packed: int | None, most: int) -> None:
    assert limits.unpacking("a", Blame("user_files"), packed).most == most


def test_an_environment_that_says_no_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_MAX_UNPACKED", "much")
    with pytest.raises(ConfigError, match="^AKRUNNER_MAX_UNPACKED=much: give a size"):
        limits.unpacking("a", Blame("user_files"))
