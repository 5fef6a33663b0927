"""Make names and paths safe to show in a terminal, a log, JSON, or the context of a model.

The author of a project chooses its name. A label has escapes in place of control characters,
bidirectional marks (Trojan Source, CVE-2021-42574), invisible characters, unusual spaces,
backslashes, bytes that are not UTF-8, and stacked combining marks. All other text stays as it is
on the disk, because a normalized path could be the path of another folder. Letters that look alike
also stay; `rootsd.core.names` makes such names different.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from rootsd.core.paths import bytes_of, contains, to_uri

_MAX_MARKS = 2
_ESCAPE = r"\\(?:x([0-9a-f]{2})|u\{([0-9a-f]{1,6})\})"
# JSON text in ASCII contains only visible characters, spaces, and line ends.
_NOT_PLAIN = r"[^\x00-\x7e]+"
LABEL_LIMIT = 64
# Bytes 0x80 to 0xFF that are not UTF-8, as lone surrogates (PEP 383).
_SURROGATE_BYTES = (0xDC80, 0xDCFF)

# Unicode's Default_Ignorable_Code_Point and the explicit bidi controls (UAX #9, UAX #44).
_HIDDEN_SPANS = (
    (0xAD, 0xAE), (0x34F, 0x350), (0x61C, 0x61D), (0x115F, 0x1161), (0x17B4, 0x17B6),
    (0x180B, 0x1810), (0x200B, 0x2010), (0x2028, 0x2030), (0x2060, 0x2070),
    (0x3164, 0x3165), (0xFE00, 0xFE10), (0xFEFF, 0xFF00), (0xFFA0, 0xFFA1),
    (0xFFF0, 0xFFFC), (0x1BCA0, 0x1BCA4), (0x1D173, 0x1D17B), (0xE0000, 0xE1000),
    # These are blank, although Unicode does not call them ignorable: a Braille cell without dots,
    # a note without a head, and fillers of the Khitan and Egyptian scripts.
    (0x2800, 0x2801), (0x1D159, 0x1D15A), (0x16FE4, 0x16FE5), (0x13441, 0x13443),
)  # fmt: skip


def safe_label(name: bytes | str, limit: int | None = LABEL_LIMIT) -> str:
    """Return `name` with escapes for everything that could deceive a reader or control a terminal.

    The result contains only printable characters and is never empty. It has at most `limit`
    characters, and ends with an ellipsis if it was cut. With `limit=None` nothing is cut, and two
    different names, neither of them empty, never get the same label.
    """
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    label = _escaped(text) or "(empty)"
    if " " in (label[0], label[-1]):
        label = _with_edges_shown(label)
    return label if limit is None or len(label) <= limit else label[: limit - 1] + "…"


def home_label(path: bytes, home: bytes) -> str:
    """Return a path, safe to show, with `~` for the home folder."""
    is_inside = contains(home, path) and home != b"/"
    return safe_label(b"~" + path[len(home) :] if is_inside else path, limit=None)


def first_of(names: Sequence[str], limit: int) -> str:
    """Return the first of many names, with how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def text_of_label(label: str) -> str | None:
    """Return the text whose label without a limit is `label`, or None if no text with escapes has.

    So a person can type what `safe_label` has shown.
    """
    if "\\" not in label:
        return None
    try:
        text = re.sub(_ESCAPE, _unescape, label)
    except (ValueError, OverflowError):  # no character has that number
        return None
    return text if safe_label(text, limit=None) == label else None


def _unescape(found: re.Match[str]) -> str:
    byte, code = found.groups()
    return chr(0xDC00 + int(byte, 16)) if byte else chr(int(code, 16))


def exact_path(path: str) -> str:
    """Return an absolute path for a program that reads lines: the exact path, or a `file://` URI.

    If the path is safe on one line, the result is the path itself. Otherwise it is a URI, because
    a path with escapes could be the path of another folder. A URI is never a path, and decodes to
    the exact bytes (RFC 8089). Text that is not an absolute path becomes a label.
    """
    if not path.startswith("/"):
        return safe_label(path, limit=None) if path else ""
    if _escaped(path).replace(_escape("\\"), "\\") == path:
        return path
    return to_uri(bytes_of(path))


def safe_json(text: str) -> str:
    """Return JSON `text` with unsafe characters as JSON's own escapes.

    A parser gets the same value, and the text is safe for a terminal or a model.
    """
    if text.isascii() and "\x7f" not in text:  # a hundred times faster than the search below
        return text
    return re.sub(_NOT_PLAIN, lambda run: "".join(map(_json_char, run[0])), text)


def _json_char(char: str) -> str:
    """Return the character or its escape. Escape marks too, because a stack of them hides text."""
    is_hidden = _must_escape(char) or unicodedata.category(char) in ("Mn", "Me")
    return _json_escape(char) if is_hidden else char


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs)


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text:  # true for most names
        return text
    shown: list[str] = []
    marks = _MAX_MARKS  # a mark without a letter would combine with the text before the label
    for char in text:
        is_mark = unicodedata.category(char).startswith("M")
        hidden = _must_escape(char) or (is_mark and marks >= _MAX_MARKS)
        has_base = not hidden and char != " "
        marks = (marks + 1 if is_mark else 0) if has_base else _MAX_MARKS
        shown.append(_escape(char) if hidden else char)
    return "".join(shown)


def safe_text(text: str) -> str:
    """Return a sentence that is safe for a terminal. Keep escapes that it already contains."""
    return "\\".join(_safe_piece(piece) for piece in text.split("\\"))


def _safe_piece(piece: str) -> str:
    body = piece.strip(" ")
    if not body:
        return piece
    start = piece.index(body)
    return piece[:start] + safe_label(body, limit=None) + piece[start + len(body) :]


def _with_edges_shown(label: str) -> str:
    """Return the label with escapes for spaces at its ends.

    Without them, a name with a space at its end would look like the name without the space.
    """
    inner = label.strip(" ")
    before, after = label.split(inner, 1) if inner else (label, "")
    return _escape(" ") * len(before) + inner + _escape(" ") * len(after)


def _must_escape(char: str) -> bool:
    category = unicodedata.category(char)
    return (
        _hidden().match(char) is not None
        or char == "\\"
        or category.startswith("C")
        or (category.startswith("Z") and char != " ")
    )


@cache
def _hidden() -> re.Pattern[str]:
    """Return the pattern of a hidden character. Few programs meet a name that needs it.

    A pattern takes a few kB; a set of these characters would take 450 kB.
    """
    spans = (f"{chr(start)}-{chr(end - 1)}" for start, end in _HIDDEN_SPANS)
    return re.compile("[{}]".format("".join(spans)))


def _escape(char: str) -> str:
    code = ord(char)
    if _SURROGATE_BYTES[0] <= code <= _SURROGATE_BYTES[1]:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{{{code:x}}}"
