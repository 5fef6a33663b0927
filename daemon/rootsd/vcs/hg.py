"""Mercurial. Source: hgrc(5), and traces of hg 6.3 at random moments of a clone."""

from __future__ import annotations

import os

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import (
    NOTE_CAP,
    REF_CAP,
    is_folder_no_follow,
    list_names,
    read_small,
)
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder, first_match
from rootsd.vcs.stages import Stage

_ID_SIZE = 20
HG_TEMPORARY_FILES = TemporaryFiles(frozenset((b"wlock", b"lock", b"updatestate")))


class Mercurial(MarkedVcs):
    """A Mercurial checkout. The last step of `hg clone` records the checked-out commit."""

    kind = ProjectKind.HG
    temporary_files = HG_TEMPORARY_FILES
    progress = (b"/.hg", b"/.hg/store")

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the locks and the recorded commit."""
        return hg_stage(data_folder(path + b"/.hg"))

    def origin(self, path: bytes) -> bytes | None:
        """Return the default path in `.hg/hgrc`."""
        return first_match(path + b"/.hg/hgrc", rb"default[ \t]*=[ \t]*(.+)")

    def branch(self, path: bytes) -> bytes | None:
        """Return the named branch of the working folder."""
        return (read_small(path + b"/.hg/branch", REF_CAP) or b"default").strip()


def hg_stage(data: bytes) -> Stage | None:
    """Return the stage of a checkout from its data folder, `.hg` or `.sl`."""
    names = list_names(data)
    store_folder = _store_of(data, names)
    if b"requires" not in names or store_folder is None:
        return Stage.STARTING
    store = list_names(store_folder)
    is_locked = not names.isdisjoint((b"wlock", b"updatestate"))
    is_locked = is_locked or not store.isdisjoint((b"lock", b"journal"))
    if _checked_out_commit(data):
        return Stage.IN_USE if is_locked else None
    if b"journal" in store:
        return Stage.FETCHING
    return Stage.CHECKOUT_LOCKED if is_locked else Stage.HG_NO_PARENT


def _store_of(data: bytes, names: frozenset[bytes]) -> bytes | None:
    """Return the folder with the history, or None.

    A share (hgext/share.py) has it in the `.hg` of another checkout. A repository without the
    requirement "store" (hg help config.format) has no folder of its own for it.
    """
    if b"sharedpath" in names:
        text = (read_small(data + b"/sharedpath", REF_CAP) or b"").rstrip(b"\r\n")
        store = data_folder(os.path.join(data, text, b"store")) if text else data
        return store if is_folder_no_follow(store) else None
    if b"store" in names:
        return data_folder(data + b"/store")
    requires = (read_small(data + b"/requires", REF_CAP) or b"").split()
    has_store = not requires or not {b"store", b"share-safe"}.isdisjoint(requires)
    return None if has_store else data


def _checked_out_commit(data: bytes) -> bytes:
    """Return the binary id of the checked-out commit; empty if there is none."""
    text = read_small(data + b"/dirstate", NOTE_CAP) or b""
    return text.removeprefix(b"dirstate-v2\n")[:_ID_SIZE].strip(b"\0")
