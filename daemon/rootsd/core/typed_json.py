"""Write values as JSON, and read them with every type checked, for programs that load msgspec.

`rootsd.core.record` is for the others. Bytes are base64 here.
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.record import BadRecord

Value = TypeVar("Value")


def encode_typed(value: object, *, indent: int | None = None) -> bytes:
    """Return any value that msgspec knows as JSON, in ASCII."""
    # Only Python's own JSON carries lone surrogates.
    return json.dumps(msgspec.to_builtins(value, str_keys=True), indent=indent).encode("ascii")


def decode_typed(text: str | bytes, kind: type[Value]) -> Value:
    """Return the value of this type in a JSON text. Raises BadRecord."""
    try:
        return msgspec.convert(parse_json(text), kind, str_keys=True)
    except (Unparsable, msgspec.ValidationError) as error:
        raise BadRecord(str(error)) from error
