"""Parse the output of `list_roots` for a model."""

from __future__ import annotations

import json
import re
from typing import Any

# Each side is plain text or a JSON string.
_WORD = r'[^\s"]+|"(?:[^"\\]|\\.)*"'
_LINE = re.compile(rf"- (?P<name>{_WORD}): (?P<place>{_WORD}) \((?P<access>[^()]*)\)")


def text_of_result(result: Any) -> str:  # noqa: ANN401
    """Return the text of a tool's result: the SDK's object, or received JSON."""
    (content,) = result["content"] if isinstance(result, dict) else result.content
    text: str = content["text"] if isinstance(content, dict) else content.text
    return text


def listed(result: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the roots in a result of `list_roots`: the path or URI by name."""
    found: dict[str, str] = {}
    for line in text_of_result(result).splitlines():
        if line.startswith("- "):
            parts = _LINE.fullmatch(line)
            assert parts, line
            found[_read(parts["name"])] = _read(parts["place"])
    return found


def _read(word: str) -> str:
    text: str = json.loads(word) if word.startswith('"') else word
    return text
