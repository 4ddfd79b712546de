"""`akrunner pack` against the loop people write, and what it has packed against the files it was made of."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.measuring import Row

_FILES, _BYTES, _CLASSES, _TURNS = 20_000, 20_000, 10, 3
#: files of the list that memory is measured with, and the fewer it is compared with
_MANY, _FEW = 1_000_000, 100_000

_LOOP = """
import os, random, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
source, target, how = sys.argv[1:]
began, cpu = time.perf_counter(), sum(os.times()[:4])
paths = [
    (label, os.path.join(source, name, file))
    for label, name in enumerate(sorted(os.listdir(source)))
    for file in sorted(os.listdir(os.path.join(source, name)))
]
if how == "shuffled":
    random.Random(1).shuffle(paths)
with tf.io.TFRecordWriter(target) as writer:
    for label, path in paths:
        with open(path, "rb") as f:
            data = f.read()
        writer.write(tf.train.Example(features=tf.train.Features(feature={
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            "path": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.encode()])),
        })).SerializeToString())
written = time.perf_counter() - began
os.sync()
print(time.perf_counter() - began, sum(os.times()[:4]) - cpu, written)
"""
_PACK = """
import os, sys, time
import akrunner.packing.job
# the loop has TensorFlow by now; with its first array pyarrow imports pandas
import pyarrow
pyarrow.array([0])
began, cpu = time.perf_counter(), sum(os.times()[:4])
akrunner.pack(sys.argv[1], sys.argv[2], seed=1)
written = time.perf_counter() - began
os.sync()
print(time.perf_counter() - began, sum(os.times()[:4]) - cpu, written)
"""
#: the disk's own speed: the same bytes, from as many files, into one
_COPY = """
import os, sys, time
source, target = sys.argv[1:]
began, cpu = time.perf_counter(), sum(os.times()[:4])
with open(target, "wb", buffering=0) as out:
    for folder, _, names in os.walk(source):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            out.write(os.read(fd, 1 << 17))
            os.close(fd)
    os.fsync(out.fileno())
written = time.perf_counter() - began
os.sync()
print(time.perf_counter() - began, sum(os.times()[:4]) - cpu, written)
"""
_READ = """
import glob, os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
how, folder = sys.argv[1:]
if how == "packed":
    files = sorted(glob.glob(folder + "/*.tfrecord"))
    read = lambda file: tf.data.TFRecordDataset(file, buffer_size=1 << 20).batch(32)
    rows = tf.data.Dataset.from_tensor_slices(files).interleave(read, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
else:
    files = tf.random.shuffle(tf.constant(glob.glob(folder + "/*/*")), seed=1)
    rows = tf.data.Dataset.from_tensor_slices(files)
    rows = rows.map(tf.io.read_file, num_parallel_calls=tf.data.AUTOTUNE if how == "parallel" else None).batch(32)
began = time.perf_counter()
for _ in rows.prefetch(2):
    # not after the loop: at its end tf.data waits for its own optimizer, which sleeps for twice as long each time
    last = time.perf_counter()
print(last - began)
"""
#: what any reader of these files has to do
_BARE = """
import glob, os, sys, time
buffer = bytearray(1 << 20)
began = time.perf_counter()
for name in glob.glob(sys.argv[1] + "/*.tfrecord"):
    fd = os.open(name, os.O_RDONLY)
    while os.readv(fd, [buffer]):
        pass
    os.close(fd)
print(time.perf_counter() - began)
"""
_LIST = """
import re, sys, threading
import akrunner
most, done = [0], threading.Event()
def watch():
    # its own: what is mapped from files is the system's
    while not done.wait(0.01):
        with open("/proc/self/status") as f:
            most[0] = max(most[0], int(re.search(r"RssAnon:\\s+(\\d+)", f.read())[1]))
watcher = threading.Thread(target=watch)
watcher.start()
akrunner.pack(sys.argv[1], sys.argv[2], seed=1, paths_in=sys.argv[3], split="0.8,0.2")
done.set()
watcher.join()
print(most[0] / 1024)
"""


def _photos(folder: Path) -> None:
    """Files of about 20 kB with the header of a JPEG; what follows it nobody looks at."""
    random = np.random.default_rng(0)
    head = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0001108010001000301220002110103110100") + bytes(2)
    bodies = [head + random.bytes(int(size)) for size in random.integers(_BYTES // 2, _BYTES * 3 // 2, 100)]
    for number in range(_CLASSES):
        (folder / f"class{number}").mkdir(parents=True)
    for i in range(_FILES):
        (folder / f"class{i % _CLASSES}" / f"{i:06d}.jpg").write_bytes(bodies[i % len(bodies)])


def _told(script: str, *arguments: object) -> list[float]:
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def _forget(*folders: Path) -> None:
    """What is in these files is on the disk, and nowhere else: data sets are larger than memory."""
    os.sync()
    for folder in folders:
        for path in [folder] if folder.is_file() else folder.rglob("*"):
            if path.is_file():
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


def _packing(cold: bool, source: Path, script: str, target: Path, *arguments: object) -> list[float]:
    """Seconds until all is on the disk, seconds of a processor with those of its own processes, seconds until all is written (which `pack` and the copy
    bring to the disk by themselves, and the loop does not), and seconds of the whole command: Python, what it imports, and the work."""
    if cold:
        _forget(source)
    with _gone(target):
        began = time.perf_counter()
        return [*_told(script, source, target, *arguments), time.perf_counter() - began]


def _command(cold: bool, source: Path, target: Path) -> list[float]:
    if cold:
        _forget(source)
    with _gone(target):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "akrunner", "pack", source, target, "--seed", "1", "--quiet"], check=True)
        os.sync()
        return [time.perf_counter() - began]


@contextlib.contextmanager
def _gone(target: Path) -> Iterator[None]:
    """Each of those compared begins without an output, and leaves the memory of its own to the next: memory that a virtual machine has not used yet costs
    more than all that is measured here."""
    try:
        yield
    finally:
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _turns(*measures: Callable[[], list[float]]) -> list[list[float]]:
    """The median of each, measured in turns."""
    found = [[measure() for measure in measures] for _ in range(_TURNS)]
    return [[statistics.median(one) for one in zip(*each)] for each in zip(*found)]


def pack() -> list[Row]:
    """Speed of packing and of reading, and memory."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "photos"
        _photos(source)
        os.sync()
        for cold in (True, False):
            rows += _packed(folder, source, cold)
        _told(_PACK, source, folder / "packed")
        for cold in (True, False):
            rows += _read(folder / "packed" / "all", source, cold)
        rows.append(_memory(folder, source))
    return rows


def _packed(folder: Path, source: Path, cold: bool) -> list[Row]:
    where = "cold" if cold else "in memory"
    target = folder / "target"
    ours, command, loop, shuffled, copied = _turns(
        lambda: _packing(cold, source, _PACK, target),
        lambda: _command(cold, source, target),
        lambda: _packing(cold, source, _LOOP, target, "by class"),
        lambda: _packing(cold, source, _LOOP, target, "shuffled"),
        lambda: _packing(cold, source, _COPY, target),
    )
    what = f"pack 20,000 files of 20 kB, {where}"
    return [
        _rates(what, ours[0], loop[0], 3, "a loop with TFRecordWriter"),
        _rates(what, ours[0], shuffled[0], 3, "the same in the order packed"),
        _rates(what, ours[0], copied[0], 0.7, "their bytes copied into one file"),
        _rates(f"{what}, the whole command", command[0], loop[3], 3, "the loop's, which imports TensorFlow"),
        _rates(f"{what}, without sync", ours[2], loop[2], None, "a loop with TFRecordWriter, whose bytes are not on the disk"),
        (
            f"processor, {where}",
            f"{ours[1]:.2f} s",
            f"the loop: {loop[1]:.2f} s, the copy: {copied[1]:.2f} s",
            f"{loop[1] / ours[1]:.2f} x",
            "",
            True,
        ),
    ]


def _read(packed: Path, source: Path, cold: bool) -> list[Row]:
    def measured(how: str, folder: Path) -> list[float]:
        if cold:
            _forget(folder)
        return _told(_READ, how, folder)

    ours, singly, parallel, bare = _turns(
        lambda: measured("packed", packed),
        lambda: measured("singly", source),
        lambda: measured("parallel", source),
        lambda: _bare(cold, packed),
    )
    what = f"read what was packed, {'cold' if cold else 'in memory'}"
    return [
        _rates(what, ours[0], singly[0], 10, "tf.io.read_file of each"),
        _rates(what, ours[0], parallel[0], 10, "the same in parallel"),
        _rates(what, ours[0], bare[0], 0.7 if cold else None, "the same bytes, read by nobody"),
    ]


def _bare(cold: bool, packed: Path) -> list[float]:
    if cold:
        _forget(packed)
    return _told(_BARE, packed)


def _rates(what: str, ours: float, theirs: float, goal: float | None, against: str) -> Row:
    ratio = theirs / ours
    return (
        what,
        f"{_FILES / ours:,.0f} files/s",
        f"{against}: {_FILES / theirs:,.0f} files/s",
        f"{ratio:.2f} x",
        f">= {goal:g} x" if goal else "",
        ratio >= (goal or 0),
    )


def _memory(folder: Path, source: Path) -> Row:
    """Lists that name the same small file again and again: what is measured is a row's share, not a file's."""
    tiny = folder / "tiny"
    tiny.mkdir()
    (tiny / "a.jpg").write_bytes(next(source.glob("*/*.jpg")).read_bytes()[:200])
    peaks = []
    for count in (_FEW, _MANY):
        listed = folder / f"{count}.csv"
        with open(listed, "w") as stream:
            stream.write("path,label\n")
            stream.writelines(f"{'./' * (i % 50)}a.jpg,{i % 10}\n" for i in range(count))
        peaks.append(_told(_LIST, listed, folder / f"listed{count}", tiny)[0])
    few, many = peaks
    return (
        "memory of a list of 1,000,000 files",
        f"{many:,.0f} MiB",
        f"of 100,000: {few:,.0f} MiB",
        f"{many - few:+,.0f} MiB",
        "<= +64 MiB",
        many - few <= 64,
    )
