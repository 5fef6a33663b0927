"""Read the last commit of a repository with libgit2.

Only ever in a process of its own with a deadline: libgit2 follows includes in a configuration, and
a FIFO behind one holds it, and every thread beside it, for ever. What it says is shown, no more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pygit2

_MAX_SUMMARY_LENGTH = 200


def last_commit(path: bytes) -> dict[str, Any] | None:
    """Id, time (RFC 3339) and summary of the commit that is checked out; None if there is none.

    Raises pygit2.GitError for a repository that libgit2 cannot open (SHA-256, reftable).
    """
    repository = pygit2.Repository(path, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
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
