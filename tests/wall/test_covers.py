"""Protections and masks stay at their paths when a process outside replaces the files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.sizes import Sizes
from support.walls import Wall, Weakness, root_at

pytestmark = [pytest.mark.needs("wall")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A root with a protected file and folder, and a denied project two levels deep."""
    folder = tmp_path / "root"
    (folder / "packages" / "denied").mkdir(parents=True)
    (folder / "packages" / "denied" / "key").write_text("secret")
    (folder / ".envrc").write_text("a")
    (folder / ".husky").mkdir()
    (tmp_path / "home").mkdir()
    return folder


def root_of(folder: Path) -> ConfinedRoot:
    denied = frozenset({os.fsencode(folder / "packages" / "denied")})
    return ConfinedRoot(os.fsencode(folder), Access.READ_WRITE, denied=denied)


@pytest.fixture
def wall(tmp_path: Path, folder: Path) -> Iterator[Wall]:
    with Wall(tmp_path / "state", tmp_path / "home", [root_of(folder)]) as wall:
        yield wall


def _move_away_and_write(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_text("new")


def _delete_and_write(path: Path) -> None:
    path.unlink()
    path.write_text("new")


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("new")
    other.rename(path)


def _replace_by_a_link(path: Path) -> None:
    path.with_name("target").write_text("new")
    path.unlink()
    path.symlink_to("target")


def test_a_file_created_again_outside_is_protected_again(
    folder: Path, wall: Wall, sizes: Sizes
) -> None:
    touch = f"os.utime('{folder}/.envrc', follow_symlinks=False)"
    changes = _move_away_and_write, _delete_and_write, _replace, _replace_by_a_link
    for change in changes * sizes.pick(test=2, check=50, soak=150):
        change(folder / ".envrc")
        until(lambda: wall.error_of(f"append('{folder}/.envrc')") == "EROFS")
        until(lambda: wall.error_of(touch) == "EROFS")
        assert wall.error_of(f"os.rename('{folder}/.envrc', '{folder}/moved')") == "EBUSY"
        (folder / "old").unlink(missing_ok=True)


@pytest.mark.parametrize("is_weak", [False, True])
def test_a_file_replaced_between_its_cover_and_its_watch_is_protected_again(
    tmp_path: Path, folder: Path, is_weak: bool
) -> None:
    late = folder / "late"
    late.touch()

    def replace() -> None:
        until((folder / "late-now").exists)
        _replace(folder / ".envrc")
        (folder / "late-now").unlink()

    weaknesses = [Weakness.LATE_WATCH, *([Weakness.NO_REPAIR] if is_weak else [])]
    replacing = Thread(target=replace)
    replacing.start()
    with Wall(
        tmp_path / "state", tmp_path / "home", [root_of(folder)], weaknesses=weaknesses
    ) as wall:
        replacing.join()
        if is_weak:
            assert wall.error_of(f"append('{folder}/.envrc')") == ""
        else:
            until(lambda: wall.error_of(f"append('{folder}/.envrc')") == "EROFS")


def test_a_denied_project_created_again_outside_is_masked_again(folder: Path, wall: Wall) -> None:
    denied = folder / "packages" / "denied"
    for change in (lambda: denied.rename(folder / "old"), lambda: shutil.rmtree(denied)):
        change()
        denied.mkdir()
        (denied / "key").write_text("secret")
        until(lambda: wall.error_of(f"read('{denied}/key')") == "ENOENT")
    (folder / "packages").rename(folder / "more")
    denied.mkdir(parents=True)
    (denied / "key").write_text("secret")
    until(lambda: wall.error_of(f"read('{denied}/key')") == "ENOENT")


def test_a_missing_denied_project_is_masked_once_it_exists(
    folder: Path, tmp_path: Path, wall: Wall
) -> None:
    shutil.rmtree(folder / "packages")
    wall.order(OrderKind.SET)
    wall.order(OrderKind.SET, root_of(folder))
    (tmp_path / "clone" / "denied").mkdir(parents=True)
    (tmp_path / "clone" / "denied" / "key").write_text("secret")
    (tmp_path / "clone").rename(folder / "packages")
    until(lambda: wall.error_of(f"read('{folder}/packages/denied/key')") == "ENOENT")


def test_without_a_watch_a_moved_file_is_checked_every_second(
    tmp_path: Path, folder: Path
) -> None:
    """The user may have no inotify watch left."""
    with Wall(
        tmp_path / "state", tmp_path / "home", [root_of(folder)], weaknesses=[Weakness.NO_WATCH]
    ) as wall:
        _move_away_and_write(folder / ".envrc")
        until(lambda: wall.error_of(f"append('{folder}/.envrc')") == "EROFS")


def test_a_program_cannot_move_a_folder_above_a_denied_project_or_an_inner_root(
    tmp_path: Path, folder: Path, wall: Wall
) -> None:
    """After the next change, a mask or an access would be at the old path."""
    (folder / "a" / "inner").mkdir(parents=True)
    inner = root_at(folder / "a" / "inner", Access.READ)
    wall.order(OrderKind.ADD, inner)
    moves = [
        f"os.rename('{folder}/{name}', '{folder}/moved-{name}')" for name in ("a", "packages")
    ]
    assert [wall.error_of(move) for move in moves] == ["EBUSY"] * 2
    roots = root_of(folder), inner
    with Wall(tmp_path / "weak", tmp_path / "home", roots, weaknesses=[Weakness.NO_HOLD]) as weak:
        for move in moves:
            weak.run(move)
        weak.order(OrderKind.SET)
        weak.order(OrderKind.SET, root_of(folder))
        secret = f"{folder}/moved-packages/denied/key"
        assert weak.run(f"result = read('{secret}').decode()") == "secret"


def test_a_folder_created_again_outside_is_protected_again_and_a_root_inside_survives(
    folder: Path, wall: Wall
) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "file").write_text("text")
    wall.order(OrderKind.ADD, root_at(folder / "inner"))
    (folder / ".husky").rename(folder / "old")
    (folder / ".husky").mkdir()
    until(lambda: wall.error_of(f"os.utime('{folder}/.husky')") == "EROFS")
    wall.run(f"append('{folder}/inner/file')")


def test_links_and_their_targets_are_protected(folder: Path, wall: Wall) -> None:
    (folder / "tools" / "hooks").mkdir(parents=True)
    (folder / "tools" / "mcp.json").write_text("{}")
    (folder / ".mcp.json").symlink_to("tools/link")
    (folder / "tools" / "link").symlink_to(folder / "tools" / "mcp.json")
    (folder / ".idea").symlink_to("/etc")
    subprocess.run(["git", "init", "-q", folder], check=True)
    shutil.rmtree(folder / ".git" / "hooks")
    (folder / ".git" / "hooks").symlink_to("../tools/hooks")
    wall.order(OrderKind.SET)
    wall.order(OrderKind.SET, root_of(folder))
    for line in (
        f"append('{folder}/tools/mcp.json')",
        f"append('{folder}/.mcp.json')",
        f"os.unlink('{folder}/.mcp.json')",
        f"os.rename('{folder}/tools/link', '{folder}/moved')",
        f"os.rename('{folder}/tools', '{folder}/moved')",
        f"make('{folder}/tools/hooks/pre-commit')",
        f"os.unlink('{folder}/.git/hooks')",
        f"os.unlink('{folder}/.idea')",
    ):
        assert wall.error_of(line) in ("EROFS", "EBUSY", "EXDEV"), line
    wall.run(f"make('{folder}/tools/other')")
