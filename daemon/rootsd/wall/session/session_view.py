"""Compose the base of one program's view from the defaults, the configuration, and the flags.

This looks at the disk and changes nothing. It also says which parts of the wall stay open, in
sentences for people.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import rootsd
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import (
    SHOWN_FROM_OUTSIDE,
    ConfinedRoot,
    ViewEntry,
    ViewEntryKind,
    roots_inside,
)
from rootsd.core.paths import contains, text_of
from rootsd.core.wall import ProtectionPolicy, PushPolicy, RevokePolicy, WallSettings
from rootsd.places.runtime_dir import find_runtime_dirs, home_folder
from rootsd.processes.own_program import user_packages
from rootsd.wall.kernel.landlock import AttachedGuarantee
from rootsd.wall.kernel.supervision import CellOptions, Layer, Network
from rootsd.wall.kernel.warden import FollowedRoots
from rootsd.wall.session.daily_work import daily_work
from rootsd.wall.session.options import ConfineOptions, Opening
from rootsd.wall.session.view_feed import WallSubscription
from rootsd.wall.session.worktree_front import GitFront
from rootsd.wall.view.default_view import base_entries, entry_for
from rootsd.wall.view.denied_base import DeniedBase, is_denied
from rootsd.wall.view.devices import device_entries
from rootsd.wall.view.person_view import PersonView, person_view

_GIT = "git hooks and most git settings (change them outside)"
_UNTRACKED = "untracked files that tools outside run, such as .envrc (--write PATH)"
_TRACKED = (
    "all files that tools outside run, where git switch, pull, rebase, merge, stash, and reset"
    " --hard fail or leave the old content (start without --protect)"
)
_CLOSED_BY = {
    ProtectionPolicy.ALL: (_GIT, _TRACKED),
    ProtectionPolicy.UNTRACKED: (_GIT, _UNTRACKED),
    ProtectionPolicy.NONE: (),
}
_BESIDE = "new folders beside a root, as git worktree add ../NAME makes (--worktrees)"
_MOUNTS = "sandboxes inside, such as unshare -rm (--nested --on-revoke kill)"
_NOT_NESTED = (Layer.LANDLOCK, Layer.MOUNT_CALLS)
_BY_PERSON = ("--", "[confine]")
NETWORK_IS_ON = (
    "the network is on: a service on localhost may read files outside the wall; "
    "turn it off with --no-network"
)


class ComposedView(NamedTuple):
    """The base of the view, and the choices that are not paths.

    `variables` are to be set inside. `closed` names what the user has and the program has not,
    each with the option that opens it. `notes` are sentences about what a person named in vain.
    Three fields are those of `DailyWork`, with what the rest of the view adds to them. `left_out`
    says which of the person's settings and programs are not shown. Programs run `without` some
    layers, which would forbid the mounts of a nested sandbox. Of the root around the folder
    `below`, they see only that folder; empty for whole roots.
    """

    home: bytes
    entries: tuple[ViewEntry, ...]
    hidden: frozenset[bytes]
    variables: Mapping[bytes, bytes]
    has_network: bool
    protection: ProtectionPolicy
    on_revoke: RevokePolicy
    stays_open: tuple[str, ...]
    closed: tuple[str, ...]
    push: PushPolicy = PushPolicy.OFF
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    git_front: GitFront = GitFront.NONE
    without: frozenset[Layer] = frozenset()
    below: bytes = b""

    def followed(self, heard: bytes = b"") -> FollowedRoots:
        """Return how the wall follows the daemon, which has said what its owner has `heard`."""
        return FollowedRoots(self.hidden, self.below, self.has_network, self.stays_open, heard)

    def writable(self) -> list[bytes]:
        """Return the folders outside that programs may write, beside the roots."""
        writable = [each.path for each in self.entries if each.kind is ViewEntryKind.WRITE]
        kept = [each.target for each in self.entries if each.kind is ViewEntryKind.STATE]
        return [*writable, *filter(None, kept)]

    def cell(self) -> CellOptions:
        """Return how a program is started with this view, here."""
        folder = None
        with suppress(FileNotFoundError):
            folder = os.getcwdb()
        network = Network.SHARED if self.has_network else Network.PRIVATE
        return CellOptions(network, self.without, folder=folder, home=self.home)

    def with_start(self, path: bytes) -> ComposedView:
        """Return the view with a folder at `path` in which a program can start."""
        if any(entry.path == path for entry in self.entries):
            return self
        start = ViewEntry(path, ViewEntryKind.EMPTY, "where the program starts")
        return self._replace(entries=(*self.entries, start))

    def without_denied(self, denied: frozenset[bytes]) -> ComposedView:
        """Return the view with notes about each denied folder in what a person named.

        The warden masks these. It has no copy of a file from a denied folder either.
        """
        masks = DeniedBase(self.entries).masks(denied)
        return self._replace(
            entries=tuple(
                entry
                for entry in self.entries
                if entry.kind not in (ViewEntryKind.PRIVATE_FILE, ViewEntryKind.COPY)
                or not is_denied(entry.path, denied)
            ),
            notes=tuple(
                f"{entry.reason}: {text_of(mask.path)} is denied, so it is not shown; try: rootsd"
                f" why {shlex.quote(text_of(mask.path))}"
                for entry in self.entries
                if entry.kind in SHOWN_FROM_OUTSIDE and entry.reason.startswith(_BY_PERSON)
                for mask in masks
                if contains(entry.path, mask.path) or contains(mask.path, entry.path)
            ),
        )

    def masked(self, roots: Iterable[ConfinedRoot]) -> tuple[ConfinedRoot, ...]:
        """Return `roots` as programs see them."""
        return roots_inside(roots, self.hidden, self.below)


def compose(
    options: ConfineOptions,
    subscription: WallSubscription,
    guarantee: AttachedGuarantee,
    extra: Iterable[ViewEntry] = (),
) -> ComposedView:
    """Return the view for a session. Raises RootsdError.

    `extra` is what the program needs besides; what a person names wins.
    """
    home, settings = _private_home(), subscription.settings
    hidden = frozenset(_real_paths((*settings.hide, *options.hide)))
    named = list(_named_paths(options, settings))
    devices = list(_devices(options, settings))
    has_network = settings.network and Opening.NO_NETWORK not in options.flags
    push = (options.push or settings.push) if has_network else PushPolicy.OFF
    work = daily_work(options.flags, home, (entry.path for entry in named), push)
    person = person_view(
        home,
        os.geteuid(),
        os.environb,
        base_entries(home, os.geteuid()),
        (root.path for root in subscription.roots),
        subscription.view.denied,
    )
    entries = [
        *person.entries,
        *_rootsd_entries(),
        *extra,
        *work.hints,
        *work.entries,
        *named,
        *devices,
        *(ViewEntry(path, ViewEntryKind.HIDDEN, "--hide or [confine] hide") for path in hidden),
    ]
    beside = _beside_roots((root.path for root in subscription.roots), home, entries)
    protection = _protection(options, settings)
    view = ComposedView(
        home,
        tuple(_without_repeats((*beside, *entries))),
        hidden,
        work.variables,
        has_network,
        protection,
        options.on_revoke or settings.on_revoke,
        (
            *open_parts(options, guarantee, protection, has_network=has_network),
            *work.stays_open,
            *opened_devices(devices),
        ),
        (*work.closed, *_left_out_in_short(options, person), *_closed_by(options, protection)),
        push,
        left_out=tuple(each.sentence(home) for each in person.left_out),
        git_front=GitFront.ASKS if Opening.WORKTREES in options.flags else GitFront.REFUSES,
        without=frozenset(_NOT_NESTED if Opening.NESTED in options.flags else ()),
        below=_below(options),
    )
    return view.without_denied(subscription.view.denied)


def _beside_roots(
    roots: Iterable[bytes], home: bytes, entries: Iterable[ViewEntry]
) -> Iterator[ViewEntry]:
    """Yield the folders that have roots and one of `entries` in them.

    Programs can make nothing beside a root. On the way to an entry they can, as tools write their
    state beside their settings, but it would be in the private home, and gone at the end.
    """
    others = [entry.path for entry in entries]
    for folder in sorted({os.path.dirname(root) for root in roots}):
        below_home = folder[len(home) :] if contains(home, folder) else b""
        has_others = any(contains(folder, other) and other != folder for other in others)
        if below_home and b"/." not in below_home and has_others:
            yield ViewEntry(folder, ViewEntryKind.EMPTY, "roots are in it")


def _private_home() -> bytes:
    """Return the home folder. Raises RootsdError for one that cannot be private."""
    home = os.path.realpath(home_folder())
    if home == b"/":
        raise RootsdError("the home folder is /, which cannot be private", "export HOME=...")
    return home


def _below(options: ConfineOptions) -> bytes:
    """Return the one folder to show of the root around it, or nothing. Raises RootsdError."""
    if Opening.SUBFOLDER not in options.flags:
        return b""
    try:
        return os.getcwdb()
    except FileNotFoundError as error:
        raise RootsdError("the working directory is gone", "cd") from error


def _named_paths(options: ConfineOptions, settings: WallSettings) -> Iterator[ViewEntry]:
    """Yield the files and folders that a person names. Raises RootsdError."""
    yield from _named(settings.read, ViewEntryKind.READ, "[confine] read in config.toml")
    yield from _named(options.read, ViewEntryKind.READ, "--read")
    yield from _named(settings.write, ViewEntryKind.WRITE, "[confine] write in config.toml")
    yield from _named(options.write, ViewEntryKind.WRITE, "--write")
    yield from _named(settings.keep, ViewEntryKind.KEPT, "[confine] keep in config.toml")
    yield from _named(options.keep, ViewEntryKind.KEPT, "--keep")


def _devices(options: ConfineOptions, settings: WallSettings) -> Iterator[ViewEntry]:
    """Yield the devices that a person opens. Raises RefusedDevice."""
    yield from device_entries(_real_paths(settings.device), "[confine] device in config.toml")
    yield from device_entries(_real_paths(options.device), "--device")


def opened_devices(entries: Iterable[ViewEntry]) -> Iterator[str]:
    """Yield a sentence for each device that a person opens."""
    for each in entries:
        if each.kind is ViewEntryKind.DEVICE and each.reason.startswith(_BY_PERSON):
            yield f"{each.reason}: the program uses {text_of(each.path)}"


def open_parts(
    options: ConfineOptions,
    guarantee: AttachedGuarantee,
    protection: ProtectionPolicy,
    *,
    has_network: bool,
) -> Iterator[str]:
    """Yield a sentence for each part of the wall that stays open."""
    if has_network:
        yield NETWORK_IS_ON
    if Opening.NESTED in options.flags:
        yield "--nested: a revoke also ends every program that has mounts of its own"
    elif guarantee < AttachedGuarantee.FOLDERS:
        yield "this kernel: a revoke also ends every program that works in the folder"
    elif guarantee < AttachedGuarantee.TRUNCATE:
        yield "this kernel: after a revoke, truncate works through an open folder"
    if has_network and (
        guarantee < AttachedGuarantee.ABSTRACT_SOCKETS or Opening.NESTED in options.flags
    ):
        yield "this kernel: abstract sockets of other programs (--no-network)"
    if Opening.WORKTREES in options.flags:
        yield "--worktrees: programs can add and remove worktrees beside a checkout"
    match protection:
        case ProtectionPolicy.NONE:
            yield "--no-protect: files that git, editors, and agents run outside are writable"
        case ProtectionPolicy.UNTRACKED:
            yield (
                "files that tools outside run, such as .envrc and .husky/pre-commit, are writable"
                " if git tracks them; rootsd reports each change (--protect makes them read-only)"
            )
        case ProtectionPolicy.ALL:
            pass


def _left_out_in_short(options: ConfineOptions, person: PersonView) -> Iterator[str]:
    count = len(person.left_out)
    if count and Opening.SHOW not in options.flags:
        yield f"{count} of the paths that your settings name (--show lists them)"


def _closed_by(options: ConfineOptions, protection: ProtectionPolicy) -> tuple[str, ...]:
    openings = {Opening.WORKTREES: _BESIDE, Opening.NESTED: _MOUNTS}
    closed = (text for opening, text in openings.items() if opening not in options.flags)
    return (*_CLOSED_BY[protection], *closed)


def _protection(options: ConfineOptions, settings: WallSettings) -> ProtectionPolicy:
    if Opening.PROTECT in options.flags:
        return ProtectionPolicy.ALL
    return ProtectionPolicy.NONE if Opening.NO_PROTECT in options.flags else settings.protect


def _rootsd_entries() -> Iterator[ViewEntry]:
    """Yield the socket for MCP clients, and the folders in which this program is installed."""
    for folder in find_runtime_dirs():
        if os.path.isdir(folder.pub):
            yield ViewEntry(folder.pub, ViewEntryKind.READ, "rootsd's socket for MCP clients")
    package = os.path.dirname(os.path.abspath(rootsd.__file__))
    for place in (sys.prefix, sys.base_prefix, user_packages() or package):
        path = os.path.realpath(os.fsencode(place))
        if path.count(b"/") > 1:  # not /usr, which is there already
            yield from entry_for(path, ViewEntryKind.READ, "rootsd itself")


def _named(paths: Iterable[str | bytes], kind: ViewEntryKind, reason: str) -> Iterator[ViewEntry]:
    """Yield the entries for paths that a person names. Raises RootsdError if one is missing."""
    for path in _real_paths(paths):
        if not os.path.exists(path):
            shown = safe_label(path, limit=None)
            above = safe_label(os.path.dirname(path), limit=None)
            raise RootsdError(f"{reason}: {shown} does not exist", f"ls {above}")
        if path == b"/":
            why = f"{reason}: / holds everything, even your keys"
            raise RootsdError(why, "rootsd confine --help")
        yield ViewEntry(path, kind, reason)


def _real_paths(paths: Iterable[str | bytes]) -> Iterator[bytes]:
    for path in paths:
        yield os.fsencode(os.path.realpath(os.path.expanduser(path)))


def _without_repeats(entries: Iterable[ViewEntry]) -> Iterator[ViewEntry]:
    """Keep the last entry for each path: what a person names wins."""
    last = {entry.path: entry for entry in entries}
    yield from last.values()
