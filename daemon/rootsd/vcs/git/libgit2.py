"""Read facts about a git repository with libgit2: its last commit, upstream, and remotes.

Call these functions only in a worker process with a deadline. libgit2 follows the includes in a
configuration file. If one of them names a FIFO, libgit2 blocks, and with it every thread of the
process. These functions run no filters, hooks, or other programs, and contact no remotes. rootsd
shows these facts and makes no decisions with them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import cast

from rootsd.core.uris import without_credentials
from rootsd.wire.projects import LastCommitItem, RemoteItem, TrackingFacts


@contextmanager
def _place_of_certificates() -> Iterator[None]:
    """Name an existing folder as the place of the certificates where the machine has none.

    Without such a place, as in a small container, pygit2 does not load. Nothing here uses TLS.
    """
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        yield
        return
    before = os.environ.get(paths.openssl_capath_env)
    os.environ[paths.openssl_capath_env] = os.path.dirname(__file__)
    yield
    if before is None:
        del os.environ[paths.openssl_capath_env]
    else:
        os.environ[paths.openssl_capath_env] = before


with _place_of_certificates():
    import pygit2

_MAX_SUMMARY_LENGTH = 200
_MAX_REMOTES = 20
_MAX_URL_LENGTH = 1_000


def last_commit(path: bytes) -> LastCommitItem | None:
    """Return the id, time (RFC 3339), and summary of the current commit, or None without commits.

    Raises pygit2.GitError if libgit2 cannot open the repository (SHA-256, reftable).
    """
    repository = _open(path)
    if repository.head_is_unborn:
        return None
    commit = repository.head.peel(pygit2.Commit)
    at = datetime.fromtimestamp(commit.commit_time, UTC)
    summary = commit.message.strip().partition("\n")[0]
    return {
        "id": str(commit.id),
        "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "summary": summary[:_MAX_SUMMARY_LENGTH],
    }


def read_tracking(path: bytes) -> TrackingFacts:
    """Return the upstream of the current branch, how far they differ, and the remotes.

    `ahead` and `behind` are numbers of commits. Both and `upstream` are None if the branch has no
    upstream, or if git never fetched it. Addresses have no credentials. Raises pygit2.GitError as
    `last_commit` does.
    """
    repository = _open(path)
    upstream, ahead, behind = _upstream(repository)
    return {
        "upstream": upstream,
        "ahead": ahead,
        "behind": behind,
        "remotes": [
            RemoteItem(name=remote.name, url=without_credentials(remote.url[:_MAX_URL_LENGTH]))
            for remote in islice(repository.remotes, _MAX_REMOTES)
            if remote.name and remote.url
        ],
    }


def _upstream(repository: pygit2.Repository) -> tuple[str | None, int | None, int | None]:
    if repository.head_is_unborn or repository.head_is_detached:
        return None, None, None
    # Both can be None, although pygit2's types do not say so.
    branch = cast("pygit2.Branch | None", repository.lookup_branch(repository.head.raw_shorthand))
    upstream = cast("pygit2.Branch | None", branch.upstream) if branch is not None else None
    if branch is None or upstream is None:
        return None, None, None
    ahead, behind = repository.ahead_behind(
        branch.peel(pygit2.Commit).id, upstream.peel(pygit2.Commit).id
    )
    return os.fsdecode(upstream.raw_branch_name), ahead, behind


def _open(path: bytes) -> pygit2.Repository:
    return pygit2.Repository(path, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
