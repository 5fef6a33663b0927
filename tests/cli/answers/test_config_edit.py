"""Edits of the configuration keep comments, order, and layout, and are atomic."""

from __future__ import annotations

import json
import os
import stat
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.cli.answers.config_edit import (
    CannotEdit,
    edit_config,
    new_file_text,
    schema_file,
    with_parent,
    with_parent_changed,
    with_value,
    without_parent,
    without_value,
)

TEXT = """\
# about my folders

[[parent]]
path = '~/src'  # the main one
depth = 3

# the second,
# for work
[[parent]]
path = "/srv/work"
skip = [
  "old",  # very old
]

# the end
"""
INLINE = """parent = [  # both
  {path = "/a"},
  {path = "/b", depth = 2},
]
"""


def test_a_parent_is_added_at_the_end() -> None:
    assert with_parent(TEXT, {"path": "~/new", "depth": 2}) == (
        TEXT + '\n[[parent]]\npath = "~/new"\ndepth = 2\n'
    )


def test_a_first_parent_is_added_to_a_new_file() -> None:
    assert with_parent("# new\n", {"path": "/a"}) == '# new\n\n[[parent]]\npath = "/a"\n'
    assert with_parent("", {"path": "/a"}) == '[[parent]]\npath = "/a"\n'


def test_a_file_without_a_last_newline_gets_one() -> None:
    assert with_parent("# x", {"path": "/a"}) == '# x\n\n[[parent]]\npath = "/a"\n'


def test_a_removed_parent_leaves_all_comments() -> None:
    assert without_parent(TEXT, 0) == TEXT.replace(
        "[[parent]]\npath = '~/src'  # the main one\ndepth = 3\n\n", ""
    )
    left = without_parent(TEXT, 1)
    assert "# for work" in left
    assert left.endswith("# the end\n")
    assert tomllib.loads(left) == {"parent": [{"path": "~/src", "depth": 3}]}


def test_a_changed_parent_keeps_its_comments_and_gets_a_new_key() -> None:
    assert with_parent_changed(TEXT, 0, {"depth": 5, "nested": "vcs"}) == TEXT.replace(
        "depth = 3\n", 'depth = 5\nnested = "vcs"\n'
    )


def test_a_parent_in_the_last_line_can_be_changed() -> None:
    assert with_parent_changed("[[parent]]\npath = '/a'", 0, {"depth": 2}) == (
        "[[parent]]\npath = '/a'\ndepth = 2\n"
    )


def test_inline_parents_stay_inline() -> None:
    added = with_parent(INLINE, {"path": "/c"})
    assert [p["path"] for p in tomllib.loads(added)["parent"]] == ["/a", "/b", "/c"]
    assert "# both" in added
    assert "[[" not in added
    assert tomllib.loads(without_parent(INLINE, 0))["parent"] == [{"path": "/b", "depth": 2}]
    assert tomllib.loads(with_parent_changed(INLINE, 1, {"depth": 9}))["parent"][1]["depth"] == 9


def test_a_file_with_an_unusual_layout_is_left_alone() -> None:
    text = "[[parent]]\npath = '/a'\nskip = ['''\n[[parent]]\n''']\n[[parent]]\npath = '/b'\n"
    with pytest.raises(CannotEdit, match="too unusual"):
        without_parent(text, 0)


PATHS = st.text(st.characters(codec="utf-8"), min_size=1)
ENTRIES = st.fixed_dictionaries(
    {"path": PATHS},
    optional={"depth": st.integers(1, 64), "skip": st.lists(PATHS, max_size=3)},
)
GAPS = st.sampled_from(("", "\n", "# a note\n", "\n# two\n\n# notes\n"))


@given(st.lists(st.tuples(ENTRIES, GAPS), max_size=4), ENTRIES, st.data())
def test_every_edit_has_its_effect_and_keeps_every_comment(
    given_entries: list[tuple[dict[str, object], str]],
    fresh: dict[str, object],
    data: st.DataObject,
) -> None:
    text, entries = "", [entry for entry, _ in given_entries]
    for entry, gap in given_entries:
        text = with_parent(text, entry) + gap
    grown = with_parent(text, fresh)
    assert tomllib.loads(grown)["parent"] == [*entries, fresh]
    index = data.draw(st.integers(0, len(entries)))
    cut = without_parent(grown, index)
    left = [*entries, fresh]
    del left[index]
    assert tomllib.loads(cut).get("parent", []) == left
    assert cut.count("# ") >= text.count("# a note") + text.count("# two")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


def change(file: Path, new: str) -> None:
    with edit_config(bytes(file)) as write:
        write(lambda _: new)


def test_a_new_file_names_the_schema_for_taplo(file: Path) -> None:
    schema = schema_file()
    assert schema is not None
    assert json.loads(schema.read_text())["title"] == "config.toml of rootsd"
    assert new_file_text().splitlines()[0] == f"#:schema {schema.as_uri()}"
    with edit_config(bytes(file)) as write:
        write(lambda text: with_parent(text, {"path": "/a"}))
    assert file.read_text() == new_file_text() + '\n[[parent]]\npath = "/a"\n'


def test_an_existing_file_keeps_its_first_line(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# mine\n")
    with edit_config(bytes(file)) as write:
        write(lambda text: with_parent(text, {"path": "/a"}))
    assert file.read_text().startswith("# mine\n")
    assert "#:schema" not in file.read_text()


def test_a_new_file_is_private(file: Path) -> None:
    seen: list[str] = []

    def edit(old: str) -> str:
        seen.append(old)
        return "# new\n"

    with edit_config(bytes(file)) as write:
        write(edit)
    assert seen == [new_file_text()]
    assert file.read_text() == "# new\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_keeps_its_mode(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# old\n")
    file.chmod(0o640)
    change(file, "# new\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.needs("root")
def test_a_file_keeps_its_owner(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# old\n")
    os.chown(file, 1234, 1235)
    change(file, "# new\n")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1235)


def test_a_failed_edit_changes_nothing_and_leaves_nothing_behind(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# old\n")

    def fail(_: str) -> str:
        raise CannotEdit("no")

    with pytest.raises(CannotEdit), edit_config(bytes(file)) as write:
        write(fail)
    with pytest.raises(UnicodeEncodeError):
        change(file, "\udcff")
    assert file.read_text() == "# old\n"
    assert os.listdir(file.parent) == ["config.toml"]


def test_an_edit_that_changes_nothing_does_not_write(file: Path) -> None:
    change(file, "# same\n")
    before = file.stat()
    change(file, "# same\n")
    assert file.stat().st_ino == before.st_ino


def test_a_link_inside_the_home_folder_is_written_through(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    dotfile = tmp_path / "dotfiles" / "rootsd.toml"
    dotfile.parent.mkdir()
    dotfile.write_text("# old\n")
    file.parent.mkdir()
    file.symlink_to(dotfile)
    change(file, "# new\n")
    assert file.is_symlink()
    assert dotfile.read_text() == "# new\n"


def test_a_link_out_of_the_home_folder_is_not_followed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    outside = tmp_path / "outside.toml"
    outside.write_text("# theirs\n")
    file.parent.mkdir()
    file.symlink_to(outside)
    with pytest.raises(CannotEdit, match="leads out of your home"):
        change(file, "# new\n")
    assert outside.read_text() == "# theirs\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    with pytest.raises(CannotEdit, match="cannot be written"):
        change(tmp_path / "config" / "config.toml", "")


def test_two_edits_at_once_lose_nothing(file: Path) -> None:
    def add(name: str) -> None:
        with edit_config(bytes(file)) as write:
            write(lambda text: with_parent(text, {"path": f"/{name}"}))

    threads = [threading.Thread(target=add, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    written = [parent["path"] for parent in tomllib.loads(file.read_text())["parent"]]
    assert sorted(written) == [f"/{n}" for n in range(8)]


def test_a_value_goes_to_the_end_of_its_table_and_leaves_all_comments() -> None:
    text = "[sessions] # s\nmax_connections = 9 # nine\n\n# about roots\n[roots]\nallow = []\n"
    assert with_value(text, "sessions", "max_connections", 7) == text.replace("= 9", "= 7")
    assert with_value(text, "sessions", "max_connections_per_process", 5) == text.replace(
        "# nine\n", "# nine\nmax_connections_per_process = 5\n"
    )


def test_a_value_of_a_missing_table_adds_the_table() -> None:
    assert with_value(TEXT, "confine", "read", ["~/a"]) == TEXT + '\n[confine]\nread = ["~/a"]\n'
    assert with_value("", "confine", "network", False) == "[confine]\nnetwork = false\n"


@pytest.mark.parametrize(
    "text",
    [
        "sessions.max_connections = 9\n",
        "sessions = {max_connections = 9}\n",
        "[sessions]\r\nmax_connections = 9\r\n",
        "[ 'sessions' ]\n'max_connections' = 9",
        "[sessions]\nmax_connections = 9\n# the end",
    ],
)
def test_a_value_is_set_and_removed_in_every_layout(text: str) -> None:
    """Or the edit is refused, but never wrong: with_value and without_value verify the result."""
    changed = with_value(text, "sessions", "max_connections", 7)
    assert tomllib.loads(changed) == {"sessions": {"max_connections": 7}}
    more = with_value(changed, "sessions", "max_connections_per_process", 5)
    left = tomllib.loads(without_value(more, "sessions", "max_connections"))
    assert left == {"sessions": {"max_connections_per_process": 5}}


def test_a_removed_value_leaves_the_line_end_of_the_file() -> None:
    text = "# mine\n[confine]\nnetwork = false\n"
    assert without_value(text, "confine", "network") == "# mine\n[confine]\n"
    assert without_value(text, "confine", "read") == text
    assert without_value(text, "roots", "allow") == text
