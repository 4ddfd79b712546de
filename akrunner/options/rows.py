"""Options about where rows come from and where they go."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.headings import BATCH, FLINK, INPUT, MODELS, OUTPUT, PREDICTIONS, TROUBLE

#: what texts say of formats and of their files' endings; tests/unit/io/formats/test_formats.py holds it against `formats.BUILT_IN`
FORMATS = "csv, parquet, jsonl, arrow, tfrecord, avro, excel, npy or npz"
WRITTEN = FORMATS.replace("jsonl", "jsonl, json (an array)")
ENDINGS = ".parquet .csv .jsonl .arrow .tfrecord .avro .xlsx .npy .npz"
#: texts that several options share
_ARRIVING = (
    'Of an iterable, each row is sent on as it comes. "-" reads lines of stdin: JSON, or CSV with `input_format="csv"`. '
    '"kafka://broker/topic?group=g", "redis://host/stream?group=g" and "files:///directory?group=g" go on where the group was.'
)
_OUTPUTS = (
    'columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major. None: every '
    "output, "
    "of its own type."
)

#: `needs` of options about the input table: they mean nothing if there is no `source`, as the script opens its tables itself
_OF_A_TABLE = {"run": ("source",)}
#: `needs` of options about the files that rows go to
_OF_AN_OUTPUT = dict.fromkeys(("run", "predict"), ("output",))
_OF_A_SPLIT = dict.fromkeys((*BATCH, "pack"), ("split",))

OPTIONS = (
    Option(
        "source",
        "Any",
        INPUT,
        "the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy and .npz, "
        "TFRecord; with `input_format`, images or texts); a pyarrow "
        "Table, RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an iterable of "
        "rows; a cursor, a result of SQLAlchemy, or a connection or engine whose database runs `select`.",
        required=(*FLINK, "pack"),
        instead={
            **dict.fromkeys(FLINK, "a Table or DataStream."),
            "pack": "a directory with a folder for each class; a table with a column of paths; text files; or any table.",
        },
        also={
            "run": "None: there is none, where `tables` or `output_tables` names what the script asks for.",
            "stream": _ARRIVING,
            "predict": "A PyFlink Table's rows stay where Flink has them, and come in no order of their own.",
            "predict_stream": _ARRIVING,
        },
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        help="Table to read: file, glob, directory, URL, or odps://PROJECT/tables/T. Repeatable.",
        helps={
            "run": "Table to read: file, glob, directory, URL, or odps://PROJECT/tables/T. Repeatable; not needed with "
            "--tables or --output-tables.",
            "stream": "What to read: a file, - for lines of stdin, or kafka://, redis://, files:// (docs/streams.md).",
            "pack": "",
            "predict": "Table to read: file, glob, directory, URL, odps://PROJECT/tables/T; - for lines of stdin, or kafka://, "
            "redis://, files:// (docs/streams.md). Repeatable.",
        },
        flags=(
            "--input",
            "-i",
        ),
        often=True,
        many="TABLE",
        # `run` does not require it, as the script may open its tables itself
        needed=("train", "stream", "predict"),
    ),
    Option(
        "tables",
        "SequenceNotStr[str]",
        INPUT,
        '"odps://project/tables/t/pt=v", tables the script may read itself, as scripts of PAI do: by `TableRecordDataset`, '
        "`TableReader`, ... (see the docs of PAI).",
        (),
        verbs=("run",),
        rows=True,
        help="Table the script reads itself, odps://PROJECT/tables/T/pt=V (TableRecordDataset). Repeatable.",
        many="NAME",
    ),
    Option(
        "project",
        "str | None",
        INPUT,
        "project of the names in `tables` and `output_tables` that name none.",
        verbs=("run", "pai"),
        rows=True,
        instead={"pai": "project of tables whose names have none; None: AKRUNNER_PROJECT."},
        help="Project of those --tables and --output-tables that are named without one. Default: $AKRUNNER_PROJECT.",
        helps={"pai": "Project of tables named without one. Default: $AKRUNNER_PROJECT."},
        often=("pai",),
    ),
    Option(
        "select",
        "str | None",
        INPUT,
        "SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.",
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        help="SQL over the table, called `input` in it.",
        needs=_OF_A_TABLE,
        often=("run", "train", "stream", "predict"),
        rows=True,
        instead={"pack": "for tables, as in `run`."},
    ),
    Option(
        "columns",
        "SequenceNotStr[str] | None",
        INPUT,
        "the only columns that go to the tasks, in this order; None: all. The others are not read, either, where the format "
        "keeps columns apart (Parquet, Arrow files, tables by name), nor parsed in CSV. With `select`, which reads every "
        "column and computes, those of its result.",
        help="The only columns that go to the tasks, separated by commas. Default: all.",
        needs=_OF_A_TABLE,
        often=True,
        rows=True,
        verbs=(*SCRIPTS, "pack"),
        types={"pack": "str | Sequence[str] | None"},
        instead={"pack": "names for the columns of text files that stand side by side."},
        helps={"pack": "Names for text files that stand side by side: text,label. Default: those of the files."},
    ),
    Option(
        "defaults",
        "Mapping[str, Any] | None",
        INPUT,
        'column -> what stands there for a null, {"age": 0, "income": float("nan")}, of the column\'s type, before any task '
        "has the row; a script may give others "
        "theirs in `dataset()` and `batches()`. None: nulls stay nulls.",
        help="COLUMN=VALUE: the value that takes the place of the column's nulls; VALUE is JSON, else text. Repeatable.",
        needs=_OF_A_TABLE,
        verbs=(*SCRIPTS, *PREDICTIONS),
        instead=dict.fromkeys(
            PREDICTIONS,
            'column -> what stands there for a null, {"age": 0}, of the column\'s type, for the model and in the rows that '
            "come out. None: nulls stay nulls.",
        ),
        flags=("--default",),
        rows=True,
        many="COLUMN=VALUE",
    ),
    Option(
        "decimals",
        'Literal["refuse", "float64", "text", "int64"]',
        INPUT,
        'what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all digits, '
        '"12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not fit; '
        '"refuse": an error, unless there are no digits behind the point.',
        "refuse",
        also=dict.fromkeys(PREDICTIONS, "In the rows that come out, too."),
        help="What columns of decimals become: float64, text, or int64 (without the point: 12.50 becomes 1250). refuse: a table with such columns is an error.",
        needs=_OF_A_TABLE,
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        rows=True,
    ),
    Option(
        "split",
        "SplitLike | None",
        INPUT,
        'names of splits and their shares of the rows, {"train": 0.8, "test": 0.2} or "train=0.8,test=0.2", for '
        '`task_config.dataset(split="test")`; every row '
        "is in one of them, by a hash, whichever worker it goes to. None: rows are not split.",
        verbs=(*BATCH, "pack"),
        help='Names of splits and their shares of the rows, "train=0.8,test=0.2", for task_config.dataset(split="test").',
        rows=True,
        types={"pack": "Split"},
        instead={
            "pack": 'shares: "0.8,0.1,0.1" (train, validation, test), "0.8,0.2" (train, test), "train=0.9,dev=0.1", a list, a '
            'dict; "folders": the first '
            "folders of `source` are the splits. None: one, called all."
        },
        helps={
            "pack": "Shares: 0.8,0.1,0.1 (train, validation, test), 0.8,0.2 (train, test), or train=0.9,dev=0.1. folders: the "
            "first folders of INPUT are the splits. Default: one, called all."
        },
        often=("pack",),
    ),
    Option(
        "split_by",
        "str | None",
        INPUT,
        "the column whose value decides the split (it must go to the tasks): rows with the same value are in the same "
        "split, in every table. None: the row's number decides.",
        verbs=(*BATCH, "pack"),
        help="Column whose value decides in which split a row is: rows with the same value are in the same one. Default: the row's number decides.",
        needs=_OF_A_SPLIT,
        rows=True,
        types={"pack": 'Literal["name", "exact"]'},
        defaults={"pack": "name"},
        instead={
            "pack": "name: a hash of each file's name decides, so that it is in the same split wherever it is packed, and "
            "shares are as even as chance has them. exact: each class has its share in every split, to within a row."
        },
        helps={
            "pack": "name: a hash of each file's name decides, so that it is in the same split wherever it is packed. exact: "
            "each class has its share in every split, to within a row."
        },
        often=("pack",),
    ),
    Option(
        "split_seed",
        "int",
        INPUT,
        "with another number, rows are split differently; the same number always gives the same splits.",
        0,
        verbs=BATCH,
        help="Number from which the splits are made: with another one, other rows are in each split.",
        needs=_OF_A_SPLIT,
        rows=True,
        least=0,
    ),
    Option(
        "input_schema",
        "SchemaLike | None",
        INPUT,
        "columns to take and their types; needed for TFRecord.",
        verbs=(*SCRIPTS, *MODELS, "pack"),
        instead={
            "LocalPredictor": 'columns of the rows, "x double, image FLOAT_TENSOR"; None: one column for every input of the '
            "signature, named "
            "as it.",
            "pack": "for tables, as in `run`.",
        },
        types={"pack": "str | Schema | None"},
        help="Columns to read and their types; needed for TFRecord.",
        helps={"stream": "Columns to read and their types; needed for kafka://, redis:// and TFRecord."},
        often=("stream",),
        needs=_OF_A_TABLE,
        rows=True,
    ),
    Option(
        "input_format",
        "str | None",
        INPUT,
        'format of the source, if file names do not show it. Of a directory of many small files: "images", a row for each (path, '
        'label, bytes, height, width, format); "texts", a row for each (path, label, text); "lines", a row for each line (path, '
        "line, text), or several files of lines side by side, a column for each.",
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        help=f"Format of the files, if their names do not tell it: {FORMATS}; images, texts or lines: a directory of such files.",
        helps={
            "pack": f"Format of a table's files, if their names do not tell it: {FORMATS}; images or texts: a directory of such "
            "files, as --kind; lines: text files."
        },
        needs=_OF_A_TABLE,
        rows=True,
        instead={
            "pack": 'for tables, as in `run`. "images" and "texts", of a directory, are as `kind`; "lines" is for text files, '
            "whatever their names."
        },
    ),
    Option(
        "input_csv",
        "CsvLike | None",
        INPUT,
        'how CSV is written, "delimiter=;,null=NA" or {"delimiter": ";", "null": ["NA"]}; keys: delimiter, quote, header, null, '
        "decimal, comment, skip, encoding. None: the beginning of the first file tells the delimiter, and a warning says it if "
        "it is no comma.",
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        types={"pack": "str | Mapping[str, Any] | None"},
        help="How CSV is written: delimiter=;,null=NA. Also quote, header, decimal, comment, skip, encoding.",
        needs=_OF_A_TABLE,
        rows=True,
        instead={"pack": "of tables, as in `run`."},
    ),
    Option(
        "bad_rows",
        "PathLike",
        TROUBLE,
        "what becomes of rows of CSV and JSON lines, and of messages of Kafka and Redis, that do not parse, or do not fit "
        "`input_schema`: fail; skip: they are left out, counted, and the first shown; or a directory that rows are written to as JSON "
        "lines.",
        "fail",
        verbs=(*SCRIPTS, *PREDICTIONS, "pack"),
        help="What becomes of rows of CSV and JSON lines, and of messages, that cannot be read: fail; skip; or a directory for rows.",
        needs=_OF_A_TABLE,
        rows=True,
        instead={"pack": "what becomes of broken files: fail; skip: they are left out; or a directory they are copied to."},
        helps={"pack": "What becomes of broken files: fail; skip; or a directory that they are copied to."},
        often=("pack",),
    ),
    Option(
        "max_bad_rows",
        "int | str",
        TROUBLE,
        'with `bad_rows`: how many rows may be bad, 100, or which share of them, "1%" (judged from the 10,000th row on, and at '
        "the end); with more, the job fails.",
        100,
        verbs=(*SCRIPTS, *PREDICTIONS),
        help="With --bad-rows: how many rows may be bad, 100, or which share, 1%; with more, the job fails.",
        rows=True,
    ),
    Option(
        "follow",
        "bool",
        INPUT,
        "the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.",
        False,
        verbs=("stream", "predict_stream"),
        apart=True,
        help="Wait for more at the file's end; results go out as they come.",
        often=True,
        rows=True,
    ),
    Option(
        "flush_seconds",
        "float",
        INPUT,
        "how many seconds a row waits at most for others to be sent with it, on its way in and out together.",
        0.02,
        verbs=("stream", "predict_stream"),
        help="Seconds that a row waits, at most, for other rows that are sent together with it.",
        above=0,
    ),
    Option(
        "data_format",
        'Literal["examples", "columns"]',
        INPUT,
        '"examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several times '
        "faster, for "
        "scripts that read them by `task_config.dataset()` or `task_config.batches()`.",
        "examples",
        help="How rows are sent to the tasks: examples; or columns, which is faster, for scripts that use task_config.dataset() or batches().",
    ),
    Option(
        "output_tables",
        "SequenceNotStr[str]",
        OUTPUT,
        "tables the script may write, by `TableWriter`: what it writes replaces what was there when the job has succeeded.",
        (),
        verbs=("run",),
        rows=True,
        help="Table the script writes itself (TableWriter). Repeatable.",
        many="NAME",
    ),
    Option(
        "output_schema",
        "SchemaLike | None",
        OUTPUT,
        'columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow schema. '
        "None: those "
        "of the first batch it writes; a stream, and rows of a Table, need it.",
        verbs=(*SCRIPTS, *MODELS),
        required=FLINK[:2],
        types=dict.fromkeys(FLINK[:2], "SchemaLike"),
        instead=dict.fromkeys((*MODELS, "flink.predict"), _OUTPUTS),
        help='Columns the script writes: "id bigint, p double". Default: those of the first batch it writes; a stream needs it.',
        helps={"predict": 'Columns the outputs become: "p double, v FLOAT_TENSOR". Default: all outputs, of their own types.'},
        often=True,
    ),
    Option(
        "output",
        "PathLike | None",
        OUTPUT,
        f"file to write them to ({ENDINGS}; .csv.gz, .jsonl.zst: compressed); "
        '"dir/": a directory '
        "with a file of each task, parquet unless `output_format` says otherwise; None: they come back as `result.table`.",
        verbs=("run", "predict", "pack"),
        help=f"File to write: {ENDINGS}. DIR/ for a directory with a file of each task. - for "
        "stdout: JSON lines, or --output-format csv or arrow. odps://PROJECT/tables/T: rows are added to the table.",
        helps={
            "pack": "",
            "stream": "File to write; it is there when the stream has ended. kafka://BROKER/TOPIC, redis://HOST/STREAM: rows are added as "
            "they come. Default, and -: stdout, JSON lines, as they come.",
            "predict": f"File to write: {ENDINGS}; DIR/ for a directory of files; - for "
            "stdout. If --input is a stream, also kafka://BROKER/TOPIC or redis://HOST/STREAM.",
        },
        flags=(
            "--output",
            "-o",
        ),
        often=True,
        rows=True,
        required=("pack",),
        types={"pack": "PathLike"},
        commands=("stream",),
        instead={"pack": "a directory, new or empty, or one that `pack` has written."},
    ),
    Option(
        "output_format",
        "str | None",
        OUTPUT,
        'format of `output`, if its name does not show it. `"json"`: an array of objects. `"csv.gz"`, `"jsonl.zst"`: compressed.',
        verbs=("run", "predict"),
        help=f"Format of --output, if its name does not tell it: {WRITTEN}; csv.gz: compressed.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "output_csv",
        "CsvLike | None",
        OUTPUT,
        'how `output` is written if it is CSV, "delimiter=tab,null=NA"; keys: delimiter, quote, header, null, decimal, encoding. '
        "None: with commas, and with tabs if the name ends in .tsv.",
        verbs=("run", "predict"),
        help="How --output is written if it is CSV: delimiter=tab,null=NA. Also quote, header, decimal, encoding.",
        needs=dict.fromkeys(("run", "predict"), ("output",)),
        rows=True,
    ),
    Option(
        "overwrite",
        "bool",
        OUTPUT,
        "replace what is there already: in `run` and `predict` at `output`, in `train` at `model_out`.",
        False,
        verbs=(*BATCH, "predict", "pack"),
        help="Replace an existing --output, or a table's rows.",
        helps={
            "train": "Replace an existing --model-out.",
            "stream": "Replace an existing --output.",
            "pack": "Pack everything anew; the old output stays valid until that is done.",
        },
        instead={"pack": "pack everything anew; the old output stays valid until that is done."},
        needs={**dict.fromkeys(("run", "stream", "predict"), ("output",)), "train": ("model_out",)},
        commands=("stream",),
        often=True,
        rows=True,
    ),
    Option(
        "partition_by",
        "SequenceNotStr[str] | None",
        OUTPUT,
        "columns whose values become names of directories, outermost first, as Hive, Spark, DuckDB and Arrow read them: "
        '`["day", "hour"]` writes `day=2026-11-26/hour=7/part-chief-0.parquet`; `output` is a directory. None: none.',
        verbs=("run", "predict"),
        help="Columns that become directories DAY=.../HOUR=... in --output DIR/, separated by commas.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "sort_by",
        "SequenceNotStr[str] | None",
        OUTPUT,
        'columns by which all rows are sorted, `["user", "time desc"]`, nulls last; within their directories, with '
        "`partition_by`. The rows are kept on the disk until the last one is there (TMPDIR). None: they stay as tasks write them.",
        verbs=("run", "predict"),
        help='Columns to sort all rows by, separated by commas: "user,time desc".',
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "max_rows_per_file",
        "int | None",
        OUTPUT,
        "the most rows of a file in a directory; the next file has the next ones. None: no limit.",
        verbs=("run", "predict"),
        help="The most rows that a file in --output DIR/ may have.",
        needs=_OF_AN_OUTPUT,
        rows=True,
        least=1,
    ),
    Option(
        "max_bytes_per_file",
        "int | str | None",
        OUTPUT,
        'the size that a file in a directory stays below, about, in bytes or as "128MB". None: no limit.',
        verbs=("run", "predict"),
        help="About how many bytes a file in --output DIR/ may have: 128MB, 1GiB, or a number.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "output_compression",
        "str | None",
        OUTPUT,
        'codec of Parquet: "zstd", "snappy", "gzip", "brotli", "lz4", "none"; of Arrow: "zstd", "lz4", "none"; with a level as in '
        '"zstd:3". None: Parquet has snappy, Arrow none.',
        verbs=("run", "predict"),
        help="Codec of Parquet and Arrow: zstd, zstd:3, snappy, gzip, brotli, lz4, none. Default: snappy in Parquet, none in Arrow.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "append",
        "bool",
        OUTPUT,
        "put new files beside those that are in the directory `output`, all at once when the job has succeeded.",
        False,
        verbs=("run", "predict"),
        help="Add files to those that are in --output DIR/.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
    Option(
        "manifest",
        "bool",
        OUTPUT,
        "write `_SUCCESS` into the directory `output`, last: JSON with its files, their rows and bytes, and the columns.",
        False,
        verbs=("run", "predict"),
        help="Write _SUCCESS into --output DIR/, last: JSON with its files, rows and columns.",
        needs=_OF_AN_OUTPUT,
        rows=True,
    ),
)
