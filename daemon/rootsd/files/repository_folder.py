"""Tell whether a folder is a repository, by the names in it alone.

This is for questions to a person: about a settings file in a repository, and about folders to
watch. Discovery does not use it, because a project needs more than a name; see `rootsd.vcs`.
"""

from __future__ import annotations

import os
from pathlib import Path

from rootsd.core.project_kind import VCS_NAMES

REPOSITORY_MARKERS = frozenset(map(os.fsdecode, VCS_NAMES))
"""The names that version control systems give to their files and folders."""


def is_repository(folder: Path) -> bool:
    """Return whether a version control system has a file, or a folder with something, here.

    The sandbox of Codex leaves empty `.git` folders where its commands may write, such as /tmp.
    """
    return any(_is_filled(folder / name) for name in REPOSITORY_MARKERS)


def repository_around(folder: Path) -> Path | None:
    """Return the innermost repository that is or contains `folder`, or None."""
    return next((path for path in (folder, *folder.parents) if is_repository(path)), None)


def _is_filled(marker: Path) -> bool:
    try:
        with os.scandir(marker) as entries:
            return any(entries)
    except OSError:
        return marker.exists()
