"""Tell which file events show that a VCS works on a repository."""

from __future__ import annotations

from rootsd.vcs.git.repository import GIT_STATE_FILES
from rootsd.vcs.registry import is_vcs_temporary_file
from rootsd.watch.events import FileEvent, FileEventKind


def is_significant_event(event: FileEvent) -> bool:
    """Return whether a change can end a stage.

    Such changes are a rename into place, a removed lock, a new index, and a `.git` file that was
    read while it was empty and is written now.
    """
    name = event.name
    if not name:
        return True
    if name == b".git":
        return event.change is FileEventKind.ALTERED
    if (
        name not in GIT_STATE_FILES
        and not name.endswith(b".keep")
        and not is_vcs_temporary_file(name)
    ):
        return False
    if event.change is FileEventKind.LEFT or event.moved:
        return True
    return event.change is FileEventKind.CAME and name == b"index"
