"""Which names, coming and going inside a repository, tell that a tool is at work on it."""

from __future__ import annotations

from rootsd.host.vcs.gitdir import SIGNS, TEMPORARY
from rootsd.host.watch.events import Change, Happening

# Of Mercurial, Sapling and Breezy; those of git end in `.lock`.
_LOCKS = frozenset(b"wlock lock held limbo updatestate".split())
_MAKERS_ENDINGS = (b".lock", b"-journal", b"-0")
_MAKERS_BEGINNINGS = (b"tmp_pack", *TEMPORARY)


def is_trace_of_a_maker(name: bytes) -> bool:
    """Whether only a tool at work makes a file of this name; a copy hardly ever has one."""
    return name in _LOCKS or name.endswith(_MAKERS_ENDINGS) or name.startswith(_MAKERS_BEGINNINGS)


def is_telling(happening: Happening) -> bool:
    """Whether a change can end a stage: a rename into place, a lock that goes, a new index, or
    that a `.git` file is written, which was read while it was empty."""
    name = happening.name
    if not name:
        return True
    if name == b".git":
        return happening.change is Change.ALTERED
    if name not in SIGNS and not name.endswith(b".keep") and not is_trace_of_a_maker(name):
        return False
    if happening.change is Change.LEFT or happening.moved:
        return True
    return happening.change is Change.CAME and name == b"index"
