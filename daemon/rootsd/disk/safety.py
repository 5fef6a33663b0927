"""Check that other users cannot replace a project folder or a folder above it, and its place.

`rootsd.disk.writers` tells who can write to one folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from rootsd.core.model import LapseReason
from rootsd.core.paths import RefusedPlaces, ancestors
from rootsd.disk.writers import FolderWriters, is_private_group

# These are compared by identity, because a bind mount gives a folder another name.
REFUSED_IDENTITIES = tuple(
    b"/ /etc /usr /bin /sbin /lib /lib64 /boot /dev /proc /sys /run /var /home /root".split()
)


class Hazard(Struct, frozen=True):
    """The reason why a folder may not be published; `sentence` is for people."""

    reason: LapseReason
    sentence: str


class _RefusedIdentities(NamedTuple):
    """Refused places by device and inode: those refused with everything below, and all.

    `by_policy` are those of them that only the machine's policy refuses.
    """

    trees: Mapping[tuple[int, int], bytes]
    places: Mapping[tuple[int, int], bytes]
    by_policy: frozenset[bytes] = frozenset()

    def reason(self, place: bytes) -> LapseReason:
        """Return the hazard of a folder that is `place` under another name."""
        return LapseReason.POLICY if place in self.by_policy else LapseReason.REFUSED_PLACE


class FolderSafety:
    """Checks projects and the folders above them by identity, owner, and mode.

    It does not remember folders that it checked. It refuses the places in `places` under all their
    names but one: `core.paths` checks the usual name, because exceptions depend on it. The places
    are identified again whenever `places` or `mounted` returns a new object, because a mount can
    give a folder another name. A place for which `responds` is False is left out until its mount
    responds.

    Only one thread at a time may use it.
    """

    def __init__(
        self,
        uid: int,
        *,
        places: Callable[[], RefusedPlaces],
        mounted: Callable[[], object],
        responds: Callable[[bytes], bool],
        is_private: Callable[[int, int], bool] = is_private_group,
    ) -> None:
        self._uid = uid
        self._places = places
        self._mounted = mounted
        self._responds = responds
        self._writers = FolderWriters.other_than(uid, is_private)
        self._identified_with: tuple[RefusedPlaces, object] | None = None
        self._known = _RefusedIdentities({}, {})

    def may_be_root(self, path: bytes) -> bool:
        """Return whether a folder at `path` can be a root at all. The home folder cannot."""
        return self._places().why_no_root(path) is None

    def refresh_refused_places(self) -> object:
        """Identify the refused places in the current configuration and mounts.

        Call this before each check. The returned object stays the same until a check could have
        another result.
        """
        places, mounted = self._places(), self._mounted()
        before = self._identified_with
        if before is None or before[0] is not places or before[1] is not mounted:
            self._identified_with = (places, mounted) if self._have_identified(places) else None
        return self._known

    def _have_identified(self, places: RefusedPlaces) -> bool:
        """Identify the places on mounts that respond, and return whether all mounts responded."""
        usual = (*REFUSED_IDENTITIES, *places.homes, *places.refused_ancestors())
        # The policy's places come last: an approval lapses in a place that others refuse, too.
        trees = (*places.refused_trees(), *places.policy_trees())
        others = (*usual, *places.policy_ancestors())
        by_policy = frozenset((*places.policy_trees(), *places.policy_ancestors()))
        by_policy -= {*places.refused_trees(), *usual}
        unresponsive = {place for place in (*trees, *others) if not self._responds(place)}
        # Leave links out: the walk does not follow links, so a link is no other name of a folder.
        as_trees = _by_identity(
            place for place in trees if place not in unresponsive and not os.path.islink(place)
        )
        alone = _by_identity(place for place in others if place not in unresponsive)
        known = _RefusedIdentities(as_trees, {**as_trees, **alone}, by_policy)
        if known != self._known:
            self._known = known
        return not unresponsive

    def folder_hazard(self, path: bytes, found: os.stat_result) -> Hazard | None:
        """Return the hazard of a project's own folder, without the folders above it."""
        place = self._known.places.get((found.st_dev, found.st_ino), path)
        if place != path:
            return Hazard(self._known.reason(place), _alias_sentence(place))
        if found.st_uid != self._uid:
            return Hazard(LapseReason.OTHER_OWNER, LapseReason.OTHER_OWNER.value)
        return None

    def hazard(self, path: bytes, safe: set[bytes] | None = None) -> Hazard | None:
        """Return why the folder at `path` may not be published, or None.

        `safe` has folders above projects that were just checked. They are not checked again, and
        the folders that this check finds safe are added. Raises OSError if the folder is absent.
        """
        self.refresh_refused_places()
        entry = os.lstat(path)
        if (hazard := self.folder_hazard(path, entry)) is not None:
            return hazard
        checked = []
        for above in ancestors(path):
            if safe is not None and above in safe:
                break
            found = os.lstat(above)
            if (hazard := self.ancestor_hazard(above, found, entry.st_uid)) is not None:
                return hazard
            checked.append(above)
            entry = found
        if safe is not None:
            safe.update(checked)
        return None

    def ancestor_hazard(
        self, path: bytes, found: os.stat_result, entry_owner: int
    ) -> Hazard | None:
        """Return the hazard of one folder above. `entry_owner` owns the next folder down."""
        if not stat.S_ISDIR(found.st_mode):
            return Hazard(LapseReason.RETARGETED, f"{os.fsdecode(path)} is a link")
        tree = self._known.trees.get((found.st_dev, found.st_ino), path)
        if tree != path:
            return Hazard(self._known.reason(tree), _alias_sentence(tree, os.fsdecode(path)))
        sentence = self._writers.why_replaceable(path, found, entry_owner)
        return None if sentence is None else Hazard(LapseReason.EXPOSED, sentence)

    def acl_lets_others_write(self, path: bytes, found: os.stat_result) -> bool:
        """Return whether an access control list lets others replace an entry of the folder."""
        return self._writers.acl_lets_others_write(path, found)


def refused_place_alias(path: bytes, places: Iterable[bytes] = REFUSED_IDENTITIES) -> bytes | None:
    """Return the refused place that is the same folder as `path` under another name, or None.

    A bind mount gives a folder another name, and so does another spelling on a case-insensitive
    volume. `core.paths` checks only names and would miss both.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    place = _by_identity(place for place in places if place != path)
    return place.get((found.st_dev, found.st_ino))


def explain_alias(path: bytes, places: Iterable[bytes] = REFUSED_IDENTITIES) -> str | None:
    """Return a sentence about the refused place that `path` is under another name, or None."""
    place = refused_place_alias(path, places)
    return None if place is None else _alias_sentence(place)


def _alias_sentence(place: bytes, what: str = "it") -> str:
    return f"{what} is {os.fsdecode(place)} under another name"


def _by_identity(places: Iterable[bytes]) -> Mapping[tuple[int, int], bytes]:
    found: dict[tuple[int, int], bytes] = {}
    for place in places:
        try:
            entry = os.stat(place)
        except OSError:
            continue
        found.setdefault((entry.st_dev, entry.st_ino), place)
    return found
