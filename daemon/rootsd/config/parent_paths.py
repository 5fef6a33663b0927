"""Resolve the folders that a user names as parents, and find the reason why one is refused."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from rootsd.core.paths import RefusedPlaces, bytes_of
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.safety import explain_alias
from rootsd.places.runtime_dir import account_home


def canonical_path(typed: str) -> bytes:
    """Return `typed` as an absolute path, with `~` expanded and symlinks followed.

    Parts that do not exist, or lie on a file system that does not answer, stay as they are.
    """
    absolute = os.path.join(os.getcwdb(), bytes_of(os.path.expanduser(typed)))
    return HungMountDetector().real_path(absolute)


def expand_account_home(typed: str) -> str:
    """Return `typed` with `~` and `~NAME` expanded from the password database alone.

    `os.path.expanduser` takes `~` from HOME, which the caller of a program can set.
    """
    if typed == "~" or typed.startswith("~/"):
        home = account_home()
        return os.fsdecode(home) + typed[1:] if home else typed
    return os.path.expanduser(typed)


def parent_refusal(places: RefusedPlaces, path: bytes) -> str | None:
    """Return the reason why `path` can never be a parent, or None."""
    reason = places.why_no_parent(path)
    return reason or (explain_alias(path) if HungMountDetector().responds(path) else None)


def find_same_folder(paths: Iterable[bytes], path: bytes) -> bytes | None:
    """Return the first of `paths` that is another name for the folder at `path`, or None.

    A bind mount gives a folder a second name.
    """
    answering = HungMountDetector()
    for other in paths:
        if other != path and answering.responds(other):
            with suppress(OSError):
                if os.path.samefile(other, path):
                    return other
    return None
