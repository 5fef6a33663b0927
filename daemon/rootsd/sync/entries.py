"""The entries of access lists, and which of them are ours. The daemon reads records of these."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

Keys = tuple[str, ...]


class EntryKind(StrEnum):
    """Whether an entry takes access away or gives it. Grants do not outlive the process."""

    DENIAL = "denial"
    GRANT = "grant"


class ListEntry(Struct, frozen=True):
    """One line of a client's list: an item of the array at `keys` or, with a `value`, a member of
    the object there.
    """

    keys: Keys
    name: str
    kind: EntryKind
    value: str | None = None

    @property
    def place(self) -> tuple[Keys, str]:
        """What identifies the entry in its file."""
        return self.keys, self.name


class OwnEntries(Struct, frozen=True):
    """What is ours in one file: the entries, the containers that we made for them, and whether we
    made the file itself.
    """

    entries: tuple[ListEntry, ...] = ()
    made: tuple[Keys, ...] = ()
    has_made_file: bool = False

    def with_more(self, other: OwnEntries) -> OwnEntries:
        """Return everything that is in this or in `other`."""
        return OwnEntries(
            tuple(dict.fromkeys((*self.entries, *other.entries))),
            tuple(dict.fromkeys((*self.made, *other.made))),
            self.has_made_file or other.has_made_file,
        )


NOTHING_OWN = OwnEntries()
