"""Edits of the configuration keep comments, order, and layout, and are atomic."""

from __future__ import annotations

import json
import os
import stat
import threading
import tomllib
from pathlib import Path

import pytest

from rootsd.cli.answers.config_edit import CannotEdit, edit_config, new_file_text, schema_file
from rootsd.settings import toml_spans


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
        write(lambda text: toml_spans.append_table(text, ("parent",), {"path": "/a"}))
    assert file.read_text() == new_file_text() + '\n[[parent]]\npath = "/a"\n'


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


def test_an_existing_file_keeps_its_first_line_and_mode_and_ends_in_a_newline(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# mine\n")
    file.chmod(0o640)
    with edit_config(bytes(file)) as write:
        write(lambda text: toml_spans.append_table(text, ("parent",), {"path": "/a"}))
    assert file.read_text().startswith("# mine\n")
    assert "#:schema" not in file.read_text()
    change(file, "# mine")
    assert file.read_text() == "# mine\n"
    before = file.stat()
    assert stat.S_IMODE(before.st_mode) == 0o640
    change(file, "# mine\n")
    assert file.stat().st_ino == before.st_ino, "it is not written without a change"


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
            write(lambda text: toml_spans.append_table(text, ("parent",), {"path": f"/{name}"}))

    threads = [threading.Thread(target=add, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    written = [parent["path"] for parent in tomllib.loads(file.read_text())["parent"]]
    assert sorted(written) == [f"/{n}" for n in range(8)]
