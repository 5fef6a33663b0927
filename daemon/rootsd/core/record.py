"""Encode records as JSON values, and decode them, with the standard library only.

A record is a `NamedTuple` whose values leave the process. Programs that start often cannot load
msgspec or dataclasses, so the annotations of a record alone say how each field is written:

* `str`, `int`, `float`, and `bool` as they are, and a member of an `Enum` as its value
* `bytes` as the text of an absolute path, with lone surrogates for what is not UTF-8
* `Text`, which is any bytes that are mostly text, in the same way
* `Hex`, which is other bytes, as hexadecimal digits
* a tuple as an array, a frozenset as a sorted array, and another record as an object
* a `Mapping` with keys that are written as text as an object
* a `TypedDict` as it is

`from_json` checks each type. It ignores keys that it does not know, and takes the default of a
field whose key is missing. A text in `Annotated` describes the field, for the references.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.paths import PathError, bytes_of, normalize_path, text_of

Record = TypeVar("Record", bound=tuple[Any, ...])

_HEX, _TEXT = object(), object()
Hex = Annotated[bytes, _HEX]
"""Bytes that are no text."""
Text = Annotated[bytes, _TEXT]
"""Bytes that need not be an absolute path."""


class BadRecord(ValueError):
    """A value that does not have the form of its record. The message names the key."""


def to_json(record: tuple[Any, ...]) -> dict[str, Any]:
    """Return the JSON object of a record."""
    encoded: dict[str, Any] = _FORMS.codec(type(record)).encode(record)
    return encoded


def from_json(kind: type[Record], value: object) -> Record:
    """Return the record of this kind in a JSON object. Raises BadRecord."""
    record: Record = _FORMS.codec(kind).decode(value)
    return record


def to_line(record: tuple[Any, ...]) -> bytes:
    """Return the JSON object of a record as a line, in ASCII."""
    return json.dumps(to_json(record)).encode("ascii") + b"\n"


def from_line(kind: type[Record], line: bytes) -> Record:
    """Return the record of this kind in a line. Raises BadRecord."""
    try:
        return from_json(kind, parse_json(line))
    except Unparsable as error:
        raise BadRecord("not JSON") from error


@cache
def field_docs(kind: type[tuple[Any, ...]]) -> dict[str, str]:
    """Return the description of each field that `Annotated` gives, or an empty text."""
    return {
        name: next((text for text in get_args(hint)[1:] if isinstance(text, str)), "")
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }


class Codec(NamedTuple):
    """How values of a type are written and read. `decode` raises BadRecord."""

    encode: Callable[[Any], Any]
    decode: Callable[[object], Any]


class Forms:
    """The codecs of types: the given ones, those of enums and containers, and those of `other`."""

    def __init__(self, given: Mapping[Any, Codec], other: Callable[[Any], Codec]) -> None:
        self._codecs: dict[Any, Codec] = dict(given)
        self._other = other

    def codec(self, hint: Any) -> Codec:  # noqa: ANN401 - any annotation
        """Return the codec of an annotation. Raises TypeError if there is none."""
        if hint not in self._codecs:
            self._codecs[hint] = self._make(hint)
        return self._codecs[hint]

    def _make(self, hint: Any) -> Codec:  # noqa: ANN401 - any annotation
        match get_origin(hint), get_args(hint):
            case (_, (inner, *metadata)) if hasattr(hint, "__metadata__"):
                own = [_OTHER_BYTES[each] for each in metadata if each in _OTHER_BYTES]
                return own[0] if own else self.codec(inner)
            case (origin, args) if origin in (Union, UnionType):
                inner, *others = [each for each in args if each is not NoneType]
                if not others:
                    return _optional(self.codec(inner))
            case (origin, (key, item)) if origin is Mapping:
                return _mapping(self.codec(key), self.codec(item))
            case (origin, (item, *more)) if origin in (frozenset, tuple):
                if {*more} <= {item, ...}:
                    return _array(self.codec(item), origin)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return Codec(lambda member: member.value, lambda value: _checked(hint, value))
        return self._other(hint)


def _codec_of_class(kind: Any) -> Codec:  # noqa: ANN401 - any annotation
    if hasattr(kind, "_fields"):
        return _object(kind)
    if is_typeddict(kind):
        return of_type(dict)
    raise TypeError(f"a record cannot hold {kind}")


def _object(kind: Any) -> Codec:  # noqa: ANN401 - a class of records
    def encode(record: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: value if encode is as_it_is else encode(value)
            for (name, encode), value in zip(_field_encoders(kind), record, strict=True)
        }

    def decode(value: object) -> object:
        if not isinstance(value, dict):
            raise BadRecord("not an object")
        found = {}
        for name, codec in _field_codecs(kind).items():
            if name in value:
                try:
                    found[name] = codec.decode(value[name])
                except ValueError as error:
                    raise BadRecord(f"{name}: {error}") from error
            elif name not in kind._field_defaults:
                raise BadRecord(f"{name} is missing")
        return kind(**found)

    return Codec(encode, decode)


@cache
def _field_codecs(kind: Any) -> dict[str, Codec]:  # noqa: ANN401 - a class of records
    """Return the codec of each field, when it is first used: a record may hold its own kind."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _FORMS.codec(hint) for name, hint in hints.items()}


@cache
def _field_encoders(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:  # noqa: ANN401
    return tuple((name, codec.encode) for name, codec in _field_codecs(kind).items())


def _array(item: Codec, container: Callable[[Any], Any]) -> Codec:
    arranged: Callable[[Any], Any] = sorted if container is frozenset else iter

    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise BadRecord("not an array")
        return container(item.decode(each) for each in value)

    return Codec(lambda values: [item.encode(each) for each in arranged(values)], decode)


def as_it_is(value: object) -> object:
    return value


def _mapping(key: Codec, item: Codec) -> Codec:
    def decode(value: object) -> object:
        if not isinstance(value, dict):
            raise BadRecord("not an object")
        return {key.decode(name): item.decode(each) for name, each in value.items()}

    return Codec(
        lambda values: {key.encode(name): item.encode(each) for name, each in values.items()},
        decode,
    )


def _optional(inner: Codec) -> Codec:
    def encode(value: object) -> object:
        return None if value is None else inner.encode(value)

    return Codec(
        as_it_is if inner.encode is as_it_is else encode,
        lambda value: None if value is None else inner.decode(value),
    )


def of_type(kind: type) -> Codec:
    """Return the codec of values of exactly this type, which are written as they are."""

    def decode(value: object) -> object:
        if type(value) is not kind:  # to Python, True is an int
            raise BadRecord(f"not {kind.__name__}")
        return value

    return Codec(as_it_is, decode)


def _checked(enum: type[Enum], value: object) -> Enum:
    try:
        return enum(value)
    except ValueError as error:
        raise BadRecord(f"none of {', '.join(str(each.value) for each in enum)}") from error


def checked_text(value: object) -> str:
    """Return the value, which must be a text. Raises BadRecord."""
    if not isinstance(value, str):
        raise BadRecord("not str")
    return value


def _path(value: object) -> bytes:
    try:
        return normalize_path(bytes_of(checked_text(value)))
    except (PathError, UnicodeEncodeError) as error:
        raise BadRecord(str(error)) from error


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadRecord("not float")
    return float(value)


_OTHER_BYTES = {
    _HEX: Codec(bytes.hex, lambda value: bytes.fromhex(checked_text(value))),
    _TEXT: Codec(text_of, lambda value: bytes_of(checked_text(value))),
}
_PLAIN = {
    bool: of_type(bool),
    bytes: Codec(text_of, _path),
    float: Codec(as_it_is, _number),
    int: of_type(int),
    str: of_type(str),
}
_FORMS = Forms(_PLAIN, _codec_of_class)
