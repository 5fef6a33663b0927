"""Make the folders of a settings file that its client has not made yet, and remove them again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rootsd.files.private_files import FOLDER_MODE, display_path
from rootsd.settings.settings_file import SettingsUnusable


def make_folders(folder: Path) -> tuple[str, ...]:
    """Make the missing folders for a file, and return them, the outermost one first."""
    if os.path.lexists(folder):
        return ()
    outer = make_folders(folder.parent)
    try:
        folder.mkdir(FOLDER_MODE)
    except OSError as error:
        why = error.strerror or str(error)
        shown = display_path(folder)
        raise SettingsUnusable(f"{shown} cannot be made: {why}", f"ls -ld {shown}") from error
    return (*outer, str(folder))


def remove_folders(made: Sequence[str]) -> None:
    """Remove the folders that were made, as far as they are empty."""
    with suppress(OSError):
        for folder in reversed(made):
            os.rmdir(folder)
