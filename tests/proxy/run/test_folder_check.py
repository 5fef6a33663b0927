"""Fingerprints of folders on the disk."""

from __future__ import annotations

from pathlib import Path

from rootsd.proxy.run.folder_check import canonical, fingerprint
from support.repositories import raw


def test_a_fingerprint_changes_when_the_folder_is_replaced(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    first = fingerprint(raw(sub))
    assert first is not None
    (sub / "file").touch()
    assert fingerprint(raw(sub)) == first
    sub.rename(tmp_path / "sub2")
    assert fingerprint(raw(sub)) is None
    sub.mkdir()
    assert fingerprint(raw(sub)) not in (None, first)


def test_links_are_never_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "out").symlink_to("/etc")
    for path in ("link", "link/deep", "real/out"):
        assert fingerprint(raw(tmp_path / path)) is None
    assert fingerprint(raw(tmp_path / "real" / "deep")) is not None


def test_a_path_without_a_folder_has_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to("gone")
    for name in ("file", "broken", "gone"):
        assert fingerprint(raw(tmp_path / name)) is None
        assert canonical(raw(tmp_path / name)) is None
    assert canonical(b"/with\0nul") is None
    assert canonical(raw(tmp_path)) == raw(tmp_path.resolve())
