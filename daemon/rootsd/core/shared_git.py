"""Decide whether programs behind the wall may use a Git directory in another checkout.

A linked worktree or a submodule has a `.git` file, which leads to a Git directory in another
checkout: the main checkout, or the outermost checkout around the submodule. Without that Git
directory, git does not work in the root.

A program reaches the Git directory together with the root in two cases only:

* It may reach that checkout itself, because it is approved.
* The checkout is undecided, and the person's approval of the root includes its Git directory. The
  approval binds to the identity of the checkout that the person saw (`Decision.shared_git`).

The Git directory of a denied checkout is never included. A rule or a main checkout cannot include
one, since only a person can see what a `.git` file leads to and agree to it. Here, no code reads
the disk: a warden also checks that the Git directory links back to the root before it mounts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from rootsd.core.catalog import Catalog
from rootsd.core.decide import VerdictReason
from rootsd.core.model import GitEntry, Identity, Presence, Project, Verdict
from rootsd.core.mount_plan import GIT_OUTSIDE_OF_CHECKOUT
from rootsd.core.paths import ancestors


class GitAccess(StrEnum):
    """Whether programs behind the wall may use the Git directory, and the reason for people."""

    CHECKOUT_APPROVED = "its checkout is approved"
    INCLUDED = "the approval includes it"
    CHECKOUT_PENDING = "its checkout is pending"
    CHECKOUT_DENIED = "its checkout is denied"
    OTHER_SESSION = "its checkout is approved for another session only"
    OUTSIDE = GIT_OUTSIDE_OF_CHECKOUT
    UNAVAILABLE = "its checkout is missing or cannot be published"
    UNKNOWN = "its checkout is not a known project"

    @property
    def is_granted(self) -> bool:
        """Return whether programs may use it."""
        return self in (GitAccess.CHECKOUT_APPROVED, GitAccess.INCLUDED)


class SharedGit(Struct, frozen=True):
    """The checkout with the Git directory that a root uses, and whether programs may use it.

    `identity` is the identity of the checkout, or None if it is unknown.
    """

    checkout: bytes
    identity: Identity | None
    access: GitAccess


def shared_git(catalog: Catalog, project: Project) -> SharedGit | None:
    """Return the Git directory that `project` uses in another checkout, or None if it has its own.

    The result is also None for a `.git` file if no checkout around it is known.
    """
    seen = project.observed
    if seen.identity is None or seen.identity.git is not GitEntry.FILE:
        return None
    path = seen.main_checkout or _superproject(catalog, ancestors(project.path))
    if path is None:
        return None
    checkout = catalog.projects.get(path)
    identity = None if checkout is None else checkout.observed.identity
    return SharedGit(path, identity, _access(catalog, project, path, checkout))


def included_checkouts(catalog: Catalog) -> frozenset[bytes]:
    """Return the checkouts whose Git directories an approval includes, while they are pending."""
    shared = (shared_git(catalog, project) for project in catalog.including_git.values())
    return frozenset(
        git.checkout for git in shared if git is not None and git.access is GitAccess.INCLUDED
    )


def _access(
    catalog: Catalog, project: Project, path: bytes, checkout: Project | None
) -> GitAccess:
    if checkout is None:
        return GitAccess.UNKNOWN
    if (shown := catalog.roots.get(path) or catalog.withheld.get(path)) is not None:
        decision = project.ruling.decision
        session = None if decision is None else decision.session
        is_shown = shown.session is None or (session is not None and shown.session == session.id)
        return GitAccess.CHECKOUT_APPROVED if is_shown else GitAccess.OTHER_SESSION
    if catalog.is_denied(checkout):
        return GitAccess.CHECKOUT_DENIED
    if not _is_undecided(catalog, checkout):
        return GitAccess.UNAVAILABLE
    return GitAccess.INCLUDED if _includes(project, checkout) else GitAccess.CHECKOUT_PENDING


def _is_undecided(catalog: Catalog, checkout: Project) -> bool:
    """Return whether an approval of another root may include the Git directory of `checkout`.

    An incomplete checkout counts, too: a lock file that git left there must not take the Git
    directory away from a running program.
    """
    seen = checkout.observed
    return (
        catalog.judgments[checkout.path].reason in (VerdictReason.UNDECIDED, VerdictReason.LAPSED)
        and seen.presence is Presence.PRESENT
        and seen.hazard is None
        and seen.identity is not None
        and catalog.why_unpublishable(checkout) is None
    )


def _includes(project: Project, checkout: Project) -> bool:
    """Return whether the approval of `project` holds, and includes what is at `checkout` now."""
    decision = project.ruling.decision
    root, now = project.observed.identity, checkout.observed.identity
    return (
        decision is not None
        and decision.verdict is Verdict.APPROVED
        and decision.identity is not None
        and decision.shared_git is not None
        and root is not None
        and now is not None
        and decision.identity.holds_for(root)
        and decision.shared_git.holds_for(now)
    )


def _superproject(catalog: Catalog, above: Iterable[bytes]) -> bytes | None:
    """Return the checkout with the Git directories of the submodules below it, or None.

    The Git directory of a submodule in a submodule is in the outermost checkout. The Git directory
    of a submodule in a worktree is in the main checkout.
    """
    for path in above:
        project = catalog.projects.get(path)
        if project is None or project.observed.identity is None:
            continue
        if project.observed.main_checkout is not None:
            return project.observed.main_checkout
        if project.observed.identity.git is GitEntry.FOLDER:
            return path
    return None
