"""Read the last commit of a repository with libgit2.

Call this only in a separate process with a deadline. libgit2 follows includes in the
configuration, and a FIFO behind one blocks the whole process forever. The result is only shown,
never used for a decision.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pygit2

_MAX_SUMMARY_LENGTH = 200


def last_commit(path: bytes) -> dict[str, Any] | None:
    """Return the id, time (RFC 3339), and summary of the current commit; None if there is none.

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
