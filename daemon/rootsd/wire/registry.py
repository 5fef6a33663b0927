"""Find all control requests, and decode a method and its params into a request.

To add a request, write a struct in the module of its family. To add a family, add a module to
this package. The registry finds both. The handler of a request is in `rootsd.control.handlers`.

Only the daemon decodes requests. The command line must not import this module: it loads all
families, and a command needs few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import msgspec
from msgspec.structs import fields

from rootsd import wire
from rootsd.wire.guard import CHALLENGE_ANSWER
from rootsd.wire.request import BadRequest, ControlRequest


def find_request_types(package: ModuleType) -> Iterator[type[ControlRequest]]:
    """Yield the requests that the modules of `package` define, in the order of their names."""
    for found in iter_modules(package.__path__, f"{package.__name__}."):
        # This module is only half imported now, and it defines no requests.
        if found.name != __name__:
            yield from _requests_in(import_module(found.name))


def _requests_in(family: ModuleType) -> Iterator[type[ControlRequest]]:
    """Yield the requests that a module itself defines, in the order of the file."""
    for value in vars(family).values():
        is_request = isinstance(value, type) and issubclass(value, ControlRequest)
        if is_request and value.__module__ == family.__name__ and value is not ControlRequest:
            yield value


# Imported with this module, before the daemon gives up rights.
REQUEST_TYPES: tuple[type[ControlRequest], ...] = tuple(find_request_types(wire))
REQUEST_TYPE_BY_METHOD: Mapping[str, type[ControlRequest]] = {
    request_type.method: request_type for request_type in REQUEST_TYPES
}


def decode_request(method: str, params: Mapping[str, Any]) -> ControlRequest:
    """Return the request for a method and its params. Ignore unknown keys; see `unknown_params`.

    Raises BadRequest for an unknown method, and for values that are missing or have the wrong
    type. The message names all of these values.
    """
    request_type = REQUEST_TYPE_BY_METHOD.get(method)
    if request_type is None:
        raise BadRequest(f"this daemon does not know the request {method!r}", "rootsd version")
    types = _types_of(method)
    known = {name: raw for name, raw in params.items() if name in types}
    try:
        return msgspec.convert(known, request_type)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        wrong = "; ".join(_errors(request_type, known))
        raise BadRequest(f"the request {method} is not valid: {wrong}") from error


def unknown_params(method: str, params: Mapping[str, Any]) -> list[str]:
    """Return the keys of `params` that `decode_request` ignores.

    A caller leaves out default values. So an unknown key has a meaning for a newer caller, and an
    order without it would do more than the caller wants, or something else.
    """
    return [name for name in params if name != CHALLENGE_ANSWER and name not in _types_of(method)]


def _errors(request_type: type[ControlRequest], params: Mapping[str, Any]) -> Iterator[str]:
    types = _types_of(request_type.method)
    for field in fields(request_type):
        if field.name not in params:
            if field.required:
                yield f"params.{field.name}: missing; expected {_expected(types[field.name])}"
        elif not _fits(params[field.name], types[field.name]):
            yield f"params.{field.name}: expected {_expected(types[field.name])}"


def _fits(raw: object, declared: Any) -> bool:  # noqa: ANN401 - a type is whatever was written
    try:
        msgspec.convert(raw, declared)
    except (msgspec.ValidationError, UnicodeEncodeError):  # text with lone surrogates for an enum
        return False
    return True


@cache
def _types_of(method: str) -> Mapping[str, Any]:
    return {field.name: field.type for field in fields(REQUEST_TYPE_BY_METHOD[method])}


def _expected(declared: Any) -> str:  # noqa: ANN401 - as above
    """Return the description of a type in a message to the caller."""
    match msgspec.inspect.type_info(declared):
        case msgspec.inspect.UnionType(types=types):
            null_last = sorted(types, key=lambda each: isinstance(each, msgspec.inspect.NoneType))
            return " or ".join(map(_words, null_last))
        case single:
            return _words(single)


def _words(single: msgspec.inspect.Type) -> str:
    match single:
        case msgspec.inspect.EnumType(cls=cls):
            return "one of " + ", ".join(member.value for member in cls)
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.EnumType() as item):
            return f"a list with any of {_words(item).removeprefix('one of ')}"
        case msgspec.inspect.VarTupleType():
            return "a list of strings"
        case _:
            return _PLAIN_WORDS[type(single)]


_PLAIN_WORDS: Mapping[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.StrType: "a string",
    msgspec.inspect.IntType: "an integer",
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.NoneType: "null",
    msgspec.inspect.DictType: "an object",
    msgspec.inspect.TypedDictType: "an object",
}
