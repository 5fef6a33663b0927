"""Most canonical paths on local disks are recognized at once; other paths need a thread."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from rootsd.disk.canonical import canonical_spelling, is_canonical_local
from rootsd.disk.mounts import MountTable
from support.repositories import raw


class Mounted:
    """The part of a mount table that the check uses."""

    def __init__(self, remote: tuple[bytes, ...] = (), automounts: tuple[bytes, ...] = ()) -> None:
        self._remote, self._automounts = remote, automounts

    def remote(self) -> tuple[bytes, ...]:
        return self._remote

    def automounts(self) -> tuple[bytes, ...]:
        return self._automounts


def plain(path: bytes, mounted: Mounted | None = None) -> bool:
    return is_canonical_local(cast("MountTable", mounted or Mounted()), path)


@pytest.fixture
def top(tmp_path: Path) -> bytes:
    (tmp_path / "src" / "Api").mkdir(parents=True)
    (tmp_path / "src" / "file").touch()
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "src" / "dangling").symlink_to("nowhere")
    return raw(tmp_path.resolve())


@pytest.mark.parametrize("below", [b"", b"/src", b"/src/Api", b"/src/file", b"/src/no/such/thing"])
def test_a_path_without_links_is_its_own_real_path(top: bytes, below: bytes) -> None:
    assert plain(top + below)
    assert canonical_spelling(os.path.realpath(top + below)) == top + below


@pytest.mark.parametrize(
    "below",
    [b"/link", b"/link/Api", b"/src/dangling", b"/src/../src", b"/src/.", b"/src//Api", b"/src/",
     b"/src/file/below", "/src/caf\u00e9".encode(), b"/src/\xff"],
)  # fmt: skip
def test_a_path_with_a_link_or_other_spelling_is_not_canonical(top: bytes, below: bytes) -> None:
    assert not plain(top + below)


def test_no_file_on_a_remote_mount_is_touched(top: bytes) -> None:
    for mounted in (Mounted(remote=(top,)), Mounted(automounts=(top + b"/src",))):
        assert not plain(top + b"/src/Api", mounted)
    assert plain(top + b"/src/Api", Mounted(remote=(top + b"/sr",), automounts=(b"/net",)))


def test_a_path_in_a_case_insensitive_folder_is_not_canonical(
    top: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstat = os.lstat
    here = top + b"/src/Api"
    monkeypatch.setattr(
        os, "lstat", lambda path: lstat(here if path.lower() == here.lower() else path)
    )
    assert not plain(here)


def test_a_nul_byte_in_a_path_raises(top: bytes) -> None:
    with pytest.raises(ValueError, match="null"):
        plain(top + b"/a\0b")
