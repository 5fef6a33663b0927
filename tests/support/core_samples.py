"""Samples for tests of the core: one person, numbered directories, and one input at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rootsd.core.catalog import Catalog
from rootsd.core.encoding import to_ns
from rootsd.core.inputs import Input, ProjectObserved
from rootsd.core.model import Actor, ActorKind, GitEntry, Identity, ProjectKind
from rootsd.core.paths import RefusedPlaces
from rootsd.core.plan import plan

NOW = datetime(2026, 5, 6, 7, tzinfo=UTC)
LATER = datetime(2026, 5, 7, 8, tzinfo=UTC)
BEFORE_NS, AFTER_NS = (to_ns(NOW + timedelta(minutes=minutes)) for minutes in (-1, 1))
HOME = b"/home/ann"
PLACES = RefusedPlaces(HOME, own=(HOME + b"/state/rootsd",))
ANN = Actor(ActorKind.PERSON, "pts/1")
NOTHING_KNOWN = Catalog.of((), (), PLACES, 1)
# What an overlay file system without birth times shows: nothing but a number that is used again.
UNIDENTIFIABLE = Identity(b"disk", 7, None, None, 1000)


def identity(number: int) -> Identity:
    """Return the identity of directory `number`. All of them have the same inode."""
    return Identity(b"disk", 7, b"generation-%d" % number, number, 1000)


def tree(number: int, born_ns: int = AFTER_NS) -> Identity:
    """Return the identity of worktree `number`: git made it at `born_ns`, in one go."""
    entry = Identity(b"disk", 8, b"entry-%d" % number, born_ns, 1000)
    return Identity(
        b"disk", 7, b"generation-%d" % number, born_ns, 1000, GitEntry.FILE, entry, born_ns
    )


def seen(path: bytes, number: int = 1, main: bytes | None = None) -> ProjectObserved:
    """Return the observation of directory `number` at `path`, a worktree of `main` if given."""
    if main is None:
        return ProjectObserved(path, ProjectKind.GIT, identity(number))
    return ProjectObserved(path, ProjectKind.GIT_WORKTREE, tree(number), main_checkout=main)


def uri_seen(uri: bytes) -> ProjectObserved:
    """Return the observation of `uri`, which a person added."""
    return ProjectObserved(uri, ProjectKind.URI, None)


def after(catalog: Catalog, *inputs: Input) -> Catalog:
    """Return the catalog after `inputs`, applied one by one."""
    for event in inputs:
        catalog = plan(catalog, [event], NOW).catalog
    return catalog
