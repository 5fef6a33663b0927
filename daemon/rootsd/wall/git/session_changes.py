"""Follow, in the warden, what programs behind the wall make in the git directories of their roots.

`note` is called before programs see a root, and `drop_all_but` after roots were taken away.
inotify names folders of git directories in which something appeared, and `attend` looks there for
links and for files that git obeys. It also names files in the work tree that tools run. So
`rootsd status` can tell early. Only the look at the end is complete: inotify loses events, and
does not know folders that are new.

A failure to note something never stops a change of the roots.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import chain, islice

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    DesiredMount,
)
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.git.facts import Fact, find_links, find_obeyed, find_tool_files, folders_of
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.name_watch import ANY_NAME, APPEARED, NameEvent, WallWatch
from rootsd.wall.git.named_files import NamedFiles
from rootsd.wall.git.private_worktrees import find_private_worktrees
from rootsd.wall.git.session_baseline import SessionBaseline
from rootsd.wall.git.tool_files import tool_folders
from rootsd.wall.system_calls import closing, open_path

_MAX_WATCHED_FOLDERS = 256
_MAX_ENTRIES, _MAX_FACTS = 4096, 256
_WORK_TREE = b"/"  # added to the path of a root: the folders outside its git directories
_EVENTS = APPEARED | NameEvent.WRITTEN | NameEvent.ATTRIBUTES  # a hook becomes one with its mode


class SessionChanges:
    """The changes of one session. `folder` is the private folder of its wall."""

    def __init__(self, folder: bytes, protection: ProtectionPolicy, watch: WallWatch) -> None:
        self._folder = folder
        self._record = SessionBaseline(folder, protection, watch)
        self._names = watch.view(_EVENTS)
        self._watched: dict[bytes, tuple[bytes, ...]] = {}  # git directories by root
        self._shown: dict[bytes, Access] = {}

    def unknown(self, desired: Mapping[bytes, DesiredMount]) -> frozenset[bytes]:
        """Return the writable roots in `desired` that programs did not see yet."""
        writable = {path for path, mount in desired.items() if mount.access is Access.READ_WRITE}
        return frozenset(writable - self._record.roots.keys())

    def note(self, new: Collection[bytes]) -> None:
        """Note the facts about roots that programs are about to see."""
        if new:
            with suppress(OSError):
                self._record.add(sorted(new))
            for root in new:
                self._watch(root)

    def wait_listed(self) -> None:
        """Wait a moment until the files of new roots are listed. Then programs may see these."""
        self._record.wait_listed()

    def drop_all_but(self, shown: Collection[bytes]) -> None:
        """Look for the last time at the roots that are not shown any more."""
        gone = [root for root in self._record.roots if root not in shown]
        if gone:
            with suppress(OSError):
                self._record.drop(gone)
            for root in gone:
                for common in self._watched.pop(root, ()):
                    self._names.forget(common)
                self._names.forget(root + _WORK_TREE)

    def attend(self) -> tuple[str, ...]:
        """Keep what is harmful in folders in which something appeared.

        Return the names of new or changed files that run outside; see `SessionBaseline.names_of`.
        """
        changed = self._names.changed()
        if not changed:
            return ()
        known = frozenset(self._record.found)
        for watched, folders in changed.items():
            # Bounded, because a revoke waits while this runs.
            with suppress(OSError):
                if watched.endswith(_WORK_TREE):
                    with closing(open_path(watched, os.O_DIRECTORY)) as root:
                        tool_files = find_tool_files(root, watched.removesuffix(_WORK_TREE))
                        self._record.keep(islice(tool_files, _MAX_FACTS))
                    self._watch_tool_files(watched.removesuffix(_WORK_TREE))
                else:
                    found = chain(find_links(watched, folders, _MAX_ENTRIES), find_obeyed(watched))
                    self._record.keep(islice(found, _MAX_FACTS))
                    worktrees = find_private_worktrees(self._folder, [watched])
                    self._record.keep(islice(worktrees, _MAX_FACTS))
        return self._record.names_of(each for each in self._record.found if each not in known)

    def keep(self, facts: Iterable[Fact]) -> None:
        """Keep facts that come from elsewhere."""
        with suppress(OSError):
            self._record.keep(facts)

    def begin(self, owner: int) -> None:
        """Note in the journal that programs of a front may run from now on."""
        from rootsd.wall.git.session_record import begin_journal  # noqa: PLC0415 - no start

        begin_journal(self._folder, owner)
        if not self._record.roots:
            with suppress(OSError):  # a kill of a session without writable roots is reported, too
                self._record.add(())

    def note_roots(self, shown: Mapping[bytes, Access]) -> None:
        """Note in the journal which roots programs see now."""
        from rootsd.wall.git.session_record import note_roots  # noqa: PLC0415 - no start

        if shown != self._shown:
            note_roots(self._folder, self._shown, shown)
            self._shown = dict(shown)

    def conclude(self) -> list[str]:
        """Make the report, after all programs have ended or lost their roots.

        Return what people need to know about changed files.
        """
        with suppress(OSError):
            self._record.conclude(SessionEnd.ORDERLY)
        return self._record.lines

    def _watch_tool_files(self, root: bytes, named: NamedFiles | None = None) -> None:
        """Watch the files that tools run, and the folders in which they are or may appear.

        `named` is as for `tool_names`.
        """
        with closing(open_path(root, os.O_DIRECTORY)) as opened:
            found = islice(tool_folders(opened, root, named).items(), _MAX_WATCHED_FOLDERS)
            wanted = {folder: dict.fromkeys(names, folder) for folder, names in found}
            self._names.watch_below(root + _WORK_TREE, opened, wanted)

    def _watch(self, root: bytes) -> None:
        with suppress(OSError):
            self._watch_tool_files(root, self._record.named_for(root))
        known = self._record.roots.get(root)
        self._watched[root] = () if known is None else known.repositories
        for common in self._watched[root]:
            found = islice(folders_of(common), _MAX_WATCHED_FOLDERS)
            wanted = {folder: {ANY_NAME: folder} for folder in found}
            with suppress(OSError), closing(open_path(common, os.O_DIRECTORY)) as opened:
                self._names.watch_below(common, opened, wanted)
