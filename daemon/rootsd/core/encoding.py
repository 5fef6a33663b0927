"""Encode model values as canonical JSON text, decode them strictly, and fingerprint identities.

Each value has exactly one text: ASCII, sorted keys, no spaces, bytes as lower-case hex, times as
integer nanoseconds since the epoch, truth values as 1 and 0, and no key for an absent value or for
a default. The types of the fields say how each is written. A decoder checks the type of each key
that it knows. It ignores unknown keys, because a later version may add some.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from rootsd.core.guard_setting import Guard
from rootsd.core.model import Actor, Identity, Project, ProjectKind, Ruling
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.record import BadRecord, Codec, Forms, checked_text, of_type

Kept = TypeVar("Kept", bound=Struct)

# The texts of the store and of the hash chain have these keys. They never change.
_KEYS = {
    "born_ns": "born",
    "git_born_ns": "git_born",
    "kept_access": "access",
    "since_boot_ns": "since_boot",
    "since_ns": "since",
}
_ALWAYS_WRITTEN = {
    ("Actor", "detail"),
    ("Decision", "access"),
    ("ObservedState", "named"),
    ("ObservedState", "presence"),
}
_NEVER_WRITTEN = {("ObservedState", "hazard"), ("Rule", "number")}
# Thousands of records have the same time, actor, or file system. Sharing the objects saves 1 MB
# for 5,000 projects.
_INTERNED_VALUES = 256
_to_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class ProjectRecord(Struct, frozen=True):
    """The outcome of a decision about a project: everything but its observed state."""

    id: str
    kind: ProjectKind
    ruling: Ruling


class FocusRecord(Struct, frozen=True):
    """The tag that narrows sessions without a scope of their own, or None."""

    tag: str | None


class AllowedPrograms(Struct, frozen=True):
    """The programs that a person has added to those that the guard knows."""

    programs: frozenset[str]


class GuardRecord(Struct, frozen=True):
    """The guard mode."""

    guard: Guard


def encode(value: Struct) -> str:
    """Return the text of a value of the model. A rule is written without its number, its key."""
    return _to_text(_encode_object(value))


def decode(kind: type[Kept], text: str, **key: object) -> Kept:
    """Return the value in `text`, with the fields in `key`. Raises BadRecord."""
    try:
        return _decode_object(kind, parse_json(text), key)
    except Unparsable as error:
        raise BadRecord(str(error)) from error


def encode_actor(actor: Actor | None) -> str:
    """Return the text of an actor, or `null` for a change without an order, such as a lapse."""
    return "null" if actor is None else encode(actor)


def decode_actor(text: str) -> Actor | None:
    """Return the actor in `text`. Raises BadRecord."""
    return None if text == "null" else decode(Actor, text)


def to_ns(moment: datetime) -> int:
    """Return exact nanoseconds since the epoch. `moment` must be aware."""
    return (moment - EPOCH) // MICROSECOND * 1000


@lru_cache(maxsize=_INTERNED_VALUES)
def from_ns(nanoseconds: int) -> datetime:
    """Return the time in UTC, to the microsecond. Raises BadRecord if it is out of range."""
    try:
        return EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise BadRecord(f"{nanoseconds} is not a time") from error


class _Field(NamedTuple):
    """A field that is written at `key`, unless it is `omitted`. Without a key, it is `absent`."""

    name: str
    key: str
    codec: Codec
    omitted: object
    absent: object


def _object(kind: Any) -> Codec:  # noqa: ANN401 - a class of values
    return Codec(_encode_object, lambda value: _decode_object(kind, value, {}))


def _encode_object(value: Struct) -> dict[str, Any]:
    found = {}
    for field in _fields(type(value)):
        each = getattr(value, field.name)
        if each is not None and each != field.omitted:
            found[field.key] = field.codec.encode(each)
    return found


def _decode_object(kind: type[Kept], value: object, key: dict[str, object]) -> Kept:
    if not isinstance(value, dict):
        raise BadRecord("not an object")
    found = {**key}
    for field in _fields(kind):
        if field.key in value:
            try:
                found[field.name] = field.codec.decode(value[field.key])
            except BadRecord as error:
                raise BadRecord(f"{field.key}: {error}") from error
        elif field.absent is NODEFAULT:
            raise BadRecord(f"{field.key} is missing")
        else:
            found[field.name] = field.absent
    made: Kept = _MAKERS.get(kind, kind)(**found)
    return made


@cache
def _fields(kind: type[Struct]) -> tuple[_Field, ...]:
    """Return the written fields of a type, when it is first used: it may hold its own type."""
    found = []
    for each in fields(kind):
        place = (kind.__name__, each.name)
        if place in _NEVER_WRITTEN:
            continue
        is_always = place in _ALWAYS_WRITTEN
        default = NODEFAULT if is_always else each.default
        # A key is left out where there is no value, so null is no value of an optional field.
        inner = [hint for hint in get_args(each.type) if hint is not NoneType]
        is_optional = NoneType in get_args(each.type)
        absent = None if default is NODEFAULT and is_optional else default
        codec = _FORMS.codec(inner[0] if is_optional else each.type)
        codec = _FILE_SYSTEM if place == ("Identity", "filesystem") else codec
        key = _KEYS.get(each.name, each.name)
        found.append(_Field(each.name, key, codec, default, absent))
    return tuple(found)


@lru_cache(maxsize=_INTERNED_VALUES)
def _shared_bytes(value: bytes) -> bytes:
    return value


def _from_hex(value: object) -> bytes:
    written = checked_text(value)
    try:
        found = bytes.fromhex(written)
    except ValueError as error:
        raise BadRecord("not hex") from error
    # fromhex accepts spaces and capitals, but each value must have exactly one text.
    if found.hex() != written:
        raise BadRecord("not plain hex")
    return found


def _number(value: object) -> int:
    number: int = _WHOLE.decode(value)
    return number


_WHOLE = of_type(int)
_FORMS = Forms(
    {
        bool: Codec(int, lambda value: bool(_number(value))),
        bytes: Codec(bytes.hex, _from_hex),
        datetime: Codec(to_ns, lambda value: from_ns(_number(value))),
        int: _WHOLE,
        str: of_type(str),
    },
    _object,
)
_FILE_SYSTEM = Codec(bytes.hex, lambda value: _shared_bytes(_from_hex(value)))
_MAKERS: dict[Any, Callable[..., Any]] = {Actor: lru_cache(maxsize=_INTERNED_VALUES)(Actor)}

_FINGERPRINT_LENGTH = 32


def changes_fingerprint(project: Project) -> str:
    """Return a short text for the files that the last look into a project found."""
    files = () if project.observed.inspection is None else project.observed.inspection.files
    return hashlib.sha256(repr(files).encode()).hexdigest()[:_FINGERPRINT_LENGTH]


def identity_fingerprint(identity: Identity | None) -> str:
    """Return a short text for an identity; empty for None, which a URI has.

    A client sends the text back to say which directory a person saw. The text differs for another
    directory, and also after a change of the owner or of the target of `.git`.
    """
    if identity is None:
        return ""
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:_FINGERPRINT_LENGTH]
