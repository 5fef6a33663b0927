"""Following the links on a path one by one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rootsd.disk.links import final_path, walk_links


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def last_parts(path: Path, top: Path) -> list[tuple[str, str | None]]:
    """Return the parts below `top`, relative to it, and the targets of links."""
    return [
        (os.path.relpath(os.fsdecode(part), top), None if target is None else os.fsdecode(target))
        for part, target in walk_links(os.fsencode(path))
        if part.startswith(os.fsencode(top) + b"/")
    ]


def test_each_link_and_each_folder_on_the_way_is_found(top: Path) -> None:
    (top / "real" / "deep").mkdir(parents=True)
    (top / "again").symlink_to("real")
    (top / "link").symlink_to(top / "again" / "deep")
    assert last_parts(top / "link" / "file", top) == [
        ("link", str(top / "again" / "deep")),
        ("again", "real"),
        ("real", None),
        ("real/deep", None),
        ("real/deep/file", None),
    ]


def test_two_dots_lead_out_of_the_target_of_a_link_and_not_out_of_the_link(top: Path) -> None:
    (top / "real" / "deep").mkdir(parents=True)
    (top / "link").symlink_to("real/deep")
    path = os.fsencode(top / "link") + b"/../x"
    *_, (last, _) = walk_links(path)
    assert last == os.fsencode(top / "real" / "x")


def test_what_does_not_exist_follows_from_the_text(top: Path) -> None:
    assert last_parts(top / "none" / "x", top) == [("none", None), ("none/x", None)]


def test_a_loop_ends_with_an_error(top: Path) -> None:
    (top / "one").symlink_to("other")
    (top / "other").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links") as caught:
        list(walk_links(os.fsencode(top / "one")))
    assert caught.value.errno == errno.ELOOP


def test_the_final_path_of_what_the_kernel_refuses_is_the_path_itself(
    top: Path, unreadable_link: Path
) -> None:
    (top / "self").symlink_to("self")
    (top / "link").symlink_to(unreadable_link / "x")
    for name, expected in (("self", top / "self"), ("link", unreadable_link / "x")):
        assert final_path(os.fsencode(top / name)) == os.fsencode(expected)


@pytest.mark.parametrize("target", ["/", "//", ".", "..", "../..", "folder/..", "/usr/.."])
def test_a_link_to_a_folder_above_ends_there(top: Path, target: str) -> None:
    (top / "folder").mkdir(exist_ok=True)
    (top / "above").symlink_to(target)
    assert final_path(bytes(top / "above")) == bytes((top / "above").resolve())
