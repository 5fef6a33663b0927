"""Jujutsu. Source: traces of jj 0.46 at random moments of a clone."""

from __future__ import annotations

import os

from rootsd.core.model import ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import (
    CONFIG_CAP,
    REF_CAP,
    exists_no_follow,
    file_contains,
    is_folder_no_follow,
    list_names,
    read_small,
    resolve_path,
)
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder
from rootsd.vcs.git.config import git_origin
from rootsd.vcs.git.repository import (
    REMOTE_SECTION,
    TEMPORARY_PACK_PREFIXES,
    GitDirs,
    bare_git_dirs,
    find_git_dirs,
)
from rootsd.vcs.stages import Stage


class Jujutsu(MarkedVcs):
    """A Jujutsu workspace. Its history is usually in a git repository, inside it or beside it."""

    kind = ProjectKind.JJ
    temporary_files = TemporaryFiles(prefixes=TEMPORARY_PACK_PREFIXES, suffixes=(b".lock",))
    progress = (b"/.jj/repo", b"/.jj/working_copy")

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage. It is never None, because jj holds no lock while it fetches."""
        jj = data_folder(path + b"/.jj")
        repo = _repository(jj)
        if repo is None or not exists_no_follow(repo + b"/store/type"):
            return Stage.STARTING
        working = list_names(jj + b"/working_copy")
        if b"checkout" not in working or b"working_copy.lock" in working:
            return Stage.STARTING
        if exists_no_follow(repo + b"/git_import_export.lock"):
            return Stage.STARTING
        target = read_small(repo + b"/store/git_target", REF_CAP)
        if not target:
            return Stage.JJ
        git = data_folder(os.path.join(repo, b"store", target.strip()))
        return _git_store_stage(path, git) if is_folder_no_follow(git) else Stage.STARTING

    def git_dirs(self, path: bytes) -> GitDirs | None:
        """Return the git directories beside `.jj`, or else those of the store."""
        if exists_no_follow(path + b"/.git"):
            return find_git_dirs(path)
        store = path + b"/.jj/repo/store"
        text = read_small(store + b"/git_target", REF_CAP)
        target = resolve_path(store, text.strip()) if text else None
        return bare_git_dirs(target) if target is not None and may_follow(target) else None

    def origin(self, path: bytes) -> bytes | None:
        """Return the remote of the git repository."""
        dirs = self.git_dirs(path)
        return git_origin(dirs) if dirs is not None else None


def _repository(jj: bytes) -> bytes | None:
    """Return the folder with the history from the data folder `.jj`, or None.

    In a second workspace, `.jj/repo` is a file that names the folder of the first workspace.
    """
    repo = data_folder(jj + b"/repo")
    if is_folder_no_follow(repo):
        return repo
    text = read_small(repo, REF_CAP)
    named = data_folder(os.path.join(jj, text.strip())) if text else None
    return named if named is not None and is_folder_no_follow(named) else None


def _git_store_stage(path: bytes, git: bytes) -> Stage:
    packs = list_names(git + b"/objects/pack")
    if any(name.startswith(TEMPORARY_PACK_PREFIXES) or name.endswith(b".keep") for name in packs):
        return Stage.FETCHING
    fetched = exists_no_follow(git + b"/refs/remotes") or file_contains(
        git + b"/packed-refs", b" refs/remotes/"
    )
    if not fetched and REMOTE_SECTION.search(read_small(git + b"/config", CONFIG_CAP) or b""):
        empty = list_names(path) <= {b".jj", b".git"}
        return Stage.CONNECTING if empty else Stage.REMOTE_ALONE
    return Stage.JJ
