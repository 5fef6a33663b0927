"""Tell which file events show that a VCS works on a repository."""

from __future__ import annotations

from rootsd.vcs.git.repository import GIT_STATE_FILES, TEMPORARY_PACK_PREFIXES
from rootsd.watch.events import FileEvent, FileEventKind

# Of Mercurial, Sapling and Breezy; those of git end in `.lock`.
_LOCK_NAMES = frozenset(b"wlock lock held limbo updatestate".split())
_TEMPORARY_SUFFIXES = (b".lock", b"-journal", b"-0")
_TEMPORARY_PREFIXES = (b"tmp_pack", *TEMPORARY_PACK_PREFIXES)


def is_vcs_temporary_file(name: bytes) -> bool:
    """Whether only a tool at work makes a file of this name; a copy hardly ever has one."""
    return (
        name in _LOCK_NAMES
        or name.endswith(_TEMPORARY_SUFFIXES)
        or name.startswith(_TEMPORARY_PREFIXES)
    )


def is_significant_event(happening: FileEvent) -> bool:
    """Whether a change can end a stage: a rename into place, a lock that goes, a new index, or
    that a `.git` file is written, which was read while it was empty."""
    name = happening.name
    if not name:
        return True
    if name == b".git":
        return happening.change is FileEventKind.ALTERED
    if (
        name not in GIT_STATE_FILES
        and not name.endswith(b".keep")
        and not is_vcs_temporary_file(name)
    ):
        return False
    if happening.change is FileEventKind.LEFT or happening.moved:
        return True
    return happening.change is FileEventKind.CAME and name == b"index"
