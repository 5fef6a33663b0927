"""Text fits a terminal: no text is lost, no word is broken, no line is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.cli.text.layout import ColumnFit, grouped_table, hanging_indent, table, width, wrap

WIDE = "\u65e5\u672c\u8a9e"
WORDS = st.text(st.sampled_from("ab1-_.\u65e5\U0001f600e\u0301"), min_size=1, max_size=11)
PATHS = st.lists(WORDS, min_size=1, max_size=9).map(lambda names: "/" + "/".join(names))
TEXTS = st.lists(WORDS | PATHS, min_size=1, max_size=12).map(" ".join)
ROOMS = st.sampled_from((24, 40, 60, 80, 120))
LONG_PATH = "~/code/clients/northern-lights/services/payment-gateway-adapter-eu/source"


def plain(_: int, text: str) -> str:
    return text


def laid_out(
    titles: list[str], fits: list[ColumnFit], rows: list[list[str]], room: int
) -> list[str]:
    return list(table(titles, fits, rows, room, plain))


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), (WIDE, 6), ("e\u0301", 1), ("\U0001f600", 2), ("", 0)]
)
def test_the_width_is_counted_in_terminal_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@given(TEXTS, ROOMS)
def test_wrapped_text_is_complete_and_fits(text: str, room: int) -> None:
    lines = wrap(text, room)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(width(line) <= room for line in lines)


@given(PATHS, ROOMS)
def test_a_path_breaks_only_after_a_slash(path: str, room: int) -> None:
    lines = wrap(path, room)
    assert "".join(lines) == path
    assert all(line.endswith("/") for line in lines[:-1])


@pytest.mark.parametrize("word", ["x" * 100, "/src/" + "x" * 100, r"\u{1b}" * 20])
def test_a_word_longer_than_a_line_stays_whole(word: str) -> None:
    assert word.removeprefix("/src/") in wrap(f"before {word} after", 60)


def test_text_without_spaces_breaks_between_wide_letters() -> None:
    lines = wrap(WIDE * 30, 59)
    assert "".join(lines) == WIDE * 30
    assert [width(line) for line in lines[:-1]] == [58] * (len(lines) - 1)


@given(TEXTS, ROOMS)
def test_text_is_indented_beside_its_label(text: str, room: int) -> None:
    lines = hanging_indent("label    ", text, room)
    assert lines[0].startswith("label")
    assert all(line.startswith("  ") for line in lines[1:])
    assert "".join(lines)[len("label") :].replace(" ", "") == text.replace(" ", "")
    assert all(width(line) <= room for line in lines)


@given(st.lists(st.tuples(WORDS, WORDS, PATHS, st.just("") | TEXTS).map(list), max_size=6), ROOMS)
def test_a_table_keeps_every_cell_whole_and_fits(rows: list[list[str]], room: int) -> None:
    fits = [ColumnFit.LINE, ColumnFit.LINE, ColumnFit.PATH, ColumnFit.NOTE]
    lines = laid_out(["ID", "NAME", "PATH", "NOTE"], fits, rows, room)
    assert all(width(line) <= room for line in lines)
    shown = "".join(lines).replace(" ", "")
    for row in rows:
        assert all(cell.replace(" ", "") in shown for cell in row)
        assert any(line.startswith(row[0]) for line in lines)


@given(
    st.lists(
        st.tuples(
            PATHS,
            st.just("") | TEXTS,
            st.lists(st.tuples(WORDS, WORDS, PATHS, st.just("") | TEXTS).map(list), max_size=3),
        ),
        max_size=4,
    ),
    ROOMS,
)
def test_a_grouped_table_keeps_everything_whole_and_fits(
    groups: list[tuple[str, str, list[list[str]]]], room: int
) -> None:
    fits = [ColumnFit.LINE, ColumnFit.LINE, ColumnFit.NOTE, ColumnFit.NOTE]
    lines = list(grouped_table(["ID", "NAME", "PATH", "NOTE"], fits, groups, room, plain))
    assert all(width(line) <= room for line in lines)
    shown = "".join(lines).replace(" ", "")
    for heading, remark, rows in groups:
        assert heading in shown
        assert remark.replace(" ", "") in shown
        for row in rows:
            assert all(cell.replace(" ", "") in shown for cell in row)
            assert any(line.startswith(f"  {row[0]}") for line in lines)


def test_the_rows_of_a_group_are_below_its_heading_and_aligned_with_all_others() -> None:
    groups = [("~/a", "me", [["x", "1"], ["longer", "2"]]), ("~/b", "", [["y", ""]])]
    lines = grouped_table(["N", "R"], [ColumnFit.LINE, ColumnFit.NOTE], groups, 20, plain)
    assert list(lines) == ["  N       R", "~/a  me", "  x       1", "  longer  2", "~/b", "  y"]


def test_the_first_note_ends_the_line_of_its_row_if_it_fits() -> None:
    rows = [["x", "short", "and another note"], ["y", "", "this note is much too long for it"]]
    lines = laid_out(["N", "A", "B"], [ColumnFit.LINE, ColumnFit.NOTE, ColumnFit.NOTE], rows, 22)
    assert lines == [
        "N",
        "x  short",
        "   and another note",
        "y",
        "   this note is much",
        "   too long for it",
    ]


def test_a_table_that_fits_is_aligned_in_the_order_of_its_columns() -> None:
    rows = [["a", "/x", "note", "1"], ["bb", "/xyz", "", "2"]]
    fits = [ColumnFit.LINE, ColumnFit.PATH, ColumnFit.NOTE, ColumnFit.LINE]
    assert laid_out(["N", "PATH", "NOTE", "C"], fits, rows, 80) == [
        "N   PATH  NOTE  C",
        "a   /x    note  1",
        "bb  /xyz        2",
    ]


def test_notes_move_below_the_row_first_and_then_long_paths() -> None:
    asks = 'claude-code asks for it: "I want to read the interface of the payment service"'
    rows = [
        ["r7k2", "api", "git", "~/src/api", "2h ago", asks],
        ["q1zd", "payments", "git", LONG_PATH, "1d ago", ""],
    ]
    fits = [
        ColumnFit.LINE,
        ColumnFit.LINE,
        ColumnFit.LINE,
        ColumnFit.PATH,
        ColumnFit.LINE,
        ColumnFit.NOTE,
    ]
    assert laid_out(["ID", "NAME", "KIND", "PATH", "FOUND", "NOTE"], fits, rows, 60) == [
        "ID    NAME      KIND  FOUND   PATH",
        "r7k2  api       git   2h ago  ~/src/api",
        '      claude-code asks for it: "I want to read the interface',
        '      of the payment service"',
        "q1zd  payments  git   1d ago",
        "      ~/code/clients/northern-lights/services/",
        "      payment-gateway-adapter-eu/source",
    ]


def test_a_row_with_a_wide_cell_wraps_and_the_others_stay_aligned() -> None:
    rows = [["r7k2", "api", "git"], ["q1zd", "n" * 30, "git"], ["m9ab", "web", "hg"]]
    assert laid_out(["ID", "NAME", "KIND"], [ColumnFit.LINE] * 3, rows, 38) == [
        "ID    NAME  KIND",
        "r7k2  api   git",
        "q1zd  " + "n" * 30,
        "      git",
        "m9ab  web   hg",
    ]


def test_columns_without_titles_have_no_header() -> None:
    assert laid_out(["", ""], [ColumnFit.LINE, ColumnFit.PATH], [["+", "/a"]], 80) == ["+  /a"]
    assert laid_out([""], [ColumnFit.PATH], [["/a"]], 1) == ["/", "a"]


def test_colors_change_no_width() -> None:
    def bracketed(column: int, text: str) -> str:
        return f"<{column}{text}>"

    lines = list(table(["A", "B"], [ColumnFit.LINE] * 2, [["x", "y"]], 80, bracketed))
    assert lines == ["<-1A>  <-1B>", "<0x>  <1y>"]
