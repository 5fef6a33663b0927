"""The folder where daemon, command line, bridge, and run proxy meet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.places import runtime_dir
from rootsd.places.runtime_dir import (
    FolderUnavailable,
    find_runtime_dir,
    find_runtime_dirs,
    home_folder,
    overriding_folder,
    unsafe_reason,
)

LEAN = "import sys, rootsd.places.runtime_dir; print(*sys.modules)"


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("ROOTSD_DIR")
    return monkeypatch


def test_rootsd_dir_holds_everything(rootsd_dir: Path) -> None:
    (folder,) = find_runtime_dirs()
    assert folder.path == bytes(rootsd_dir / "run")
    assert folder.mcp_socket == bytes(rootsd_dir / "run/pub/mcp.sock")
    assert folder.control_socket == bytes(rootsd_dir / "run/ctl/control.sock")


def test_a_relative_rootsd_dir_is_refused_with_the_line_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROOTSD_DIR", "here")
    with pytest.raises(FolderUnavailable, match="not an absolute path") as caught:
        overriding_folder()
    assert caught.value.remedy.startswith("export ROOTSD_DIR=/")


@pytest.mark.needs("linux")
def test_the_folder_below_home_is_checked_second_and_xdg_variables_change_nothing(
    unset: pytest.MonkeyPatch,
) -> None:
    unset.setenv("HOME", "/home/u/")
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        unset.setenv(name, "/elsewhere")
    below_home = b"/home/u/.local/state/rootsd/run"
    unset.setattr(runtime_dir, "unsafe_reason", lambda _: None)
    assert [folder.path for folder in find_runtime_dirs()] == [
        b"/run/user/%d/rootsd" % os.getuid(), below_home,
    ]  # fmt: skip
    unset.setattr(runtime_dir, "unsafe_reason", lambda _: "belongs to user 7, not to you")
    assert find_runtime_dir().path == below_home
    assert len(find_runtime_dirs()) == 1


def test_macos_has_one_folder(unset: pytest.MonkeyPatch) -> None:
    unset.setattr(sys, "platform", "darwin")
    unset.setenv("HOME", "/Users/u")
    (folder,) = find_runtime_dirs()
    assert folder.path == b"/Users/u/Library/Application Support/rootsd/run"


@pytest.mark.parametrize("home", ["", "relative"])
def test_without_a_usable_home_the_password_database_is_used(
    home: str, unset: pytest.MonkeyPatch
) -> None:
    unset.setenv("HOME", home)
    assert home_folder() == os.fsencode(Path("~" + _own_name()).expanduser())


def _own_name() -> str:
    import pwd  # noqa: PLC0415

    return pwd.getpwuid(os.getuid()).pw_name


def test_without_any_home_the_error_says_what_to_set(unset: pytest.MonkeyPatch) -> None:
    unset.delenv("HOME")
    unset.setattr(os, "getuid", lambda: 3_999_999_999)
    with pytest.raises(FolderUnavailable) as caught:
        home_folder()
    assert caught.value.remedy == "export HOME=/your/home"


def test_only_a_private_folder_of_the_user_is_safe(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").touch()
    assert unsafe_reason(bytes(folder)) is None
    assert unsafe_reason(bytes(tmp_path / "link")) == "is not a folder"
    assert unsafe_reason(bytes(tmp_path / "file")) == "is not a folder"
    assert "No such file" in (unsafe_reason(bytes(tmp_path / "none")) or "")
    for mode in (0o701, 0o710, 0o770, 0o777):
        folder.chmod(mode)
        assert unsafe_reason(bytes(folder)) == "is open to other users"


@pytest.mark.needs("root")
def test_a_folder_of_another_user_is_not_safe(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    assert unsafe_reason(bytes(folder)) == "belongs to user 12345, not to you"


def test_it_imports_no_heavy_module() -> None:
    command = [sys.executable, "-IS", "-c", _lean()]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {"dataclasses", "typing", "json", "pathlib", "asyncio"} & {*loaded.stdout.split()}


def _lean() -> str:
    top = Path(runtime_dir.__file__).parents[2]
    return f"import sys; sys.path.insert(0, {str(top)!r}); {LEAN}"
