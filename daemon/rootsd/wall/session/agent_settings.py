"""Take the parts about other projects out of an agent's settings.

Settings such as `.claude.json` name the folders of every project that the user ever opened. A
confined program gets a copy with only those that it sees. JSON is rewritten. TOML has comments
that people want to keep inside, so only the members go.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from rootsd.agents.forms.state import CopiedFile
from rootsd.core.parsing import Unparsable, parse_json, parse_toml
from rootsd.core.paths import contains


class UnknownForm(ValueError):
    """A file that cannot be understood, so nothing of it is copied."""


def without_other_projects(text: bytes, copied: CopiedFile, roots: Iterable[bytes]) -> bytes:
    """Return `text` with the members about folders in `roots` only. Raises UnknownForm."""
    visible = tuple(roots)
    if copied.path.endswith(".toml"):
        return _toml(text, copied, visible)
    if not text.strip():
        return text
    value = _parse(text)
    if not isinstance(value, dict):
        raise UnknownForm("it is not an object")
    for name in copied.without:
        value.pop(name, None)
    for keys in copied.by_project:
        value = _narrowed(value, keys, visible)
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def without_sandbox(text: bytes, keys: tuple[str, ...]) -> bytes | None:
    """Return JSON settings with the switch at `keys` off, or None if it is not on."""
    try:
        value = whole = _parse(text) if text.strip() else {}
    except UnknownForm:
        return None
    *above, last = keys
    for key in above:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, dict) or value.get(last) is not True:
        return None
    value[last] = False
    return json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n"


def with_settings(text: bytes, own: str) -> bytes:
    """Return TOML with the lines `own` in place of what has the same names. Raises UnknownForm."""
    from rootsd.settings.errors import NotEditable  # noqa: PLC0415
    from rootsd.settings.formats import TomlFormat  # noqa: PLC0415

    language = TomlFormat()
    try:
        found = text.decode("utf-8-sig")  # a mark at the start could not follow our lines
        for name in language.values(own):
            found = language.remove(found, (name,), [])
        language.values(own + found)
    except (NotEditable, UnicodeDecodeError) as error:
        raise UnknownForm(f"it is not TOML that can be changed: {error}") from error
    return (own + found).encode()


def with_members(text: str, own: str) -> str:
    """Return a JSON object with the lines `own` of TOML in place of members of the same names."""
    try:
        value = parse_json(text.encode("utf-8", "surrogateescape"))
    except Unparsable:
        value = None
    return json.dumps({**(value if isinstance(value, dict) else {}), **parse_toml(own)})


def _parse(text: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return parse_json(text)
    except Unparsable:
        pass
    # Comments. This module takes 20 ms to load, so most starts do without.
    from rootsd.settings.errors import NotEditable  # noqa: PLC0415
    from rootsd.settings.formats import JsonFormat  # noqa: PLC0415

    try:
        return JsonFormat().values(text.decode())
    except (NotEditable, UnicodeDecodeError) as error:
        raise UnknownForm("it is not JSON") from error


def _narrowed(value: Any, keys: tuple[str, ...], roots: tuple[bytes, ...]) -> Any:  # noqa: ANN401
    if keys:
        name, *more = keys
        if not isinstance(value, dict) or name not in value:
            return value
        return {**value, name: _narrowed(value[name], tuple(more), roots)}
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if _is_about(name, roots)}
    if isinstance(value, list):
        return [each for each in value if isinstance(each, str) and _is_about(each, roots)]
    return value


def _is_about(name: str, roots: tuple[bytes, ...]) -> bool:
    """Return whether a folder is a root, in one, or above one."""
    path = os.path.normpath(name.encode("utf-8", "surrogateescape"))
    return path.startswith(b"/") and any(
        contains(root, path) or contains(path, root) for root in roots
    )


def _toml(text: bytes, copied: CopiedFile, roots: tuple[bytes, ...]) -> bytes:
    from rootsd.settings.errors import NotEditable  # noqa: PLC0415
    from rootsd.settings.formats import TomlFormat  # noqa: PLC0415

    language = TomlFormat()
    try:
        found = text.decode()
        values = language.values(found)
        for name in copied.without:
            if name in values:
                found = language.remove(found, (name,), [])
        for keys in copied.by_project:
            table: Any = values
            for key in keys:
                table = table.get(key, {}) if isinstance(table, dict) else {}
            for name in table if isinstance(table, dict) else ():
                if not _is_about(name, roots):
                    found = language.remove(found, (*keys, name), [])
    except (NotEditable, UnicodeDecodeError) as error:
        raise UnknownForm(f"it is not TOML that can be narrowed: {error}") from error
    return found.encode()
