"""Lead programs to private copies of a repository's settings, and carry harmless changes over.

Git locks and renames a file of settings, which a mount in its place would forbid. But it follows a
symbolic link. So a link is mounted over `.git/config`, and leads to a copy in a private folder of
the wall. There, programs change what they like. `carried_settings` decides what is written to the
file outside; the rest stays in the copy, and `kept` names it.

If the file outside is replaced, the link goes with it. `cover` then mounts it again, and brings
the new settings into the copy, where programs keep what they changed. A copy is kept while its
root is hidden, and used again if the same git directory comes back.

Programs may put anything in the place of a copy. It is read bounded, no link is followed, and what
they make of it reaches nobody else.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import suppress

from rootsd.wall.git.carried_settings import (
    SPARSE,
    Settings,
    Versions,
    carry_over,
    differing,
    first_sections,
    may_harm,
    named_remotes,
)
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.name_watch import APPEARED, NameEvent, WallWatch
from rootsd.wall.git.protected import SETTINGS
from rootsd.wall.git.settings_file import (
    BadSettings,
    edit_settings,
    list_settings,
    read_file,
    read_open_file,
    replace_content,
    settings_of_user,
)
from rootsd.wall.git.system_git import find_git
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.skeleton import NO_PRIVILEGES, TMPFS, Mounted, Skeleton
from rootsd.wall.system_calls import mount, open_below, open_path

PLACE = b"/run/rootsd-git"
"""Where programs see the copies."""
CONFIG, WORKTREE_CONFIG = SETTINGS
_PER_WORKTREE = b"extensions.worktreeconfig"
_USUAL = (b".git/config", CONFIG)
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_MAX_RENEWALS, _MAX_LOOKS = 3, 4096
_MAX_CARRIED = 32  # keys at once: to remove one takes a call of git
_MAX_NAMED_BYTES = 4096  # programs choose the names
_OTHERS = b"others that git could not read"
_SIZE = b"mode=0700,size=64m,nr_inodes=64k"


class _Copy:
    """The copy of one file of settings.

    `folder` is the git directory outside, or -1 while the root is hidden. `inside` is the folder
    of the copy, and `link` leads there.

    `start` is the file at the start, and `first` has what a person has added since. `equal` is the
    one that the copy was made from, or last carried over to. `seen` is the copy when it was
    compared last, `kept` the keys that stayed in it, and `carried` those that did not. `is_behind`
    says that the file outside may need more, and `is_partly_carried` that it does. `by_others` are
    the keys that changed outside, and that would not have been carried over.
    """

    def __init__(self) -> None:
        self.root = self.path = b""  # one mount may take the place of another one
        self.identity = (0, 0)
        self.folder = self.inside = -1
        self.forget()

    def forget(self) -> None:
        """Let go of the copy."""
        if self.inside >= 0:
            os.close(self.inside)
        self.inside = -1
        self.link = self.start = self.first = self.equal = self.seen = b""
        self.kept: tuple[bytes, ...] = ()
        self.carried: set[bytes] = set()
        self.by_others: set[bytes] = set()
        self.is_behind = self.is_partly_carried = False

    @property
    def name(self) -> bytes:
        """The name of the file."""
        return os.path.basename(self.path)

    def now(self) -> bytes | None:
        """Return the content of the copy; None if programs put something else there."""
        with suppress(OSError):
            return read_file(self.inside, self.name)
        return None

    def hide(self) -> None:
        """Let go of the git directory outside."""
        if self.folder >= 0:
            os.close(self.folder)
            self.folder = -1


class PrivateSettings:
    """The copies of one wall, in its folder `base`."""

    def __init__(self, base: bytes, skeleton: Skeleton, home: bytes, watch: WallWatch) -> None:
        self._names = watch.view(APPEARED | NameEvent.WRITTEN)
        self._base = base + b"/settings"
        self._skeleton = skeleton
        self._home = home
        self._top = -1
        self._copies: dict[bytes, _Copy] = {}  # by the path of the file outside
        self.more = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable if `carry_over` has more to do."""
        self._due: set[bytes] = set()  # copies that `carry_over` has to look at
        self._told: dict[tuple[FactKind, bytes], list[bytes]] = {}  # what `kept` has yielded

    def build(self) -> None:
        """Mount the private folder for the copies, if there is a git. Raises OSError."""
        os.mkdir(self._base, 0o700)
        if find_git() is not None:
            self._skeleton.make_folder(PLACE)
            mount(b"rootsd-git", self._skeleton.root + PLACE, TMPFS, NO_PRIVILEGES, _SIZE)
            self._skeleton.mounted[PLACE] = Mounted.PRIVATE
            self._top = open_path(self._skeleton.root + PLACE, os.O_DIRECTORY)

    def cover(self, tree: int, outside: int, root: bytes, path: bytes) -> None:
        """Mount a link to a copy over a file in the tree of a root. Raises OSError.

        `outside` is the folder of the root, without mounts. What is new there comes into the copy
        with the next `carry_over`, since this must not take long.
        """
        if self._top < 0:
            raise FileNotFoundError(errno.ENOENT, "git is not installed")
        copy = self._copies.setdefault(root + b"/" + path, _Copy())
        copy.root, copy.path = root, path
        self._take(copy, open_below(outside, os.path.dirname(path) or b".", os.O_DIRECTORY))

        def link_to_copy(point: int) -> bytes:
            content = read_open_file(point)
            if copy.now() is None:
                self._make(copy, content)
            return copy.link

        covers.cover(tree, path, link_to_copy)
        self._due.add(root + b"/" + path)
        names = dict.fromkeys((copy.name, WORKTREE_CONFIG), path)
        watched = [(copy.inside, names), (copy.folder, names)]
        self._names.watch(root + b"/" + path, watched)

    def carry_over(self, shown: Collection[bytes]) -> None:
        """Carry over what has changed, also for the last time in roots that are not `shown`.

        A revoke waits meanwhile. So this looks at one copy, and `more` is readable if there are
        others. If no root is shown, it looks at all.
        """
        hidden = (
            place
            for place, copy in self._copies.items()
            if copy.folder >= 0 and copy.root not in shown
        )
        self._due.update(self._names.changed() or (), hidden)
        for _ in range(_MAX_LOOKS):
            if not self._due:
                break
            copy = self._copies[place := self._due.pop()]
            if copy.folder < 0:
                continue
            self._look(copy)
            if copy.is_partly_carried:
                self._due.add(place)
            elif copy.root not in shown:
                self._names.forget(place)
                copy.hide()
            if shown:
                break
        with suppress(BlockingIOError):
            os.eventfd_read(self.more)
        if self._due and shown:
            os.eventfd_write(self.more, 1)

    def _look(self, copy: _Copy) -> None:
        try:
            self._renew(copy, read_file(copy.folder, copy.name))
            self._carry(copy)
        except BadSettings:
            copy.kept = (*(each for each in copy.kept if each != _OTHERS), _OTHERS)
        except OSError as error:  # the file outside is gone, or cannot be written
            if error.errno == errno.EFBIG:
                copy.by_others.add(_OTHERS)

    def kept(self) -> Iterator[Fact]:
        """Yield what is new about settings that programs changed and that stay inside.

        The same for those that changed outside, and that programs may have written there. There is
        one fact about each root. It has no values, because these may be secrets.
        """
        now: dict[tuple[FactKind, bytes], list[bytes]] = {}
        for copy in self._copies.values():
            where = b"" if copy.path in _USUAL else b" in " + copy.path
            named = (FactKind.SETTINGS, copy.kept), (FactKind.NEW_SETTINGS, sorted(copy.by_others))
            for kind, keys in named:
                now.setdefault((kind, copy.root), []).extend(key + where for key in keys)
        for of in {**self._told, **now}:
            keys = now.get(of, [])
            if keys != self._told.get(of, []):
                self._told[of] = keys
                yield Fact(*of, b", ".join(keys)[:_MAX_NAMED_BYTES])

    def _take(self, copy: _Copy, folder: int) -> None:
        """Take the git directory outside, which may be another one than before."""
        found = os.fstat(folder)
        copy.hide()
        copy.folder = folder
        if copy.identity != (found.st_dev, found.st_ino):
            copy.forget()
        copy.identity = found.st_dev, found.st_ino

    def _make(self, copy: _Copy, content: bytes) -> None:
        """Make a copy, and a link to it. Raises OSError.

        If programs removed an earlier one, what they have added since is still not the person's.
        """
        start, first, carried = copy.start, copy.first, copy.carried
        copy.forget()
        name = os.urandom(8).hex().encode()
        os.mkdir(name, 0o700, dir_fd=self._top)
        inside = open_below(self._top, name, os.O_DIRECTORY)
        with open(os.open(copy.name, _NEW, 0o600, dir_fd=inside), "wb") as file:
            file.write(content)
        copy.inside = inside
        copy.equal = copy.seen = content
        copy.start, copy.first, copy.carried = start or content, first or content, carried
        copy.link = self._base + b"/" + name
        os.symlink(b"/".join((PLACE, name, copy.name)), copy.link)

    def _renew(self, copy: _Copy, newer: bytes) -> None:
        """Bring what has changed outside into the copy, unless git inside has locked it.

        Raises BadSettings if git cannot read what is outside: an editor may write it just now.
        """
        if newer == copy.equal:
            return
        start, now = list_settings(copy.start), list_settings(newer)
        refused = carry_over(Versions(start, start, start, now)).kept
        copy.by_others = {key for key in refused if key in now and may_harm(key)}
        for _ in range(_MAX_RENEWALS):  # git inside may write meanwhile
            content, text = copy.now() or b"", newer
            with suppress(OSError, BadSettings):
                text = self._merged(copy, newer, content)
            with suppress(OSError):
                if replace_content(copy.inside, copy.name, content, text):
                    copy.equal, copy.seen = newer, text
                    copy.is_behind = True
                    return

    def _merged(self, copy: _Copy, newer: bytes, content: bytes) -> bytes:
        """Return what is outside now, with what differs in the copy. Raises OSError, BadSettings.

        While the file outside had no cover, git inside may have read that and written the copy,
        which then lacks all that differed before. So that counts, too.
        """
        texts = copy.equal, copy.seen, content, newer
        equal, seen, inside, outside = map(list_settings, texts)
        changes = {key: seen.get(key, ()) for key in differing(equal, seen)}
        for key in differing(seen, inside):
            if inside.get(key) != outside.get(key):
                changes[key] = inside.get(key, ())
        by_others = [
            key
            for key in differing(equal, outside)
            if key not in copy.carried or outside.get(key) not in (inside.get(key), seen.get(key))
        ]
        copy.carried.difference_update(by_others)
        # Not remotes: a program behind another wall may have added one.
        later = (key for key in by_others if key in outside and not key.startswith(b"remote."))
        of_person = {key: outside[key] for key in later}
        copy.first = edit_settings(copy.first, of_person, self._base)
        return edit_settings(newer, changes, self._base)

    def _carry(self, copy: _Copy) -> None:
        """Change the file outside as its copy allows. Raises OSError and BadSettings."""
        content, copy.is_partly_carried = copy.now(), False
        is_seen = content == copy.seen and not copy.is_behind
        if content is None or (is_seen and not _sets_worktrees_apart(content)):
            return
        outside = read_file(copy.folder, copy.name)
        texts = copy.first, copy.equal, outside, content
        first, equal, now, inside = map(list_settings, texts)
        copy.seen, copy.is_behind = content, True
        versions = Versions(first, equal, now, inside, carried=frozenset(copy.carried))
        versions = versions._replace(inside=self._with_sparse(copy, versions))
        if any(key.startswith(b"remote.") for key in differing(versions.equal, versions.inside)):
            named = named_remotes(settings_of_user(self._home))
            versions = versions._replace(named=frozenset(named))
        changes, kept = carry_over(versions)
        part = first_sections(changes, _MAX_CARRIED)
        copy.kept = tuple(sorted((*kept, *changes)))
        if part:
            text = edit_settings(outside, part, self._base)
            if not replace_content(copy.folder, copy.name, outside, text):
                return  # git outside writes at this moment
            copy.carried |= part.keys()
            copy.carried -= {key for key, values in part.items() if not values}
            if outside == copy.equal:
                copy.equal = text
        copy.is_partly_carried = len(part) < len(changes)
        if not copy.is_partly_carried:
            copy.kept, copy.is_behind = kept, False

    def _with_sparse(self, copy: _Copy, versions: Versions) -> Settings:
        """Return the settings inside, with those of a sparse checkout that git keeps apart.

        Inside, git lets each worktree have settings, and sets these there. Outside, it does not
        look there.
        """
        inside = versions.inside
        if copy.name != CONFIG or _PER_WORKTREE in versions.outside or _PER_WORKTREE not in inside:
            return inside
        other = self._copies.get(b"/".join((copy.root, copy.path)) + b".worktree")
        apart: Settings = {}
        with suppress(OSError, BadSettings):
            text = read_file(copy.folder, WORKTREE_CONFIG) if other is None else other.now()
            apart = list_settings(text or b"")
        return {**inside, **{key: apart[key] for key in SPARSE if key in apart}}


def _sets_worktrees_apart(content: bytes) -> bool:
    """Return whether settings may be in another file, which has changed."""
    return b"worktreeconfig" in content.lower()
