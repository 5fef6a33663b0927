"""No character in a name can control a terminal, break a line, or reach a client as a control
character.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache

import pytest
from msgspec.structs import replace

from rootsd.cli.text.projects import PROJECT_COLUMNS
from rootsd.cli.text.render import CommandResult, Flags, Output
from rootsd.control.items import project_items
from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.labels import safe_label
from rootsd.core.model import Project, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import UriFilter
from rootsd.mcp.serializers import approved_resource_text, root_to_line
from support.ledger_harness import PLACES
from support.list_roots_output import listed
from support.sample_decisions import project
from support.sizes import Sizes

_ALL = sys.maxunicode + 1
_BATCH = 4_096
_ROWS_OF_RICH = 300  # longer lists are aligned without it
_POSITIONS = ("{}ab", "a{}b", "ab{}")
_MOVES_TEXT = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN", "B", "S"}


def _is_harmless(char: str) -> bool:
    """Return whether the character only draws itself."""
    category = unicodedata.category(char)
    return category[0] != "C" and category not in ("Zl", "Zp") and not _moves(char)


def _moves(char: str) -> bool:
    return unicodedata.bidirectional(char) in _MOVES_TEXT


@cache  # This takes a second, which must not slow down the collection of tests.
def _harmful() -> frozenset[str]:
    return frozenset(char for char in map(chr, range(_ALL)) if not _is_harmless(char))


def _names(step: int) -> Iterator[list[str]]:
    """Yield names with each code point in each position, in batches; every `step`-th code
    point.
    """
    for first in range(0, _ALL, _BATCH * step):
        codes = range(first, min(first + _BATCH * step, _ALL), step)
        yield [position.format(chr(code)) for code in codes for position in _POSITIONS]


def _project(number: int, name: str) -> Project:
    file_name = name.replace("/", "\\").replace("\0", "")
    try:
        raw = bytes_of(file_name)
    except UnicodeEncodeError:  # a lone surrogate that represents no byte
        raw = file_name.encode("utf-8", "surrogatepass")
    return replace(project(number), path=b"/home/ann/src/" + raw)


def _lines(text: str) -> list[str]:
    assert text.endswith("\n")
    assert not _harmful().intersection(text.replace("\n", "").replace("\t", ""))
    return text.removesuffix("\n").split("\n")


def test_no_code_point_is_harmful_in_any_position(sizes: Sizes) -> None:
    count = 0
    for names in _names(sizes.pick(test=128, check=1, soak=1)):
        labels = [safe_label(name) for name in names]
        assert not _harmful().intersection("".join(labels))
        count += len(labels)
    assert count >= sizes.pick(test=25_000, check=3 * _ALL, soak=3 * _ALL)


def test_no_code_point_breaks_any_output(
    sizes: Sizes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for names in _names(sizes.pick(test=1_024, check=16, soak=1)):
        projects = {one.path: one for one in map(_project, range(len(names)), names)}
        catalog = Catalog.of(projects.values(), (), PLACES, 1)
        items = project_items(catalog, projects.values(), ())
        Output(Flags(), "ls").show(CommandResult(items), PROJECT_COLUMNS)
        rows = _lines(capsys.readouterr().out)
        assert len(rows) == len(items)
        assert {row.count("\t") for row in rows} == {len(PROJECT_COLUMNS) - 1}
        Output(Flags(json=True), "ls").show(CommandResult(items), PROJECT_COLUMNS)
        (line,) = _lines(capsys.readouterr().out)
        assert line.isascii()
        assert [item["id"] for item in json.loads(line)["items"]] == [i["id"] for i in items]
        with monkeypatch.context() as terminal:
            terminal.setattr(Output, "on_terminal", True)
            terminal.setenv("COLUMNS", "300")
            terminal.setenv("TERM", "dumb")
            for shown in (items, items[:_ROWS_OF_RICH]):
                Output(Flags(no_color=True), "ls").show(CommandResult(shown), PROJECT_COLUMNS)
                assert len(_lines(capsys.readouterr().out)) == len(shown) + 1


def test_no_code_point_breaks_a_line_of_the_log(sizes: Sizes) -> None:
    heard = io.StringIO()
    log = logging.getLogger("trust")
    log.propagate = False
    log.addHandler(logging.StreamHandler(heard))
    written = 0
    for names in _names(sizes.pick(test=1_024, check=16, soak=1)):
        for name in names:
            log.warning("saw %s", safe_label(name, limit=None))
        written += len(names)
    assert len(_lines(heard.getvalue())) == written


def test_no_code_point_breaks_the_messages_to_clients(sizes: Sizes) -> None:
    for names in _names(sizes.pick(test=1_024, check=16, soak=1)):
        roots = []
        for number, name in enumerate(names):
            path = _project(number, name).path
            if _is_utf8(path):
                roots.append(_root(path, text_of(path.rpartition(b"/")[2])))
        lines = list(map(root_to_line, roots))
        assert not _harmful().intersection("".join(lines))
        each = [listed({"content": [{"text": line}]}) for line in lines]
        places = [place for one in each for place in one.values()]
        assert places == [text_of(root.path) for root in roots]
        shown = json.loads(approved_resource_text(PublishedSet(1, tuple(roots)), UriFilter.FILE))[
            "roots"
        ]
        assert len(shown) == len(roots)
        assert not _harmful().intersection("".join(root["name"] for root in shown))
        assert [root["uri"] for root in shown] == [root.uri for root in roots]
        assert all(root["uri"].isascii() and root["uri"].isprintable() for root in shown)


def test_control_an_unescaped_name_breaks_them() -> None:
    names = next(_names(1))
    assert _harmful().intersection("".join(names))
    assert len("".join(f"{name}\n" for name in names).split("\n")) > len(names) + 1


def _root(path: bytes, name: str) -> PublishedRoot:
    return PublishedRoot(path, name, ProjectKind.GIT, Access.READ_WRITE, ())


def _is_utf8(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
