"""Shapes of the JSON objects that cross between processes, declared as types.

Type checkers take a shape for a `typing.TypedDict`. At run time it is a dict that is made from its fields, and what arrives is
checked against the same declaration::

    class Ready(TypedDict):
        rows: Count
        waited_ns: Count

    Ready(rows=3, waited_ns=5)              {"rows": 3, "waited_ns": 5}
    check("ready message", body, Ready)     raises WireError if a field is missing or does not fit
"""

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Tuple

from akrunner.wire.frames import WireError


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_positive(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_int64(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_int64(value)


def _is_amount(value: Any) -> bool:
    # as many times a hundred is finite, too: shares are shown as percents
    return _is_number(value) and 0 <= value < 1 << 63


def _is_text(value: Any) -> bool:
    # a lone surrogate cannot be printed
    return isinstance(value, str) and value.encode("utf-8", "replace").decode("utf-8") == value


if TYPE_CHECKING:
    from typing import TypedDict as TypedDict

    #: a whole number from 0 on, of 63 bits; one from 1 on; one of 64 bits with a sign
    Count = int
    Positive = int
    Int64 = int
    #: any number; one from 0 to 2^63, such as seconds
    Number = float
    Amount = float
    #: text that can be printed; a file's name, which may stand for any bytes
    Text = str
    Name = str
else:
    Count, Positive, Int64, Number, Amount, Text, Name = (
        _is_count, _is_positive, _is_int64, _is_number, _is_amount, _is_text, str,
    )  # fmt: skip

    class TypedDict(dict):
        """Python 3.7 has no TypedDict, and no TypedDict checks what it is given."""

        required: Dict[str, Any] = {}
        optional: Dict[str, Any] = {}

        def __init_subclass__(cls, total: bool = True) -> None:
            own = vars(cls).get("__annotations__")
            if own is None:
                # before Python 3.10 a class without annotations shows those of its base
                own = cls.__annotations__ if sys.version_info >= (3, 10) else {}
            cls.required = {**cls.required, **(own if total else {})}
            cls.optional = {**cls.optional, **({} if total else own)}


def escaped(value: Any) -> Any:
    """Return a JSON value all of whose texts fit `Text`, as people read them: each half of a surrogate pair becomes "\\udce9".

    Python keeps the bytes of a file's name that are not UTF-8 as such halves, so they are in tracebacks, in errors and in the
    names of threads and files. A sender makes its message so if the receiver only shows these texts.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {escaped(key): escaped(one) for key, one in value.items()}
    return [escaped(one) for one in value] if isinstance(value, (list, tuple)) else value


def fields_of(shape: Any) -> Tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return {field: its annotation} of the fields that a shape must have, and of those that it may have."""
    return shape.required, shape.optional


def check(name: str, body: Mapping[str, Any], shape: Any) -> None:
    """Check an object against its shape; fields that are not declared are ignored, as a newer sender may send them.

    Args: name: what the object is, in errors.
    Raises: WireError: a field is missing or does not fit; the error names it by its path (`input.nodes[2].own`).
    """
    _check_fields(name, "", body, shape)


def _check_fields(name: str, owner: str, body: Mapping[str, Any], shape: Any) -> None:
    """Check the fields of an object, or of one that is in it. Args: owner: how the path of its fields begins: `failure.`."""
    required, optional = fields_of(shape)
    for field in required:
        if field not in body:
            raise WireError("a %s has no %r" % (name, owner + field))
        _check_field(name, owner + field, body[field], required[field])
    for field in optional:
        if field in body:
            _check_field(name, owner + field, body[field], optional[field])


def _check_field(name: str, path: str, value: Any, annotation: Any) -> None:
    if _is_shape(annotation) and isinstance(value, dict):
        _check_fields(name, path + ".", value, annotation)
    elif isinstance(value, list) and _are_shapes(annotation):
        for at, one in enumerate(value):
            _check_field(name, "%s[%d]" % (path, at), one, annotation.__args__[0])
    elif not fits(value, annotation):
        raise WireError("a %s has the %r %.100r" % (name, path, value))


def _are_shapes(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) in (list, List) and _is_shape(annotation.__args__[0])


def _is_shape(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "required")


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is what an annotation of a shape says."""
    if annotation is Any:
        return True
    if isinstance(annotation, FunctionType):
        return bool(annotation(value))
    if _is_shape(annotation):
        required, optional = fields_of(annotation)
        return (
            isinstance(value, dict)
            and all(field in value and fits(value[field], required[field]) for field in required)
            and all(fits(value[field], optional[field]) for field in optional if field in value)
        )
    origin = getattr(annotation, "__origin__", None)
    if origin is None:
        # a boolean does not count as a number; a whole number counts as a float
        return type(value) in ((float, int) if annotation is float else (annotation,))
    of = annotation.__args__
    if origin in (list, List):
        return isinstance(value, list) and all(fits(one, of[0]) for one in value)
    if origin in (dict, Dict):
        return isinstance(value, dict) and all(fits(key, of[0]) and fits(one, of[1]) for key, one in value.items())
    return any(fits(value, one) for one in of)
