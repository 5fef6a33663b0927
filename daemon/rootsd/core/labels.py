"""One function that makes any name safe to show: in a terminal, a log, JSON, a model's context.

Project names are chosen by whoever made the project. What is written out as an escape: controls,
bidirectional marks (Trojan Source, CVE-2021-42574), characters that draw nothing, odd spaces,
backslashes, bytes that are not UTF-8. Stacked combining marks are cut and the length is limited.
Letters that merely look alike stay: show the path beside the name.
"""

from __future__ import annotations

import unicodedata

_MAX_MARKS = 2
_LIMIT = 64
# What PEP 383 makes of bytes that are not UTF-8: 0x80 to 0xFF as lone surrogates.
_SURROGATE_BYTES = (0xDC80, 0xDCFF)

# Unicode's Default_Ignorable_Code_Point and the explicit bidi controls (UAX #9, UAX #44).
_HIDDEN = frozenset(
    chr(code)
    for span in (
        (0xAD, 0xAE), (0x34F, 0x350), (0x61C, 0x61D), (0x115F, 0x1161), (0x17B4, 0x17B6),
        (0x180B, 0x1810), (0x200B, 0x2010), (0x2028, 0x2030), (0x2060, 0x2070),
        (0x3164, 0x3165), (0xFE00, 0xFE10), (0xFEFF, 0xFF00), (0xFFA0, 0xFFA1),
        (0xFFF0, 0xFFFC), (0x1BCA0, 0x1BCA4), (0x1D173, 0x1D17B), (0xE0000, 0xE1000),
    )
    for code in range(*span)
)  # fmt: skip


def safe_label(name: bytes | str, limit: int | None = _LIMIT) -> str:
    """`name` with everything that could deceive or take over a terminal written out.

    The result holds printable characters only, is never empty, and is at most `limit` characters
    long, an ellipsis marking a cut; `limit=None` keeps all (for paths).
    """
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    if text.isascii() and text.isprintable() and "\\" not in text:
        label = text.strip()
    else:
        label = _escaped(text).strip()
    label = label or "(empty)"
    return label if limit is None or len(label) <= limit else label[: limit - 1] + "…"


def _escaped(text: str) -> str:
    shown: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", text):
        is_mark = unicodedata.category(char).startswith("M")
        marks = marks + 1 if is_mark else 0
        stacked = is_mark and (marks > _MAX_MARKS or not shown)
        shown.append(_escape(char) if stacked or _must_escape(char) else char)
    return "".join(shown)


def _must_escape(char: str) -> bool:
    category = unicodedata.category(char)
    return (
        char in _HIDDEN
        or char == "\\"
        or category.startswith("C")
        or (category.startswith("Z") and char != " ")
    )


def _escape(char: str) -> str:
    code = ord(char)
    if _SURROGATE_BYTES[0] <= code <= _SURROGATE_BYTES[1]:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{{{code:x}}}"
