"""Models as rows of a model table, and files that training reads and leaves.

The rows have Alink's layout: row 0 is the zip's file name, and rows 1.. are its bytes as base64, 1 MiB of the zip in each.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import os
import re
import shutil
import struct
import zipfile
from typing import Any, Dict, List, Tuple

_CHUNK = 1 << 20
#: a model may unpack to this many bytes, or to _RATIO times the size of its zip if that is more
_UNPACKED = 1 << 30
_RATIO = 100
#: files and directories that Estimators and Keras leave in a model's directory, beside the user's own files
_FILES = re.compile(r"checkpoint|graph\.pbtxt|.*\.(index|meta|data-\d+-of-\d+)|events\.out\.tfevents\..*")
_FOLDERS = ("keras", "eval_val", "export", "best_ckpt", "pretrained_ckpt")


def find_timestamp_dir(dir: str) -> str:
    """Return the first sub-directory (an export's timestamp); or the directory itself if it has none, or is a SavedModel."""
    for name in sorted(os.listdir(dir)):
        path = os.path.join(dir, name)
        # the sub-directories of a SavedModel are parts of it
        if os.path.isdir(path) and not os.path.exists(os.path.join(dir, "saved_model.pb")):
            return path
    return dir


def pack_dir_to_file(dir: str, chunk_size: int) -> Dict[str, Any]:
    """Zip the contents of a directory into a file beside it, which has the directory's name and the ending .zip.

    Returns:
        {name, size, chunk_size, chunks}: the zip's path, its bytes, the bytes of a piece, and the number of pieces.
    """
    path = shutil.make_archive(dir.rstrip("/"), "zip", root_dir=dir)
    size = os.path.getsize(path)
    return {"name": path, "size": size, "chunk_size": chunk_size, "chunks": -(-size // chunk_size)}


def output_model_to_flink(model_dir: str, output_writer: Any) -> None:
    """Write the SavedModel in a directory (its first sub-directory, else itself) as model rows."""
    packed = pack_dir_to_file(find_timestamp_dir(model_dir), _CHUNK)
    _write_row(output_writer, 0, os.path.basename(packed["name"]).encode("utf-8"))
    _write_pieces(output_writer, [packed])


def output_model_ckpt_to_flink(saved_model_dir: str, latest_ckpt_dir: str, output_writer: Any) -> None:
    """Write a SavedModel and its latest checkpoint as model rows: two zips, and row 0 is a JSON list that describes them."""
    packed = [pack_dir_to_file(find_timestamp_dir(saved_model_dir), _CHUNK), pack_dir_to_file(latest_ckpt_dir, _CHUNK)]
    told = [dict(one, name=os.path.basename(one["name"])) for one in packed]
    _write_row(output_writer, 0, json.dumps(told).encode("utf-8"))
    _write_pieces(output_writer, packed)


def unpack_model_from_flink(model_path: str, work_dir: str) -> str:
    """Unpack the model in a text file of model rows, which has lines `id value`.

    Returns:
        The directory into which the model was unpacked; if there are two zips, the first one's.
    """
    rows = {}
    with open(model_path) as lines:
        for line in lines:
            number, _, value = line.rstrip("\n").partition(" ")
            if number.strip():
                rows[int(number)] = value
    head = rows[0]
    if head.lstrip().startswith("["):
        files = [(one["name"], one["chunks"]) for one in json.loads(head)]
    else:
        files = [(head, len(rows) - 1)]
    folders = []
    at = 1
    for name, count in files:
        data = b"".join(base64.b64decode(rows[i]) for i in range(at, at + count))
        at += count
        stem = os.path.splitext(os.path.basename(name))[0]
        if stem in ("", ".", "..") or "\0" in stem:
            raise ValueError("row 0 of the model names %r, which is no file" % name[:80])
        folder = os.path.join(work_dir, stem)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, name, len(data))
            # a symbolic link in the zip is unpacked as a plain file, and file modes are ignored
            archive.extractall(folder)
        folders.append(folder)
    return folders[0]


def _check_members(archive: zipfile.ZipFile, name: str, packed: int) -> None:
    """Check the members of a zip. Raises: ValueError: one would be outside the directory, or they are too large together."""
    size = 0
    for member in archive.infolist():
        inside = os.path.normpath(member.filename.replace("\\", "/"))
        if os.path.isabs(inside) or inside.split("/")[0] == "..":
            raise ValueError("%s holds %r, which would lie outside its directory" % (name, member.filename))
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("%s holds %r in a compression that is not a zip's usual one" % (name, member.filename))
        # zipfile never unpacks more than the announced size
        size += member.file_size
    if size > max(_UNPACKED, _RATIO * packed):
        raise ValueError("%s unpacks to %d bytes, more than %d times its size" % (name, size, _RATIO))


def remove_checkpoint_files(model_dir: str) -> None:
    """Remove what training has left in a directory: checkpoints, graphs, events and their sub-directories. Other files stay."""
    if not os.path.isdir(model_dir):
        return
    for name in os.listdir(model_dir):
        path = os.path.join(model_dir, name)
        if os.path.isdir(path):
            if name in _FOLDERS:
                os.remove(path) if os.path.islink(path) else shutil.rmtree(path)
        elif _FILES.fullmatch(name):
            os.remove(path)


def gfile_copy_dir_content(remote_dir: str, local_dir: str) -> None:
    """Copy the contents of a directory that TensorFlow can read (a path or a URL) into a local directory."""
    import tensorflow as tf

    gfile = tf.io.gfile
    gfile.makedirs(local_dir)
    for name in gfile.listdir(remote_dir):
        source, target = os.path.join(remote_dir, name), os.path.join(local_dir, name.rstrip("/"))
        if gfile.isdir(source):
            gfile_copy_dir_content(source, target)
        else:
            file_io_copy_fix(source, target, overwrite=True)


def file_io_copy_fix(src: str, dst: str, overwrite: bool = False) -> None:
    """Copy one file piece by piece. Both may be a path or a URL that TensorFlow can read, or write.

    Raises:
        ValueError: `dst` exists, and overwrite is False.
    """
    import tensorflow as tf

    if not overwrite and tf.io.gfile.exists(dst):
        raise ValueError("%s exists already (overwrite=True replaces it)" % dst)
    with tf.io.gfile.GFile(src, "rb") as source, tf.io.gfile.GFile(dst, "wb") as target:
        # write something even if the source is empty: otherwise TensorFlow would not make the file
        target.write(b"")
        shutil.copyfileobj(source, target, _CHUNK)


def convert_java_queue_file_to_repeatable_dataset(java_file: Any, path: str) -> Tuple[Any, int]:
    """Copy the records of a `JavaFile` into a TFRecord file. Returns: (the file's TFRecordDataset, the number of records)."""
    import tensorflow as tf

    count = 0
    with open(path, "wb") as out:
        while True:
            try:
                head = java_file.read(12)
            except EOFError:
                break
            out.write(head)
            out.write(java_file.read(struct.unpack("<Q", head[:8])[0] + 4))
            count += 1
    return tf.data.TFRecordDataset(path), count


def _write_pieces(output_writer: Any, packed: List[Dict[str, Any]]) -> None:
    number = 0
    for one in packed:
        with open(one["name"], "rb") as f:
            for piece in iter(functools.partial(f.read, _CHUNK), b""):
                number += 1
                _write_row(output_writer, number, base64.b64encode(piece))


def _write_row(output_writer: Any, number: int, info: bytes) -> None:
    import tensorflow as tf

    train = tf.train
    feature = {
        "model_id": train.Feature(int64_list=train.Int64List(value=[number])),
        "model_info": train.Feature(bytes_list=train.BytesList(value=[info])),
    }
    output_writer.write(train.Example(features=train.Features(feature=feature)))
