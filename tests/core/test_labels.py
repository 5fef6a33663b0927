from __future__ import annotations

import json
import sys
import unicodedata
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.labels import exact_path, safe_json, safe_label
from rootsd.core.paths import text_of
from support.sizes import Sizes

# Written from the standards, not from the code: UAX #9 (explicit bidi),
# Default_Ignorable_Code_Point of DerivedCoreProperties, and invisible characters that count as
# letters or symbols.
BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F}
IGNORABLE = {
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810),
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164,
    *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
}  # fmt: skip
BLANK = {0x2800, 0x1D159, 0x16FE4, 0x13441, 0x13442}
UNSHOWN = BIDI | IGNORABLE | BLANK
BIDI_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN", "B", "S"}
EVERY_CODE_POINT = range(sys.maxunicode + 1)
# Some code points of the ideographs, the syllables, the private areas, and the empty planes, which
# are alike, and all others.
SOME_CODE_POINTS = (
    *range(0x3400),
    *range(0x3400, 0xA000, 16),
    *range(0xA000, 0xAC00),
    *range(0xAC00, 0xF900, 16),
    *range(0xF900, 0x20000),
    *range(0x20000, 0xE0000, 16),
    *range(0xE0000, 0xE1000),
)
BLOCK = 4096

texts = st.text(st.characters() | st.sampled_from("a \\\u0301\u0300\u200d\u202e\u2800\udc80"))


def _is_safe(label: str) -> bool:
    """Return whether the label has no hidden, moving or leading combining characters."""
    marks = 2
    for char in label:
        category = unicodedata.category(char)
        if ord(char) in UNSHOWN or category[0] == "C" or (category[0] == "Z" and char != " "):
            return False
        if unicodedata.bidirectional(char) in BIDI_CLASSES:
            return False
        marks = marks + 1 if category[0] == "M" else (2 if char == " " else 0)
        if marks > 2:
            return False
    return label.strip() == label != ""


def test_no_hidden_moving_or_control_character_gets_through(sizes: Sizes) -> None:
    unsafe = []
    codes = sizes.pick(test=SOME_CODE_POINTS, check=EVERY_CODE_POINT, soak=EVERY_CODE_POINT)
    for first in range(0, len(codes), BLOCK):
        block = [chr(code) for code in codes[first : first + BLOCK]]
        if not _is_safe(safe_label("a" + "a".join(block) + "a", limit=None)):
            unsafe += [hex(ord(char)) for char in block if not _is_safe(safe_label(f"a{char}a"))]
    assert len(EVERY_CODE_POINT) == 1_114_112
    assert unsafe == []


def test_the_check_finds_unsafe_labels() -> None:
    for text in ("", " a", "a ", "a\x1b", "a\u202e", "a\u2800", "\u0301", "a\u0301\u0301\u0301"):
        assert not _is_safe(text)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("api", "api"),
        ("größe", "größe"),
        ("gro\u0308ße", "gro\u0308ße"),
        ("プロジェクト 1", "プロジェクト 1"),
        ("a\x1b[31mb", "a\\u{1b}[31mb"),
        ("a\nb", "a\\u{a}b"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\\u{a}b", "a\\u{5c}u{a}b"),
        (b"a\xffb", "a\\xffb"),
        ("\ud800", "\\u{d800}"),
        ("", "(empty)"),
        (" a ", "\\u{20}a\\u{20}"),
        ("  ", "\\u{20}\\u{20}"),
        ("a\u00a0b", "a\\u{a0}b"),
        ("\u0301a", "\\u{301}a"),
        (" \u0301a", "\\u{20}\\u{301}a"),
        ("\u200d\u0301a", "\\u{200d}\\u{301}a"),
        ("x" + "\u0316" * 5, "x\u0316\u0316" + "\\u{316}" * 3),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 63 + "…"),
    ],
)
def test_label_of(name: str | bytes, label: str) -> None:
    assert safe_label(name) == label


@given(texts | st.binary(), st.integers(1, 70))
def test_labels_are_safe_not_longer_than_asked_and_keep_safe_characters(
    name: str | bytes, limit: int
) -> None:
    whole = safe_label(name, limit=None)
    assert _is_safe(whole)
    if "\\" not in whole:
        assert safe_label(whole, limit=None) == whole
    short = safe_label(name, limit)
    assert len(short) <= limit
    assert short == whole or (short[-1] == "…" and whole.startswith(short[:-1]))


@given(texts, texts)
def test_different_names_have_different_labels(a: str, b: str) -> None:
    for other in (b, unicodedata.normalize("NFC", a), unicodedata.normalize("NFD", a)):
        if a != other and a and other:
            assert safe_label(a, limit=None) != safe_label(other, limit=None)


# As the system returns them: bytes that are not UTF-8 are lone surrogates.
paths = (
    texts.filter(lambda text: "\0" not in text).map(
        lambda text: text.encode(errors="surrogatepass")
    )
    | st.binary()
).map(lambda raw: b"/" + raw)


def _path_said_by(line: str) -> bytes:
    """Return the path that a program reads from a line: RFC 8089 for a URI, or else the text
    itself.
    """
    if line.startswith("file://"):
        return unquote_to_bytes(line.removeprefix("file://"))
    return line.encode()


@given(paths)
def test_exact_path_fits_on_one_line_and_is_exact(path: bytes) -> None:
    line = exact_path(text_of(path))
    assert _path_said_by(line) == path
    assert line.isprintable()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/src/cafe\u0301", "/src/cafe\u0301"),
        ("/src/a\\u{a}b", "/src/a\\u{a}b"),
        ("/src/a\nb", "file:///src/a%0Ab"),
        ("/src/\udcff", "file:///src/%FF"),
        ("/src/\u202eb", "file:///src/%E2%80%AEb"),
        ("https://a.example/\u202e", "https://a.example/\\u{202e}"),
        ("", ""),
    ],
)
def test_path_for_a_program(path: str, line: str) -> None:
    assert exact_path(path) == line


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_safe_json_has_the_same_value_and_only_safe_characters(text: str) -> None:
    for ascii_only in (True, False):
        shown = safe_json(json.dumps({text: [text]}, ensure_ascii=ascii_only))
        assert json.loads(shown) == {text: [text]}
        assert shown.isprintable()
        assert not any(unicodedata.category(char) in ("Cf", "Mn", "Me") for char in shown)


def test_safe_json_keeps_readable_text() -> None:
    assert safe_json('["größe 日本 \\\\ \\n"]') == '["größe 日本 \\\\ \\n"]'
    assert safe_json('["\u202e\x7f\U000e0041"]') == '["\\u202e\\u007f\\udb40\\udc41"]'
