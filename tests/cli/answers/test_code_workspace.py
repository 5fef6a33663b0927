"""Workspace files of VS Code, which may be hostile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.cli.answers.code_workspace import (
    MAX_BYTES,
    BadWorkspace,
    create_file,
    default_tag,
    is_workspace_file,
    read_folders,
    workspace_of,
    workspace_text,
)
from rootsd.wire.decisions import MAX_ADDED_FOLDERS

# What VS Code writes, and what people add to it.
TEXT = """\
\ufeff{
\t// the folders
\t"folders": [
\t\t{ "path": "api", "name": "Backend" },
\t\t{ "path": "../other" }, /* beside */
\t\t{ "path": "/srv/web" },
\t\t{ "uri": "file:///srv/a%20b" },
\t\t{ "path": "./api" },
\t],
\t"settings": { "editor.tabSize": 4 },
}
"""


def a_file(folder: Path, text: str, name: str = "work.code-workspace") -> str:
    file = folder / name
    file.write_bytes(os.fsencode(text))
    return str(file)


def with_folders(*entries: str) -> str:
    return f'{{"folders": [{", ".join(entries)}]}}'


def test_relative_paths_begin_at_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_file(tmp_path, TEXT)
    monkeypatch.chdir("/")
    found = read_folders(file)
    here, above = tmp_path.resolve(), tmp_path.resolve().parent
    assert found.paths == (f"{here}/api", f"{above}/other", "/srv/web", "/srv/a b")
    assert found.warnings == ()
    monkeypatch.chdir(tmp_path)
    assert read_folders("work.code-workspace") == found


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('{"uri": "vscode-remote://ssh-remote+host/x"}', "it is not a folder of this computer"),
        ('{"uri": "file://server/share"}', "it is not a folder of this computer"),
        ('{"uri": "http://[x"}', "it is not a folder of this computer"),
        ('{"uri": "\\u001b[2J://x"}', "it is not a folder of this computer"),
        ('{"name": "x"}', "it has neither a path nor a uri"),
        ('{"path": 7}', "it has neither a path nor a uri"),
        ('"api"', "it has neither a path nor a uri"),
        ("null", "it has neither a path nor a uri"),
        ('{"path": ""}', "its path is not valid"),
        ('{"path": "a\\u0000b"}', "its path is not valid"),
        ('{"uri": "file:///a%00b"}', "its path is not valid"),
    ],
)
def test_other_folders_are_left_out_with_the_reason(tmp_path: Path, entry: str, why: str) -> None:
    found = read_folders(a_file(tmp_path, with_folders(entry, '{"path": "/srv/web"}')))
    assert found.paths == ("/srv/web",)
    (warning,) = found.warnings
    assert warning.endswith(f"is left out: {why}")
    assert warning.isprintable()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[]", "it has no list of folders"),
        ('{"folders": {}}', "it has no list of folders"),
        ("[" * 100_000, "it is nested too deeply"),
        (with_folders('{"path": "\udcff"}'), "not UTF-8"),
        (with_folders(*['{"path": "x"}'] * (MAX_ADDED_FOLDERS + 1)), "it lists more than 500"),
        ('{"folders": []}' + " " * MAX_BYTES, "it is larger than"),
    ],
)
def test_a_file_that_is_no_workspace_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadWorkspace, match=why):
        read_folders(a_file(tmp_path, text))


def test_a_link_or_a_fifo_is_refused_and_never_hangs(tmp_path: Path) -> None:
    real = a_file(tmp_path, TEXT, "real.code-workspace")
    link, fifo, gone = (tmp_path / f"{name}.code-workspace" for name in ("link", "fifo", "gone"))
    link.symlink_to(real)
    os.mkfifo(fifo)
    with pytest.raises(BadWorkspace, match="is a link") as refused:
        read_folders(str(link))
    assert refused.value.remedy == f"rootsd add {Path(real).resolve()}"
    with pytest.raises(BadWorkspace, match="not a regular file"):
        read_folders(str(fifo))
    with pytest.raises(BadWorkspace, match="No such file"):
        read_folders(str(gone))


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("work", "work"),
        ("My Work (v2)", "My-Work-v2"),
        ("été", "été"),
        ("-x*", "x"),
        ("$(touch x)", "touch-x"),
        ("tag:x", "tag-x"),
    ],
)
def test_the_tag_is_the_name_of_the_file(name: str, tag: str) -> None:
    assert default_tag(f"/src/{name}.code-workspace") == tag


def test_a_name_that_makes_no_tag_needs_one() -> None:
    with pytest.raises(BadWorkspace, match="makes no tag"):
        default_tag("***.code-workspace")


def test_a_folder_or_a_uri_with_that_ending_is_no_workspace_file(tmp_path: Path) -> None:
    (tmp_path / "x.code-workspace").mkdir()
    assert not is_workspace_file(str(tmp_path / "x.code-workspace"))
    assert not is_workspace_file("https://host/x.code-workspace")
    assert not is_workspace_file(str(tmp_path))
    assert is_workspace_file(str(tmp_path / "y.code-workspace"))


PATHS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(PATHS.filter(lambda name: name not in (".", "..")), unique=True, max_size=5))
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("workspace")
    paths = tuple(f"/srv/{name}" for name in names)
    text = workspace_text(workspace_of(paths))
    assert text.isascii()
    create_file(str(folder / "x.code-workspace"), text)
    assert read_folders(str(folder / "x.code-workspace")).paths == paths


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    file = a_file(tmp_path, TEXT)
    link = tmp_path / "link.code-workspace"
    link.symlink_to(tmp_path / "target")
    for there in (file, str(link)):
        with pytest.raises(BadWorkspace, match="exists already"):
            create_file(there, "{}")
    assert Path(file).read_text() == TEXT
    assert not (tmp_path / "target").exists()
    with pytest.raises(BadWorkspace, match="cannot be written"):
        create_file(str(tmp_path / "none" / "x"), "{}")
