from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Member(_message.Message):
    __slots__ = ("task", "host", "port", "attempt", "timeout")
    TASK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    task: str
    host: str
    port: int
    attempt: int
    timeout: float
    def __init__(self, task: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., attempt: _Optional[int] = ..., timeout: _Optional[float] = ...) -> None: ...

class Cluster(_message.Message):
    __slots__ = ("addresses",)
    class AddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.ScalarMap[str, str]
    def __init__(self, addresses: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Sign(_message.Message):
    __slots__ = ("task", "attempt")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    task: str
    attempt: int
    def __init__(self, task: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("task", "attempt", "ok", "what")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    task: str
    attempt: int
    ok: bool
    what: str
    def __init__(self, task: _Optional[str] = ..., attempt: _Optional[int] = ..., ok: bool = ..., what: _Optional[str] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("stop", "why")
    STOP_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    stop: bool
    why: str
    def __init__(self, stop: bool = ..., why: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("kind", "task", "what")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Event.Kind]
        COMPLETE: _ClassVar[Event.Kind]
        FAILED: _ClassVar[Event.Kind]
        LOST: _ClassVar[Event.Kind]
        OVER: _ClassVar[Event.Kind]
    NONE: Event.Kind
    COMPLETE: Event.Kind
    FAILED: Event.Kind
    LOST: Event.Kind
    OVER: Event.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    kind: Event.Kind
    task: str
    what: str
    def __init__(self, kind: _Optional[_Union[Event.Kind, str]] = ..., task: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...
