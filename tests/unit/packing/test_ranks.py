"""Splits and order by hashes."""

from __future__ import annotations

import numpy as np
import pytest

from akrunner.io.hashes import ORDER, by_name, mixed
from akrunner.packing import ranks

PINNED = [13962011869246334166, 1976355115385717663, 13742411832891342848, 13988242079147379240, 6745587716350201342]


@pytest.mark.parametrize("fractions", [(1.0,), (0.8, 0.1, 0.1), (0.5, 0.5), (1 / 3, 1 / 3, 1 / 3), (0.999, 0.001)])
def test_every_class_has_its_share_to_within_a_row(fractions: tuple[float, ...]) -> None:
    classes = np.repeat(np.arange(4), [1, 10, 333, 5000])
    hashes = ranks.hashes_of([b"%d" % i for i in range(len(classes))], 7)
    split, dealt = ranks.stratified(hashes, classes, fractions, np.zeros(4, np.int64))
    assert dealt.tolist() == [1, 10, 333, 5000]
    for number, count in enumerate(dealt.tolist()):
        got = np.bincount(split[classes == number], minlength=len(fractions))
        assert np.abs(got - np.array(fractions) * count).max() <= 1.01
    assert split[0] == int(np.argmax(fractions)), "one row goes to the largest"


def test_rows_that_come_later_are_dealt_as_if_they_had_come_at_once() -> None:
    hashes = ranks.hashes_of([b"%d" % i for i in range(200)], 0)
    none = np.zeros(200, np.int64)
    _, dealt = ranks.stratified(hashes[:90], none[:90], (0.7, 0.3), np.zeros(1, np.int64))
    first, _ = ranks.stratified(hashes[:90], none[:90], (0.7, 0.3), np.zeros(1, np.int64))
    second, dealt = ranks.stratified(hashes[90:], none[90:], (0.7, 0.3), dealt)
    assert dealt.tolist() == [200] and np.bincount(np.concatenate([first, second])).tolist() == [140, 60]


def test_by_name_nothing_else_counts() -> None:
    hashes = ranks.hashes_of([b"%d" % i for i in range(10_000)], 0)
    whole = by_name(hashes, (0.8, 0.2))
    assert (by_name(hashes[::3], (0.8, 0.2)) == whole[::3]).all()
    assert abs(whole.mean() - 0.2) < 0.02
    assert not (whole == by_name(ranks.hashes_of([b"%d" % i for i in range(10_000)], 1), (0.8, 0.2))).all()


def test_a_split_without_a_file_of_a_class_takes_the_nearest_and_no_other_moves() -> None:
    fractions = (0.8, 0.1, 0.1)
    hashes = ranks.hashes_of([b"%d" % i for i in range(200 * 5 + 2)], 3)
    classes = np.concatenate([np.repeat(np.arange(200), 5), [200, 200]])
    none = np.zeros((3, 201), np.int64)
    alone = by_name(hashes, fractions)
    found = ranks.none_without(alone, hashes, classes, fractions, none)
    counts = np.zeros((3, 201), np.int64)
    np.add.at(counts, (alone, classes), 1)
    lacking = (counts[:, :200] == 0).sum(axis=0)
    moved = np.bincount(classes[found != alone], minlength=201)
    # two files are not enough for three splits
    assert moved[200] == 0 and (moved[:200] == lacking).all() and lacking.any()
    np.add.at(none, (found, classes), 1)
    assert none[:, :200].min() == 1
    # the order they are found in does not count, and what is there already does
    assert (ranks.none_without(alone[::-1], hashes[::-1], classes[::-1], fractions, none * 0)[::-1] == found).all()
    assert (ranks.none_without(alone, hashes, classes, fractions, none) == alone)[classes < 200].all()


def test_hashes_are_what_they_were() -> None:
    """Another version must not move rows of an output that is there."""
    assert ranks.hashes_of([b"cat/1.jpg", "ü".encode()], 1).tolist() == PINNED[:2]
    assert mixed(ranks.hashes_of([b"cat/1.jpg"], 1), ORDER).tolist() == PINNED[2:3]
    assert ranks.hashes_of_rows(b"a.csv", 1, 5, 2).tolist() == PINNED[3:]
    assert ranks.hashes_of_rows(b"a.csv", 1, 0, 7)[5:].tolist() == PINNED[3:]


@pytest.mark.parametrize(
    ("sizes", "wanted", "ends"), [([], 10, [0, 0]), ([5], 1, [0, 1]), ([10] * 8, 20, [0, 2, 4, 6, 8]), ([1, 1, 1], 100, [0, 3])]
)
def test_shards_are_cut_evenly(sizes: list[int], wanted: int, ends: list[int]) -> None:
    assert ranks.cut_evenly(np.array(sizes, np.int64), wanted).tolist() == ends


def test_no_shard_is_empty_however_odd_the_sizes_are() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        sizes = random.choice([1, 10, 1000, 100_000], random.integers(1, 40))
        cuts = ranks.cut_evenly(sizes, int(random.integers(1, 5000)))
        assert cuts[0] == 0 and cuts[-1] == len(sizes) and (np.diff(cuts) > 0).all()
    assert np.diff(ranks.cut_rows(10, 3)).tolist() == [3, 3, 4]
