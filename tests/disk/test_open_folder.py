"""An open folder answers about itself, never about another folder or the target of a link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.disk import reader
from rootsd.disk.reader import OpenFolder, birth_time_ns
from support.repositories import raw

Ask = Callable[[OpenFolder, bytes], object]

# Each method with its result for an entry that does not exist.
NOTHING: dict[str, tuple[Ask, object]] = {
    "read": (lambda folder, name: folder.read(name, 100), None),
    "read_tail": (lambda folder, name: folder.read_tail(name, 1), None),
    "exists": (OpenFolder.exists, False),
    "is_folder": (OpenFolder.is_folder, False),
    "born_ns": (OpenFolder.born_ns, None),
    "names_in": (OpenFolder.names_in, frozenset()),
}
asked = pytest.mark.parametrize("ask", NOTHING)


@pytest.fixture(params=["all calls", "older calls"])
def top(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with a file and a folder in it, and another file and folder outside."""
    if request.param == "older calls":
        monkeypatch.setattr(reader, "_open_canonical", reader._open_by_components)
        monkeypatch.setattr(reader, "_CAN_USE_ACCESS", False)
    for name in ("top", "outside"):
        (tmp_path / name / "deep" / "er").mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)
        (tmp_path / name / "deep" / "file").write_text(f"deep {name}")
    return tmp_path / "top"


@pytest.mark.parametrize(("name", "content"), [(b"file", b"top"), (b"deep/file", b"deep top")])
def test_entries_are_found_by_name(top: Path, name: bytes, content: bytes) -> None:
    with OpenFolder(raw(top)) as folder:
        assert folder.failure is None
        assert folder.read(name, 100) == content
        assert folder.read_tail(name, 3) == b"top"
        assert folder.exists(name)
        assert not folder.is_folder(name)
        assert folder.stat(name) == os.lstat(raw(top) + b"/" + name)
        assert folder.born_ns(name) == birth_time_ns(raw(top) + b"/" + name)
        assert folder.is_folder(b"deep")
        assert folder.names() == {b"file", b"deep"}
        assert folder.names_in(b"deep") == {b"file", b"er"}


@asked
def test_no_link_to_the_folder_or_inside_it_is_followed(top: Path, ask: str) -> None:
    (top / "link").symlink_to(top.parent / "outside")
    (top / "deep" / "link").symlink_to(top.parent / "outside")
    (top.parent / "way").symlink_to(top)
    question, nothing = NOTHING[ask]
    with OpenFolder(raw(top)) as folder, OpenFolder(raw(top.parent / "way")) as behind:
        assert behind.failure is not None
        assert question(behind, b"deep") == nothing
        for name in (b"link/file", b"deep/link/file", b"deep/link/deep/er"):
            assert question(folder, name) == nothing
            with pytest.raises(OSError, match=r"symbolic|Not a directory"):
                folder.stat(name)


def test_a_link_exists_and_reads_as_nothing(top: Path) -> None:
    (top / "link").symlink_to(top.parent / "outside")
    with OpenFolder(raw(top)) as folder:
        assert folder.exists(b"link")
        assert not folder.is_folder(b"link")
        assert folder.read(b"link", 100) is None
        assert folder.folder(b"link").failure is not None


@asked
@pytest.mark.parametrize("name", [b"..", b"../outside", b"deep/../../outside/file", b"/"])
def test_a_name_that_leads_out_of_the_folder_finds_nothing(
    top: Path, ask: str, name: bytes
) -> None:
    question, nothing = NOTHING[ask]
    with OpenFolder(raw(top)) as folder:
        assert question(folder, name) == nothing
        with pytest.raises(OSError, match="cross-device"):
            folder.stat(name)


@asked
def test_a_folder_that_cannot_be_opened_or_is_closed_looks_empty(top: Path, ask: str) -> None:
    question, nothing = NOTHING[ask]
    missing, closed = OpenFolder(raw(top / "none")), OpenFolder(raw(top))
    closed.close()
    closed.close()
    assert isinstance(missing.failure, FileNotFoundError)
    for folder in (missing, closed, OpenFolder(b"/nul\0")):
        for name in (b"file", b"deep/file", b".", b"nul\0"):
            assert question(folder, name) == nothing
        assert folder.names() == frozenset()


def test_an_open_folder_stays_the_same_if_its_path_gets_another_folder(top: Path) -> None:
    with OpenFolder(raw(top)) as folder:
        top.rename(top.parent / "moved")
        (top.parent / "outside").rename(top)
        assert folder.read(b"file", 100) == b"top"
        assert folder.read(b"deep/file", 100) == b"deep top"


def test_a_closed_folder_leaves_no_descriptor_open(top: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    with OpenFolder(raw(top)) as folder:
        folder.names_in(b"deep")
        folder.exists(b"deep/file")
        folder.read(b"none", 1)
    assert len(os.listdir("/dev/fd")) <= before
