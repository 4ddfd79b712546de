from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SYSTEM: _ClassVar[Reason]
    ADDRESS: _ClassVar[Reason]
    INTERPRETER: _ClassVar[Reason]
    VALUE: _ClassVar[Reason]
    INPUT: _ClassVar[Reason]
    FORM: _ClassVar[Reason]

class Group(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOBODY: _ClassVar[Group]
    TERMINATE: _ClassVar[Group]
    KILL: _ClassVar[Group]
SYSTEM: Reason
ADDRESS: Reason
INTERPRETER: Reason
VALUE: Reason
INPUT: Reason
FORM: Reason
NOBODY: Group
TERMINATE: Group
KILL: Group

class Nothing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Said(_message.Message):
    __slots__ = ("register", "settled", "failed", "started", "sample", "given", "refused", "exit", "log", "over", "broken")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    register: Register
    settled: Settled
    failed: Failed
    started: Started
    sample: Sample
    given: Given
    refused: Refused
    exit: Exit
    log: Log
    over: Nothing
    broken: str
    def __init__(self, register: _Optional[_Union[Register, _Mapping]] = ..., settled: _Optional[_Union[Settled, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., sample: _Optional[_Union[Sample, _Mapping]] = ..., given: _Optional[_Union[Given, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., exit: _Optional[_Union[Exit, _Mapping]] = ..., log: _Optional[_Union[Log, _Mapping]] = ..., over: _Optional[_Union[Nothing, _Mapping]] = ..., broken: _Optional[str] = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("version", "agent", "with_rows", "subtask", "attempt", "job")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    WITH_ROWS_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    version: int
    agent: str
    with_rows: bool
    subtask: int
    attempt: int
    job: str
    def __init__(self, version: _Optional[int] = ..., agent: _Optional[str] = ..., with_rows: bool = ..., subtask: _Optional[int] = ..., attempt: _Optional[int] = ..., job: _Optional[str] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("address", "folder", "machine", "cores", "reads_files", "writes_output", "unread")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    READS_FILES_FIELD_NUMBER: _ClassVar[int]
    WRITES_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    address: str
    folder: str
    machine: str
    cores: int
    reads_files: bool
    writes_output: bool
    unread: str
    def __init__(self, address: _Optional[str] = ..., folder: _Optional[str] = ..., machine: _Optional[str] = ..., cores: _Optional[int] = ..., reads_files: bool = ..., writes_output: bool = ..., unread: _Optional[str] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("reason", "words")
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    words: str
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ..., words: _Optional[str] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: int
    def __init__(self, pid: _Optional[int] = ...) -> None: ...

class Sample(_message.Message):
    __slots__ = ("rss", "cpu", "tree", "memory")
    RSS_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    rss: int
    cpu: float
    tree: float
    memory: int
    def __init__(self, rss: _Optional[int] = ..., cpu: _Optional[float] = ..., tree: _Optional[float] = ..., memory: _Optional[int] = ...) -> None: ...

class Given(_message.Message):
    __slots__ = ("rows", "dropped", "bytes", "finished")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    rows: int
    dropped: int
    bytes: int
    finished: bool
    def __init__(self, rows: _Optional[int] = ..., dropped: _Optional[int] = ..., bytes: _Optional[int] = ..., finished: bool = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("reason", "words")
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    words: str
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ..., words: _Optional[str] = ...) -> None: ...

class Exit(_message.Message):
    __slots__ = ("code", "signal", "peak_rss", "cpu_seconds", "time_ns", "memory", "out_of_memory")
    CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    PEAK_RSS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_MEMORY_FIELD_NUMBER: _ClassVar[int]
    code: int
    signal: int
    peak_rss: int
    cpu_seconds: float
    time_ns: int
    memory: int
    out_of_memory: bool
    def __init__(self, code: _Optional[int] = ..., signal: _Optional[int] = ..., peak_rss: _Optional[int] = ..., cpu_seconds: _Optional[float] = ..., time_ns: _Optional[int] = ..., memory: _Optional[int] = ..., out_of_memory: bool = ...) -> None: ...

class Log(_message.Message):
    __slots__ = ("data", "last")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    last: bool
    def __init__(self, data: _Optional[bytes] = ..., last: bool = ...) -> None: ...

class Told(_message.Message):
    __slots__ = ("welcome", "ask", "order", "signal", "group", "give", "end", "leave")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GIVE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    ask: Ask
    order: Order
    signal: int
    group: Group
    give: Give
    end: Nothing
    leave: Leave
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., order: _Optional[_Union[Order, _Mapping]] = ..., signal: _Optional[int] = ..., group: _Optional[_Union[Group, str]] = ..., give: _Optional[_Union[Give, _Mapping]] = ..., end: _Optional[_Union[Nothing, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class File(_message.Message):
    __slots__ = ("path", "bytes", "tag")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    path: str
    bytes: int
    tag: str
    def __init__(self, path: _Optional[str] = ..., bytes: _Optional[int] = ..., tag: _Optional[str] = ...) -> None: ...

class Store(_message.Message):
    __slots__ = ("scheme", "settings", "secrets")
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    scheme: str
    settings: str
    secrets: str
    def __init__(self, scheme: _Optional[str] = ..., settings: _Optional[str] = ..., secrets: _Optional[str] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("python", "bind_host", "advertised_host", "files", "output", "store")
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    BIND_HOST_FIELD_NUMBER: _ClassVar[int]
    ADVERTISED_HOST_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    python: str
    bind_host: str
    advertised_host: str
    files: _containers.RepeatedCompositeFieldContainer[File]
    output: str
    store: Store
    def __init__(self, python: _Optional[str] = ..., bind_host: _Optional[str] = ..., advertised_host: _Optional[str] = ..., files: _Optional[_Iterable[_Union[File, _Mapping]]] = ..., output: _Optional[str] = ..., store: _Optional[_Union[Store, _Mapping]] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("streaming", "data_format", "chunk_rows", "chunk_bytes", "output", "files", "pairs", "threads", "env", "directories")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STREAMING_FIELD_NUMBER: _ClassVar[int]
    DATA_FORMAT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ROWS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    streaming: bool
    data_format: str
    chunk_rows: int
    chunk_bytes: int
    output: Output
    files: Files
    pairs: Pairs
    threads: int
    env: _containers.ScalarMap[str, str]
    directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, streaming: bool = ..., data_format: _Optional[str] = ..., chunk_rows: _Optional[int] = ..., chunk_bytes: _Optional[int] = ..., output: _Optional[_Union[Output, _Mapping]] = ..., files: _Optional[_Union[Files, _Mapping]] = ..., pairs: _Optional[_Union[Pairs, _Mapping]] = ..., threads: _Optional[int] = ..., env: _Optional[_Mapping[str, str]] = ..., directories: _Optional[_Iterable[str]] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("schema", "rows", "part", "format")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    schema: bytes
    rows: bytes
    part: str
    format: str
    def __init__(self, schema: _Optional[bytes] = ..., rows: _Optional[bytes] = ..., part: _Optional[str] = ..., format: _Optional[str] = ...) -> None: ...

class Files(_message.Message):
    __slots__ = ("format", "schema", "parts", "files")
    class Part(_message.Message):
        __slots__ = ("path", "block", "start", "stop")
        PATH_FIELD_NUMBER: _ClassVar[int]
        BLOCK_FIELD_NUMBER: _ClassVar[int]
        START_FIELD_NUMBER: _ClassVar[int]
        STOP_FIELD_NUMBER: _ClassVar[int]
        path: str
        block: str
        start: int
        stop: int
        def __init__(self, path: _Optional[str] = ..., block: _Optional[str] = ..., start: _Optional[int] = ..., stop: _Optional[int] = ...) -> None: ...
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    format: str
    schema: bytes
    parts: _containers.RepeatedCompositeFieldContainer[Files.Part]
    files: _containers.RepeatedCompositeFieldContainer[File]
    def __init__(self, format: _Optional[str] = ..., schema: _Optional[bytes] = ..., parts: _Optional[_Iterable[_Union[Files.Part, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[File, _Mapping]]] = ...) -> None: ...

class Pairs(_message.Message):
    __slots__ = ("inputs", "feed", "outputs", "result")
    class Input(_message.Message):
        __slots__ = ("name", "dtype", "columns", "travels")
        NAME_FIELD_NUMBER: _ClassVar[int]
        DTYPE_FIELD_NUMBER: _ClassVar[int]
        COLUMNS_FIELD_NUMBER: _ClassVar[int]
        TRAVELS_FIELD_NUMBER: _ClassVar[int]
        name: str
        dtype: str
        columns: _containers.RepeatedScalarFieldContainer[str]
        travels: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., travels: _Optional[_Iterable[str]] = ...) -> None: ...
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    FEED_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[Pairs.Input]
    feed: bytes
    outputs: _containers.RepeatedScalarFieldContainer[str]
    result: bytes
    def __init__(self, inputs: _Optional[_Iterable[_Union[Pairs.Input, _Mapping]]] = ..., feed: _Optional[bytes] = ..., outputs: _Optional[_Iterable[str]] = ..., result: _Optional[bytes] = ...) -> None: ...

class Give(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ("error", "final")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    error: str
    final: bool
    def __init__(self, error: _Optional[str] = ..., final: bool = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("agent", "kind", "nonce", "proof")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Opening.Kind]
        IN: _ClassVar[Opening.Kind]
        OUT: _ClassVar[Opening.Kind]
        GIVE: _ClassVar[Opening.Kind]
    NONE: Opening.Kind
    IN: Opening.Kind
    OUT: Opening.Kind
    GIVE: Opening.Kind
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    agent: str
    kind: Opening.Kind
    nonce: str
    proof: str
    def __init__(self, agent: _Optional[str] = ..., kind: _Optional[_Union[Opening.Kind, str]] = ..., nonce: _Optional[str] = ..., proof: _Optional[str] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("proof",)
    PROOF_FIELD_NUMBER: _ClassVar[int]
    proof: str
    def __init__(self, proof: _Optional[str] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("truth", "number", "real", "text", "data", "decimal", "date", "time", "moment", "list")
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_FIELD_NUMBER: _ClassVar[int]
    DATE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    MOMENT_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    truth: bool
    number: int
    real: float
    text: str
    data: bytes
    decimal: str
    date: str
    time: str
    moment: str
    list: Values
    def __init__(self, truth: bool = ..., number: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ..., decimal: _Optional[str] = ..., date: _Optional[str] = ..., time: _Optional[str] = ..., moment: _Optional[str] = ..., list: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...

class Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...
