"""Printed tables, lines, and JSON. No name can break out of them."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.render import Column, CommandResult, Flags, Output
from rootsd.cli.text.theme import Tone
from rootsd.core.errors import AmbiguousReference, RootsdError
from rootsd.core.labels import safe_text

NAME = Column("NAME", lambda item: item["name"], limit=20)
PATH = Column("PATH", lambda item: item["path"], short=lambda item: "~", fit=ColumnFit.PATH)
HOSTILE = (
    "tab\tnew\nline\r", "\x1b[2J\x1b]0;title\x07", "\u202egnp.exe", "a\u0301\u0301\u0301\u0301",
    "[bold red]markup[/]", "\udcff", " ", "\\u{1b}", "\x00", "x" * 5000,
)  # fmt: skip


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard output a terminal with 60 columns; test_ls uses a real one."""
    monkeypatch.setattr(Output, "on_terminal", True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def output(**flags: bool) -> Output:
    return Output(Flags(**flags), "ls")


def items(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "path": f"/src/{name}"} for name in names]


def test_a_pipe_gets_tab_separated_lines_without_a_header(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output().show(CommandResult(items("a", "b"), warnings=["mind the gap"]), (NAME, PATH))
    assert capsys.readouterr() == ("a\t/src/a\nb\t/src/b\n", "warning: mind the gap\n")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_aligned_columns_with_short_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output(no_color=True).show(CommandResult(items("a", "long-name")), (NAME, PATH))
    out = capsys.readouterr().out
    plain = out.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert [line.rstrip() for line in plain.splitlines()] == [
        "NAME       PATH",
        "a          ~",
        "long-name  ~",
    ]


@pytest.mark.usefixtures("terminal")
def test_an_empty_result_prints_nothing_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output().show(CommandResult(), (NAME, PATH))
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("way", ["flag", "variable"])
def test_colors_can_be_turned_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    red = Column("NAME", lambda item: item["name"], tones={"a": Tone.BAD})
    output().show(CommandResult(items("a")), (red,))
    assert "\x1b[31m" in capsys.readouterr().out
    if way == "variable":
        monkeypatch.setenv("NO_COLOR", "1")
    output(no_color=way == "flag").show(CommandResult(items("a")), (red,))
    assert "\x1b[31m" not in capsys.readouterr().out


@pytest.mark.usefixtures("terminal")
def test_wide_letters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output(no_color=True).show(
        CommandResult(items("b" * 9, "\u5bbd", "\U0001f600", "a")), (NAME, PATH)
    )
    assert capsys.readouterr().out.splitlines() == [
        "NAME       PATH",
        "bbbbbbbbb  ~",
        "\u5bbd         ~",
        "\U0001f600         ~",
        "a          ~",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_break_a_line_or_a_field(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    output().show(CommandResult(items("before", name, "after")), (NAME, PATH))
    out = capsys.readouterr().out
    lines = out.split("\n")
    assert len(lines) == 4
    assert [line.count("\t") for line in lines] == [1, 1, 1, 0]
    assert all(unicodedata.category(char)[0] != "C" for char in out if char not in "\t\n")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_take_over_a_terminal(capsys: pytest.CaptureFixture[str], name: str) -> None:
    output(no_color=True).show(CommandResult(items("before", name, "after")), (NAME,))
    out = capsys.readouterr().out.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert len(out.splitlines()) == 4
    assert all(unicodedata.category(char)[0] != "C" for char in out if char != "\n")
    if name.startswith("["):
        assert "[bold red]" in out


def test_json_is_one_ascii_object_with_the_names_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = CommandResult(items(*HOSTILE), 7, ["careful"], {"count": 1})
    output(json=True).show(answer, (NAME,))
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.isascii()
    assert captured.out.count("\n") == 1
    whole = json.loads(captured.out)
    assert list(whole) == ["schema", "command", "revision", "count", "items", "warnings"]
    assert (whole["schema"], whole["command"], whole["revision"]) == ("rootsd/1", "ls", 7)
    assert [item["name"] for item in whole["items"]] == list(HOSTILE)
    assert whole["warnings"] == ["careful"]


def test_an_error_is_a_line_on_stderr_with_the_commands_to_type_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output(quiet=True).error(RootsdError("it broke\x1b[2J\nbadly"), ["rootsd up", "rootsd \x1b"])
    assert capsys.readouterr() == (
        "",
        "error: it broke\\u{1b}[2J\n  badly\n  try: rootsd up\n       rootsd \\u{1b}\n",
    )


def test_an_error_in_json_is_one_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    output(json=True).error(AmbiguousReference("which?", typed="x", choices=["a", "b"]), ())
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out) == {
        "schema": "rootsd/1",
        "command": "ls",
        "error": {
            "code": "ambiguous",
            "message": "which?",
            "remedy": None,
            "typed": "x",
            "choices": ["a", "b"],
        },
    }


@pytest.mark.parametrize(
    ("flags", "said"), [({}, "hello\n"), ({"quiet": True}, ""), ({"json": True}, "")]
)
def test_messages_are_on_stderr_unless_quiet_or_json(
    capsys: pytest.CaptureFixture[str], flags: dict[str, bool], said: str
) -> None:
    output(**flags).message("hello")
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a b"),
        ("  indented ", "  indented "),
        ("a \\u{1b} b", "a \\u{1b} b"),
        ("back\\\\slash", "back\\\\slash"),
        ("a\x1bb", "a\\u{1b}b"),
        ("", ""),
    ],
)
def test_existing_escapes_are_not_escaped_again(text: str, shown: str) -> None:
    assert safe_text(text) == shown
