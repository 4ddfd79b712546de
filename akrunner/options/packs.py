"""Options that only `pack` has."""

from __future__ import annotations

from akrunner.options.declared import Option
from akrunner.options.headings import INPUT, OUTPUT, RESOURCES, TROUBLE

_PACK = ("pack",)

OPTIONS = (
    Option(
        "places",
        "SequenceNotStr[str]",
        INPUT,
        "",
        verbs=(),
        commands=_PACK,
        help="A directory with a folder for each class, a table with a column of paths, text files (several stand side by "
        "side), or any table; and the directory to write.",
        stands=_PACK,
        needed=_PACK,
        many="INPUT... OUTPUT",
    ),
    Option(
        "seed",
        "int",
        INPUT,
        "seed of the order and the splits.",
        0,
        verbs=_PACK,
        help="Seed of the order and the splits.",
        often=True,
    ),
    Option(
        "kind",
        'Literal["images", "texts", "files", "rows"] | None',
        INPUT,
        "images, texts (a row a file), files (any bytes), rows (of tables, or lines of texts). None: by names and contents.",
        verbs=_PACK,
        help="What is packed: images, texts (each file becomes a row), files (of any kind), or rows (of tables, or of lines). Default: told by names and "
        "contents.",
        often=True,
    ),
    Option(
        "label",
        "str | None",
        INPUT,
        'column of classes; "none": there are no classes. None: folders, or the first of the columns label, class, labels, class_name and category that can '
        "have classes.",
        verbs=_PACK,
        help="Column with the classes; none: there are no classes. Default: folders, or the first of the columns label, class, labels, class_name and "
        "category that can have classes.",
        often=True,
    ),
    Option(
        "paths",
        "str | None",
        INPUT,
        "the column of paths or URLs. None: by names and values.",
        verbs=_PACK,
        help="Column with the paths or URLs of files. Default: told by names and values.",
        often=True,
    ),
    Option(
        "paths_in",
        "PathLike | None",
        INPUT,
        "directory, or beginning of URLs, that relative paths are below. None: where the table is.",
        verbs=_PACK,
        help="Directory, or beginning of URLs, that relative paths are below. Default: where the table is.",
    ),
    Option(
        "format",
        'Literal["tfrecord", "parquet", "arrow"]',
        OUTPUT,
        "format of the files that are written.",
        "tfrecord",
        verbs=_PACK,
        help="Format of the output: tfrecord, parquet or arrow.",
        often=True,
    ),
    Option(
        "shard_size",
        "int | str",
        OUTPUT,
        "bytes of a file that is written, about: 128MB, 1GiB.",
        "128MB",
        verbs=_PACK,
        help="About how many bytes a file of the output has.",
    ),
    Option(
        "resize",
        "int | str | tuple[int, int] | None",
        OUTPUT,
        '"WIDTHxHEIGHT", (height, width), or one number for both: images in another size, turned as EXIF says (needs Pillow). '
        "None: the files as they are.",
        verbs=_PACK,
        help="Size of images: WIDTHxHEIGHT, or one number for both; they are turned as EXIF says. Default: the files as they are. Needs "
        "Pillow.",
        often=True,
    ),
    Option(
        "check",
        'Literal["none", "header", "whole"]',
        TROUBLE,
        "what is checked of each image: header; whole: it is decoded (needs Pillow); none.",
        "header",
        verbs=_PACK,
        help="What is checked of each image: header; whole (it is decoded, which needs Pillow); or none, which checks nothing.",
    ),
    Option(
        "max_file_size",
        "int | str",
        TROUBLE,
        "bytes that a file may have; a larger one counts as broken, and no more than that is read from a URL.",
        "256MB",
        verbs=_PACK,
        help="Bytes that a file may have. A larger file counts as broken; of a URL, no more than that is read.",
    ),
    Option(
        "threads",
        "int | None",
        RESOURCES,
        "threads that read files. None: 16.",
        verbs=_PACK,
        help="Threads that read files. Default: 16.",
    ),
    Option(
        "memory",
        "int | str",
        RESOURCES,
        "bytes for the shuffling of tables: 512MB, 1GiB.",
        "512MB",
        verbs=_PACK,
        help="Bytes for the shuffling of tables.",
    ),
    Option(
        "verify",
        "bool",
        TROUBLE,
        "read every file that is packed already, and compare its checksum with that of what was written, before anything is "
        "packed.",
        False,
        verbs=_PACK,
        help="Read every file that is packed already, and compare its checksum with that of what was written.",
    ),
)
