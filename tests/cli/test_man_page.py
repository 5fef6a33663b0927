"""The man page has all text of the definitions, in valid roff."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from rootsd.cli import help_text
from rootsd.cli.main import ALIASES
from rootsd.cli.man_page import render_man_page
from rootsd.cli.manual import verb_contexts
from rootsd.core.errors import Exit


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "rootsd.1"
    file.write_text(render_man_page())
    return file


@pytest.fixture
def shown(page: Path) -> str:
    """The page as a person reads it, without hyphenation and overstriking."""
    done = subprocess.run(
        ["mandoc", "-Tutf8", "-Owidth=400", page], capture_output=True, text=True, check=True
    )
    return re.sub(".\x08", "", done.stdout)


def lint(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "".join(
        line
        for line in (done.stdout + done.stderr).splitlines(keepends=True)
        # The line for apropos must be a single line.
        if "STYLE: input text line longer" not in line
    )


@pytest.mark.needs("mandoc")
def test_mandoc_reports_no_problem(page: Path) -> None:
    assert lint("mandoc", "-Tlint", page) == ""


@pytest.mark.needs("groff")
def test_groff_reports_no_problem(page: Path) -> None:
    assert lint("groff", "-man", "-ww", "-z", "-Tutf8", page) == ""


@pytest.mark.needs("mandoc")
def test_an_invalid_page_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.1"
    wrong.write_text(render_man_page().replace(".SH SYNOPSIS", ".SN SYNOPSIS"))
    assert "SN" in lint("mandoc", "-Tlint", wrong)


@pytest.mark.needs("mandoc")
def test_it_names_every_verb_flag_example_and_alias(shown: str) -> None:
    for context in verb_contexts():
        path = context.command_path
        section = shown.partition(f"\n   {path}")[2].partition("\n   rootsd")[0]
        assert section, path
        for param in context.command.get_params(context):
            if isinstance(param, click.Option) and not param.hidden and "--help" not in param.opts:
                for word in (*param.opts, *param.secondary_opts):
                    assert word in section, (path, word)
        for line in (context.command.epilog or "").splitlines():
            assert line in section, (path, line)
    assert all(alias in shown for alias in ALIASES)


@pytest.mark.needs("mandoc")
def test_it_names_every_exit_status_and_no_other(shown: str) -> None:
    section = shown.partition("EXIT STATUS")[2].partition("ENVIRONMENT")[0]
    told = {int(number) for number in re.findall(r"^ {5,7}(\d+)\b", section, re.MULTILINE)}
    assert told == set(Exit)


def test_roff_markup_in_a_text_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {".so /etc/passwd": '\'ds x \\*y "quoted" ~ ^ --flag'}
    monkeypatch.setattr(help_text, "FILES", odd)
    assert "\n.so" not in render_man_page()
    assert "\n'ds" not in render_man_page()
    assert "\\&'ds x \\e*y \\(dqquoted\\(dq \\(ti \\(ha \\-\\-flag" in render_man_page()
