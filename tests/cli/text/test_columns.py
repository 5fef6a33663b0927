"""The columns of a project."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

import pytest

from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import age, shorten_home
from rootsd.cli.text.projects import PROJECT_COLUMNS, note_of, path_of
from rootsd.core.paths import bytes_of
from support.fake_daemon import an_item

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-11-21T12:00:00Z", "just now"),
        ("2026-11-21T11:59:01Z", "just now"),
        ("2026-11-21T11:58:59Z", "1m ago"),
        ("2026-11-21T10:00:00Z", "2h ago"),
        ("2026-11-18T12:00:00Z", "3d ago"),
        ("2023-11-18T12:00:00Z", "3y ago"),
        ("2026-11-21T12:30:00Z", "just now"),
        ("whenever", "whenever"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(moment: str, shown: str) -> None:
    assert age(moment, NOW) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/h/u/src", "~/src"), ("/h/u", "~"), ("/h/user/src", "/h/user/src"), ("/srv", "/srv")],
)
def test_a_path_in_the_home_folder_is_shortened_by_components(
    monkeypatch: pytest.MonkeyPatch, path: str, shown: str
) -> None:
    monkeypatch.setenv("HOME", "/h/u")
    assert shorten_home(path) == shown


def test_a_home_folder_of_slash_shortens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert shorten_home("/srv") == "/srv"


def test_json_has_a_path_that_is_not_utf8_as_its_uri() -> None:
    raw = b"/src/\xff"
    item = an_item(path=None, uri=None, path_b64=b64encode(raw).decode())
    assert bytes_of(path_of(item)) == raw
    shown = next(c for c in PROJECT_COLUMNS if c.fit is ColumnFit.PATH).text(
        item, for_terminal=False
    )
    assert shown == "file:///src/%FF"


def test_a_uri_root_shows_its_uri() -> None:
    item = an_item(path=None, uri="https://api.example.com/v1", kind="uri")
    assert path_of(item) == "https://api.example.com/v1"


def test_a_note_repeats_no_other_column() -> None:
    item = an_item(
        incomplete="interrupted", presence="missing", access="read", tags=["work", "x"],
        worktree_of="/src/main", note="approval lapsed: replaced",
    )  # fmt: skip
    assert note_of(item) == (
        "incomplete: interrupted, missing, read only, #work #x, worktree of /src/main, "
        "approval lapsed: replaced"
    )
    assert note_of(an_item()) == ""
