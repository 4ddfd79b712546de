"""`akrunner pack` against the loop people write, and what it has packed against the files it was made of."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, List, Tuple

import numpy as np

_FILES, _BYTES, _CLASSES, _TURNS = 20_000, 20_000, 10, 3
#: files of the list that memory is measured with, and the fewer it is compared with
_MANY, _FEW = 1_000_000, 100_000

#: as `bench.__main__`
Row = Tuple[str, str, str, str, str, bool]

_LOOP = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
source, target = sys.argv[1:]
began = time.perf_counter()
classes = sorted(os.listdir(source))
with tf.io.TFRecordWriter(target) as writer:
    for label, name in enumerate(classes):
        for file in sorted(os.listdir(os.path.join(source, name))):
            path = os.path.join(source, name, file)
            with open(path, "rb") as f:
                data = f.read()
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "path": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.encode()])),
            })).SerializeToString())
os.sync()
print(time.perf_counter() - began)
"""
_PACK = """
import os, sys, time
import akrunner.packing.job
began = time.perf_counter()
akrunner.pack(sys.argv[1], sys.argv[2], seed=1)
os.sync()
print(time.perf_counter() - began)
"""
#: the disk's own speed: the same bytes, from as many files, into one
_COPY = """
import os, sys, time
source, target = sys.argv[1:]
began = time.perf_counter()
with open(target, "wb", buffering=0) as out:
    for folder, _, names in os.walk(source):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            out.write(os.read(fd, 1 << 17))
            os.close(fd)
    os.fsync(out.fileno())
os.sync()
print(time.perf_counter() - began)
"""
_READ = """
import glob, os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
how, folder = sys.argv[1:]
if how == "singly":
    files = tf.random.shuffle(tf.constant(glob.glob(folder + "/*/*")), seed=1)
    rows = tf.data.Dataset.from_tensor_slices(files).map(tf.io.read_file)
else:
    rows = tf.data.TFRecordDataset(sorted(glob.glob(folder + "/*.tfrecord")), buffer_size=8 << 20)
began = time.perf_counter()
for _ in rows.batch(32).prefetch(2):
    pass
print(time.perf_counter() - began)
"""
_LIST = """
import resource, sys
import akrunner
akrunner.pack(sys.argv[1], sys.argv[2], seed=1, dry_run=False, paths_in=sys.argv[3], split="0.8,0.2")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
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


def _told(script: str, *arguments: object) -> List[float]:
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


def _cold(source: Path, script: str, target: Path) -> float:
    _forget(source)
    return _told(script, source, target)[0]


def _turns(*measures: Callable[[int], float]) -> List[float]:
    """The median of each, measured in turns."""
    found = [[measure(turn) for measure in measures] for turn in range(_TURNS)]
    return [statistics.median(each) for each in zip(*found)]


def pack() -> List[Row]:
    """Speed of packing and of reading, and memory."""
    rows: List[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "photos"
        _photos(source)
        os.sync()
        ours, loop, copied = _turns(
            lambda turn: _cold(source, _PACK, folder / f"packed{turn}"),
            lambda turn: _cold(source, _LOOP, folder / "loop.tfrecord"),
            lambda turn: _cold(source, _COPY, folder / "copy"),
        )
        rows.append(_rates("pack 20,000 files of 20 kB", ours, loop, 3, "a loop with TFRecordWriter"))
        rows.append(_rates("pack 20,000 files of 20 kB", ours, copied, 0.7, "their bytes copied into one file"))
        packed, singly = _turns(
            lambda turn: _read("packed", folder / f"packed{turn}" / "all"), lambda turn: _read("singly", source)
        )
        rows.append(_rates("read what was packed", packed, singly, 10, "tf.io.read_file of each"))
        rows.append(_memory(folder, source))
    return rows


def _read(how: str, folder: Path) -> float:
    _forget(folder)
    return _told(_READ, how, folder)[0]


def _rates(what: str, ours: float, theirs: float, goal: float, against: str) -> Row:
    ratio = theirs / ours
    return (
        what,
        f"{_FILES / ours:,.0f} files/s",
        f"{against}: {_FILES / theirs:,.0f} files/s",
        f"{ratio:.2f} x",
        f">= {goal:g} x",
        ratio >= goal,
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
        "memory of 1,000,000 files",
        f"{many:,.0f} MiB",
        f"of 100,000: {few:,.0f} MiB",
        f"{many - few:+,.0f} MiB",
        "<= +256 MiB",
        many - few <= 256,
    )
