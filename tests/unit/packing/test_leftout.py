"""Files that were left out: which parts name them, how they are told, and which are tried again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.arrays import octets_of
from akrunner.folders.gathered import MTIME, NAME, SIZE
from akrunner.folders.remote import Unfetched, too_large
from akrunner.packing import copies, leftout
from akrunner.packing.index import CLASS, ROW, TEXT, Index
from akrunner.packing.leftout import BROKEN, UNFETCHED, LeftOut
from akrunner.packing.state import INDEX, State


def table(*names: bytes, times: list[int] | None = None, texts: list[str | None] | None = None) -> pa.Table:
    count = len(names)
    columns = {
        NAME: octets_of(list(names), pa.large_binary()),
        SIZE: pa.array([5] * count, pa.int64()),
        MTIME: pa.array(times or [1] * count, pa.int64()),
        CLASS: pa.nulls(count, pa.string()),
    }
    if texts is not None:
        columns[ROW] = pa.array(range(count), pa.int64())
        columns[TEXT] = pa.array(texts, pa.large_string())
    return pa.table(columns)


def part(state: State, number: int, names: list[bytes], **left: dict[bytes, str]) -> None:
    """Writes a part that lists files, and has left some of them out."""
    os.makedirs(state.folder(number))
    listed = table(*names)
    with pa.ipc.new_file(os.path.join(state.folder(number), INDEX), listed.schema) as writer:
        writer.write_table(listed)
    plan: dict[str, Any] = {what: [(name.hex(), why) for name, why in some.items()] for what, some in left.items()}
    state.save(number, plan)


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(str(tmp_path / "out"))
    part(made, 1, [b"a", b"b", b"c"], bad={b"a": "too short", b"b": "empty"}, again={b"c": "no answer"})
    part(made, 2, [b"b", b"c", b"d"], bad={b"d": "cut off"}, again={b"b": "no answer, either"})
    return made


def gone(row: int, path: str = "") -> tuple[str, str]:
    return path or f"no/{9 - row}", f"there is no such file (row {row} of the list)"


def test_what_is_left_out_stands_in_the_order_of_the_input() -> None:
    assert leftout.in_order([gone(10), gone(2), gone(9)]) == [gone(2), gone(9), gone(10)]
    assert leftout.in_order([("b/x", "empty"), ("a/y", "no image")]) == [("a/y", "no image"), ("b/x", "empty")]
    error = leftout.refused("images", [gone(3)], earlier=[gone(1)])
    assert error.broken == [gone(1), gone(3)] and str(error).index("row 1 of") < str(error).index("row 3 of")


@pytest.mark.parametrize(
    ("bad", "base", "read", "told"),
    [
        ([gone(row) for row in range(9)], "/me", 10, True),
        ([gone(row) for row in range(8)], "/me", 10, False),
        # others are broken, too
        ([*(gone(row) for row in range(5)), *[("a", "empty (row 9 of the list)")] * 5], "/me", 10, False),
        ([gone(row) for row in range(10)], None, 10, False),
        ([gone(row, f"/abs/{row}") for row in range(10)], "/me", 10, False),
        # a directory: a file has gone since
        ([("a", "there is no such file")], "/me", 1, False),
        ([gone(row) for row in range(1000)], "/me", 4000, False),
        ([gone(row, f"memory://a/{row}") for row in range(10)], "/me", 10, False),
    ],
)
def test_where_files_were_looked_for_is_told_if_nearly_none_is_there(
    bad: list[tuple[str, str]], base: str | None, read: int, told: bool
) -> None:
    words = leftout.looked_for(bad, base, read)
    assert words == (
        "they were looked for below /me; paths_in=DIR (--paths-in DIR) names the directory that their paths begin in"
        if told
        else ""
    )
    assert (words in str(leftout.refused("images", bad, base=base, read=read))) and (
        not told or str(leftout.none_left("images", bad[:3], [], base)).endswith(words)
    )


def test_of_very_many_files_that_are_left_out_the_first_are_looked_at() -> None:
    bad = [gone(row) for row in range(10)]
    assert leftout.looked_for(bad, "/me", 1000, 950) and not leftout.looked_for(bad, "/me", 1000, 250)


def test_the_last_part_that_lists_a_file_says_whether_it_is_left_out(state: State) -> None:
    assert leftout.marked(state, BROKEN, [1]) == {b"a": "too short", b"b": "empty"}
    assert leftout.marked(state, BROKEN, [1, 2]) == {b"a": "too short", b"d": "cut off"}
    assert leftout.marked(state, UNFETCHED, [1, 2]) == {b"b": "no answer, either"}
    # of the parts that count, where none are told: there are none yet
    assert leftout.marked(state, BROKEN) == {}


def test_files_that_an_index_lists_are_taken_out() -> None:
    found = {b"a": "x", b"\xff": "y"}
    assert leftout.without(found, table(b"a", b"z")) == {b"\xff": "y"}
    assert leftout.without(found, None) == found and leftout.without({}, table(b"a")) == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (b"a/b.jpg", "a/b.jpg"),
        ("caf\u00e9".encode(), "caf\u00e9"),
        (b"caf\xe9", r"caf\xe9"),
        (b"", "(no path)"),
    ],
)
def test_a_name_is_shown_as_text(name: bytes, words: str) -> None:
    assert leftout.shown(name) == words


def test_a_name_that_is_a_url_is_shown_without_its_secrets() -> None:
    assert "S3CRET" not in leftout.shown(b"http://bob:S3CRET@h/x.jpg?sig=S3CRET")


def test_a_reason_names_the_row_of_the_list_and_blanks_that_cannot_be_seen() -> None:
    texts = [None, " a ", "b\t", "  ", ""]
    some = table(b"x", b"a", b"b", b"c", b"", texts=texts)
    assert leftout.located(some, ["gone"] * 5) == [
        "gone (row 0 of the list)",
        "gone (row 1 of the list, where a blank stands before and behind the path)",
        "gone (row 2 of the list, where a blank stands behind the path)",
        "gone (row 3 of the list, where the path is nothing but blanks)",
        "gone (row 4 of the list)",
    ]
    assert [leftout.unlocated(one) for one in leftout.located(some, ["gone"] * 5)] == ["gone"] * 5
    # those of a directory are in no row
    assert leftout.located(table(b"x"), ["gone"]) == ["gone"]
    assert leftout.unlocated("it says (row 1 of the list) inside") == "it says (row 1 of the list) inside"


def test_a_reason_to_try_again_stays_one() -> None:
    (why,) = leftout.located(table(b"x", texts=[None]), [Unfetched("no answer")])
    assert isinstance(why, Unfetched) and why == "no answer (row 0 of the list)"


def test_rows_of_broken_files_say_whether_only_another_try_tells() -> None:
    index = Index(table(b"a", b"http://h/b", b"c", times=[1, 0, 0], texts=[None] * 3), "/", listed=True)
    found = leftout.rows_of(index, [True, True, False], {b"a": "cut", b"http://h/b": "odd"}, 100)
    assert found == [
        LeftOut(b"a", "cut", False, "cut (row 0 of the list)"),
        LeftOut(b"http://h/b", "odd", True, "odd (row 1 of the list)"),
    ]
    assert found[0].told == ("a", "cut (row 0 of the list)")


def test_the_description_names_those_that_are_in_the_input_now(state: State) -> None:
    told = leftout.in_input(state, [1, 2], Index(table(b"a", b"b", b"new"), "/"))
    assert told == {
        "skipped_rows": 1,
        "skipped": [{"path": "a", "why": "too short"}],
        "unfetched_rows": 1,
        "unfetched": [{"path": "b", "why": "no answer, either"}],
    }


def test_the_description_counts_all_and_names_a_hundred(tmp_path: Path) -> None:
    state = State(str(tmp_path / "many"))
    names = [b"%03d" % i for i in range(101)]
    part(state, 1, names, bad={name: "cut" for name in names})
    told = leftout.in_input(state, [1], Index(table(*names), "/"))
    assert told["skipped_rows"] == 101 and len(told["skipped"]) == 100 and told["unfetched_rows"] == 0


def test_urls_without_a_time_and_what_could_not_be_fetched_are_asked_again() -> None:
    some = table(b"http://h/a", b"http://h/b", b"c", b"d", times=[0, 7, 0, 7])
    assert leftout.untold(some).tolist() == [True, False, False, False]
    assert leftout.asked_again(some, [(b"d".hex(), "no answer")]).tolist() == [True, False, False, True]
    assert leftout.asked_again(some[:0], []).tolist() == []


def test_of_files_that_were_too_large_those_are_tried_again_that_fit() -> None:
    names, why = [b"a", b"b", b"c"], {b"a": too_large(100, 50), b"b": too_large(101, 50), b"c": "max_file_size"}
    assert leftout.tried_again(table(*names), why, 100).tolist() == [True, False, False]
    bad = list(zip("abc", leftout.located(table(*names, texts=["a", " b", "c"]), list(why.values()))))
    assert [leftout.has_fitting(bad, most) for most in (99, 100)] == [False, True]
    assert leftout.has_fitting(bad[1:], 101) and not leftout.has_fitting(bad[2:], 101)


@pytest.mark.parametrize(
    ("bad", "unfetched", "words"),
    [
        (1, 0, "the only image is broken: nothing was packed"),
        (3, 0, "all of 3 images are broken: nothing was packed"),
        (0, 1, "the only image could not be fetched: nothing was packed"),
        (2, 1, "all of 3 images could not be fetched, or are broken: nothing was packed"),
    ],
)
def test_an_input_of_which_nothing_is_left(bad: int, unfetched: int, words: str) -> None:
    error = leftout.none_left("images", [("a\n", "cut")] * bad, [("http://h/b", "no answer")] * unfetched)
    text = str(error)
    assert text.startswith(f"source: {words}, whatever bad_rows= (--bad-rows) says")
    assert ("a later run tries again" in text) is bool(unfetched)
    assert text.count(": cut") == bad and text.count("http://h/b: no answer") == unfetched
    assert (len(error.broken), len(error.unfetched)) == (bad, unfetched)


def test_an_error_names_twenty_files_and_counts_the_others() -> None:
    some = [(f"{i:02}.jpg", "cut") for i in range(23)]
    for error in (leftout.none_left("images", some, []), leftout.refused("images", some)):
        assert "19.jpg" in str(error) and "20.jpg" not in str(error) and str(error).endswith("and 3 more")


@pytest.mark.parametrize(
    ("bad", "unfetched", "earlier", "words"),
    [
        (1, 0, 0, "source: 1 broken image; mend it, or take it out of the input"),
        (2, 0, 0, "source: 2 broken images; mend them"),
        (0, 1, 0, "source: 1 file could not be fetched; mend it"),
        (1, 1, 0, "source: 1 file could not be fetched, 1 broken image; mend them"),
        (0, 0, 1, "source: 1 broken image that an earlier run left out is still there; mend it"),
        (0, 0, 2, "source: 2 broken images that an earlier run left out are still there; mend them"),
        (1, 0, 2, "source: 3 broken images (2 left out by an earlier run); mend them"),
    ],
)
def test_what_is_refused_is_counted_and_named(bad: int, unfetched: int, earlier: int, words: str) -> None:
    error = leftout.refused("images", [("a", "cut")] * bad, [("b", "no answer")] * unfetched, [("c", "odd")] * earlier)
    text = str(error)
    assert text.startswith(words) and "bad_rows='skip' (--bad-rows skip)" in text and "What was packed so far is kept" in text
    assert (text.count("  a: cut"), text.count("  b: no answer"), text.count("  c: odd")) == (bad, unfetched, earlier)
    assert ("a later run tries" in text) is bool(unfetched)
    assert (len(error.broken), len(error.unfetched)) == (bad + earlier, unfetched)
    assert "is kept" not in str(leftout.refused("images", [("a", "cut")], packed=False))


def test_broken_files_are_copied_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jpg").write_bytes(b"broken")
    index, folder = Index(table(b"a.jpg", b"gone.jpg"), str(tmp_path / "in")), str(tmp_path / "bad")
    broken = [(b"a.jpg", "cut"), (b"gone.jpg", "there is no such file")]
    kept = leftout.kept(index, broken, folder, 100)
    assert kept == [("a.jpg", "cut", "a.jpg", ""), ("gone.jpg", "there is no such file", "", "there is no such file")]
    assert (tmp_path / "bad" / "a.jpg").read_bytes() == b"broken"
    copies.write_list(folder, kept)
    assert leftout.kept(index, broken, folder, 100) == []
    # another reason, or other bytes, are written again
    (row,) = leftout.kept(index, [(b"a.jpg", "odd")], folder, 100)
    assert row[:3] == ("a.jpg", "odd", "a.jpg")
