"""Find a repository's git directories, and tell in which stage of its creation it is.

This module does not run git, follows no includes, and trusts no paths in git data. It follows a
`.git` that is a file or a link once (`rootsd.disk.git_pointer`). A worktree counts as linked only
if its repository links back to it.

A git directory may borrow its objects, refs, and settings: git-new-workdir and the repo tool make
links to those of another repository. `GitRepository` follows such a link, but only to find the
stage. Nothing that lies behind it is ever shown.

Sources: gitrepository-layout(5), git-worktree(1), and traces of the order in which git writes.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import NamedTuple

from rootsd.core.model import ProjectKind
from rootsd.core.paths import ancestors
from rootsd.disk.git_pointer import find_git_directory
from rootsd.disk.git_settings import worktree_setting
from rootsd.disk.hung_mounts import follow
from rootsd.disk.reader import (
    CONFIG_CAP,
    NOTE_CAP,
    REF_CAP,
    OpenFolder,
    file_contains,
    list_names,
    read_small,
)
from rootsd.processes.activity import runs_program
from rootsd.vcs.git.checkouts import remember_checkout, separate_checkout
from rootsd.vcs.stages import Stage

GIT_LOCK_FILES = frozenset(
    b"index.lock HEAD.lock config.lock packed-refs.lock shallow.lock".split()
)
GIT_STATE_FILES = GIT_LOCK_FILES | frozenset(
    b"HEAD index config packed-refs locked gitdir".split()
)
TEMPORARY_PACK_PREFIXES = (b"tmp_pack_", b"tmp_idx_", b"pack_git2_")

_GIT_KINDS = frozenset(
    (ProjectKind.GIT, ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE, ProjectKind.GIT_BARE)
)
_OBJECT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\s*$")
REMOTE_SECTION = re.compile(rb"^[ \t]*\[remote ", re.MULTILINE)
_FETCH = re.compile(rb"^[ \t]*fetch[ \t]*=", re.MULTILINE)
_BARE = re.compile(rb"^[ \t]*bare[ \t]*=[ \t]*true", re.MULTILINE | re.IGNORECASE)
_KEEP = re.compile(rb"(?:fetch|receive|index)-pack (\d+) on (.*)")
_MARKER, _PACKED_REFS = b".git", b"packed-refs"
_GIT_PROGRAM = b"git"
_MAX_LEVELS_ABOVE = 4
_BRANCH_PREFIX = b"refs/heads/"
_HOST = os.uname().nodename.encode()


# A named tuple, because a scan creates one for each repository.
class GitDirs(NamedTuple):
    """The directories with the data of a repository.

    `folder` contains HEAD and the index; `common` contains objects and refs. They differ only for
    a linked worktree. `main_checkout` is set if the repository links back to the worktree.
    """

    work: bytes
    folder: bytes
    common: bytes
    kind: ProjectKind
    main_checkout: bytes | None = None


def is_git(kind: ProjectKind) -> bool:
    """Return whether this is a kind of git repository."""
    return kind in _GIT_KINDS


class GitRepository:
    """The git directories of one project, open during one check, and the names in `folder`.

    Close it soon. In a bare repository, `work` and `folder` are the same open folder.
    """

    __slots__ = ("common", "dirs", "folder", "is_own", "names", "work")

    def __init__(
        self, dirs: GitDirs, work: OpenFolder, folder: OpenFolder, *, is_own: bool = False
    ) -> None:
        self.dirs = dirs
        # Whether the git directory is the folder `.git` in the checkout.
        self.is_own = is_own
        self.work = work
        self.folder = folder
        self.common = folder if dirs.common == dirs.folder else OpenFolder(dirs.common)
        self.names = folder.names()

    @property
    def is_bare(self) -> bool:
        """Whether it has no checkout."""
        return self.dirs.kind is ProjectKind.GIT_BARE

    def read_shared(self, name: bytes, cap: int) -> bytes | None:
        """Read a file in the common directory, which may have borrowed it by a link."""
        if (data := self.common.read(name, cap)) is not None:
            return data
        borrowed = self._borrowed(name)
        return None if borrowed is None else read_small(borrowed, cap)

    def names_in_shared(self, name: bytes) -> frozenset[bytes]:
        """Return the names in a folder of the common directory, which may be borrowed."""
        if (names := self.common.names_in(name)) or (borrowed := self._borrowed(name)) is None:
            return names
        return list_names(borrowed)

    def packs_ref(self, ref: bytes) -> bool:
        """Return whether the packed refs have `ref`. A mirror may have megabytes of them."""
        line = b" " + ref + b"\n"
        path = self._borrowed(_PACKED_REFS) or self.common.path + b"/" + _PACKED_REFS
        return file_contains(path, line)

    def _borrowed(self, name: bytes) -> bytes | None:
        """Return the real path of a name whose first component is a link, or None."""
        top, slash, rest = name.partition(b"/")
        try:
            target = os.readlink(top, dir_fd=self.common.fd) if self.common.fd >= 0 else b""
            real = follow(os.path.join(self.common.path, target)) if target else None
        except OSError:
            return None
        return None if real is None else real + slash + rest

    def close(self) -> None:
        """Close the git directories, but not the folder of the project."""
        for each in (self.folder, self.common):
            if each is not self.work:
                each.close()


def open_repository(work: OpenFolder) -> GitRepository | None:
    """Open the directories that the `.git` of an open folder leads to. Return None without any."""
    folder = work.folder(_MARKER)
    if folder.failure is None:
        return GitRepository(_embedded_git_dirs(work.path), work, folder, is_own=True)
    dirs = _find_git_dirs_in(work)
    if dirs is None:
        return None
    return GitRepository(dirs, work, OpenFolder(dirs.folder))


def open_bare_repository(folder: OpenFolder) -> GitRepository:
    """Open a folder as a bare repository."""
    return GitRepository(bare_git_dirs(folder.path), folder, folder)


def find_git_dirs(work: bytes) -> GitDirs | None:
    """Return the directories that the `.git` of the folder `work` leads to, or None."""
    with OpenFolder(work) as folder:
        return _find_git_dirs_in(folder)


def _find_git_dirs_in(opened: OpenFolder) -> GitDirs | None:
    """Return the directories that the `.git` of an open folder leads to, or None."""
    work = opened.path
    if opened.is_folder(_MARKER):
        return _embedded_git_dirs(work)
    try:
        folder = None if opened.failure else find_git_directory(work, opened.fd, follow)
        if folder is None:
            return None
        common_text = read_small(folder + b"/commondir", REF_CAP)
        common = folder if common_text is None else _followed(folder, common_text)
    except OSError:
        return None
    if common_text is not None:
        main = _main_checkout(work, folder, common)
        return GitDirs(work, folder, common, ProjectKind.GIT_WORKTREE, main)
    config = read_small(folder + b"/config", CONFIG_CAP) or b""
    is_module = b"/modules/" in folder and worktree_setting(config) is not None
    kind = ProjectKind.GIT_SUBMODULE if is_module else ProjectKind.GIT
    if not is_module and not folder.startswith(work + b"/"):
        remember_checkout(work, folder)
    return GitDirs(work, folder, folder, kind)


def _followed(base: bytes, text: bytes) -> bytes:
    """Return the real path that a line of git data in the folder `base` names.

    Raises OSError if it could hang, or if the line is no path.
    """
    return follow(os.path.join(base, text.rstrip(b"\r\n")))


def _embedded_git_dirs(work: bytes) -> GitDirs:
    marker = work + b"/" + _MARKER
    return GitDirs(work, marker, marker, ProjectKind.GIT)


def git_dir_links_back(dirs: GitDirs) -> bool:
    """Return whether the git directory is inside the checkout, or links back to it.

    The git directory of a worktree or a submodule links back. After `git init --separate-git-dir`,
    `separate_checkout` proves as much. Nothing links back to a folder that claims the git
    directory of another repository.
    """
    if dirs.folder == dirs.work or dirs.folder.startswith(dirs.work + b"/"):
        return True
    if dirs.kind is ProjectKind.GIT_WORKTREE:
        return dirs.main_checkout is not None
    config = read_small(dirs.folder + b"/config", CONFIG_CAP) or b""
    named = worktree_setting(config)
    if named is None:
        return separate_checkout(dirs.folder) == dirs.work
    return _leads_to(dirs.folder, named, dirs.work)


def _leads_to(base: bytes, text: bytes, place: bytes) -> bool:
    try:
        return _followed(base, text) == place
    except OSError:
        return False


def bare_git_dirs(folder: bytes) -> GitDirs:
    """Return the git directories of a bare repository."""
    return GitDirs(folder, folder, folder, ProjectKind.GIT_BARE)


def _main_checkout(work: bytes, folder: bytes, common: bytes) -> bytes | None:
    """Return the repository of the worktree at `work`, or None if it does not link back.

    `folder` and `common` are real paths. So a link can neither lead to the entry of another
    repository unseen, nor give the repository a second name.
    """
    if os.path.dirname(folder) != common + b"/worktrees":
        return None
    back, name = os.path.split((read_small(folder + b"/gitdir", REF_CAP) or b"").rstrip(b"\r\n"))
    if name != _MARKER or not _leads_to(folder, back, work):
        return None
    return _checkout_with(common)


def _checkout_with(common: bytes) -> bytes:
    """Return the checkout to which a repository belongs, or the repository itself.

    Usually its name is `.git`. Otherwise, the `.git` of the checkout leads to it, and it lies in
    the checkout, as in a container with `.bare`, or its setting `core.worktree` leads back, or
    `separate_checkout` proves it. A `.git` file alone proves nothing: anybody can write one.
    """
    if os.path.basename(common) == _MARKER:
        return os.path.dirname(common)
    config = read_small(common + b"/config", CONFIG_CAP) or b""
    setting = worktree_setting(config)
    above = islice(ancestors(common), _MAX_LEVELS_ABOVE)
    try:
        named = [] if setting is None else [_followed(common, setting)]
        for checkout in (*above, *named):
            if find_git_directory(checkout, follow=follow) == common:
                return checkout
    except OSError:
        pass
    return (None if named else separate_checkout(common)) or common


def git_stage(repository: GitRepository) -> Stage | None:
    """Return the stage of a repository, or None if it is complete. Takes about 20 us."""
    folder, entries = repository.folder, repository.names
    head = _read_head(folder)
    if not head or entries.isdisjoint((b"objects", b"commondir")):
        return Stage.NO_HEAD
    resolved = _resolves(head, repository)
    bare = repository.is_bare or (b"index" not in entries and _says_bare(repository))
    whole = resolved and (bare or b"index" in entries)
    if (locked := _lock_stage(repository, resolved=resolved, whole=whole)) is not None:
        return locked
    if whole and not bare:
        return None
    packs = repository.names_in_shared(b"objects/pack")
    # A complete repository may still have files of a killed fetch.
    fetching = _fetch_stage(repository, packs, was_whole=whole)
    if fetching is not None or whole:
        return fetching
    if resolved:
        empty = repository.work.names() <= {_MARKER}
        return Stage.NOT_CHECKED_OUT if empty else Stage.FILES_BEFORE_INDEX
    if b"index" in entries:
        return Stage.STAGED_UNBORN
    nothing_fetched = not packs and _PACKED_REFS not in entries
    return _unborn_stage(head, repository, nothing_fetched=nothing_fetched)


def _lock_stage(repository: GitRepository, *, resolved: bool, whole: bool) -> Stage | None:
    """Return the stage of a repository that git has locked, or None."""
    folder, entries = repository.folder, repository.names
    if not GIT_LOCK_FILES.isdisjoint(entries):
        if whole:
            return Stage.IN_USE
        return Stage.CHECKOUT_LOCKED if resolved else Stage.LOCKED
    if b"commondir" not in entries or b"locked" not in entries:
        return None
    # Any other text is the reason that a person gave to `git worktree lock`.
    if (folder.read(b"locked", NOTE_CAP) or b"").rstrip(b"\r\n") != b"initializing":
        return None
    return Stage.IN_USE if whole else Stage.WORKTREE_STARTING


def _says_bare(repository: GitRepository) -> bool:
    """Return whether the configuration says that the repository is bare, but has worktrees."""
    config = repository.folder.read(b"config", CONFIG_CAP)
    if config is None and repository.folder is repository.common:
        config = repository.read_shared(b"config", CONFIG_CAP)
    return _BARE.search(config or b"") is not None


def _fetch_stage(
    repository: GitRepository, packs: frozenset[bytes], *, was_whole: bool
) -> Stage | None:
    if not was_whole and any(name.startswith(TEMPORARY_PACK_PREFIXES) for name in packs):
        return Stage.FETCHING
    for name in packs:
        if not name.endswith(b".keep"):
            continue
        note = repository.read_shared(b"objects/pack/" + name, NOTE_CAP) or b""
        found = _KEEP.match(note)
        if found is None or found[2].strip() != _HOST:
            continue
        # The process may have ended long ago, and another one may have its number.
        if runs_program(found[1], _GIT_PROGRAM):
            return Stage.KEPT_BY_LIVE
        if not was_whole:
            return Stage.KEPT_BY_DEAD
    return None


def _unborn_stage(
    head: bytes, repository: GitRepository, *, nothing_fetched: bool
) -> Stage | None:
    config = repository.read_shared(b"config", CONFIG_CAP) or b""
    branch = head.removeprefix(b"ref: ").removeprefix(_BRANCH_PREFIX)
    if nothing_fetched and head.startswith(b"ref: " + _BRANCH_PREFIX):
        # A clone of an empty repository writes this setting last.
        section = rb'^[ \t]*\[branch "' + re.escape(branch) + rb'"\][^\[]*^[ \t]*merge[ \t]*='
        if re.search(section, config, re.MULTILINE):
            return None
    if not REMOTE_SECTION.search(config):
        return Stage.UNBORN
    # A killed `git clone` leaves an empty folder. A person who adds a remote usually has files.
    if not repository.is_bare and not repository.work.names() <= {_MARKER}:
        return Stage.REMOTE_ALONE
    if repository.is_bare and _PACKED_REFS in repository.names:
        # git has written all refs. If HEAD of the remote names one of them, HEAD follows at once.
        return Stage.HEAD_WITHOUT_BRANCH
    return Stage.NEGOTIATING if _FETCH.search(config) else Stage.CONNECTING


def _read_head(folder: OpenFolder) -> bytes:
    text = folder.read(b"HEAD", REF_CAP)
    if text is not None:
        return text.strip()
    try:
        # In old repositories, HEAD is a symbolic link to the branch.
        return b"ref: " + os.readlink(b"HEAD", dir_fd=folder.fd)
    except OSError:
        return b""


def _resolves(head: bytes, repository: GitRepository) -> bool:
    if not head.startswith(b"ref: "):
        return _OBJECT_ID.match(head) is not None
    ref = head.removeprefix(b"ref: ").strip()
    if not ref.startswith(b"refs/") or b".." in ref or b"\0" in ref:
        return False
    if b"reftable" in repository.names:
        return bool(repository.folder.read(b"reftable/tables.list", REF_CAP))
    loose = repository.read_shared(ref, NOTE_CAP) or b""
    return _OBJECT_ID.match(loose) is not None or repository.packs_ref(ref)
