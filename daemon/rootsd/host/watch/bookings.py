"""Which folders are watched for which purposes, and by which watches of the kernel.

A watch belongs to the folder, not to its path: a bind mount gives it a second one, and after a
rename the kernel gives the same descriptor for the new path while the old one is still booked. So
a watch has bookings, mostly one. It is told by the kernel's number, `wd`. There are thousands:
each takes two places in dictionaries and a number, 120 bytes beside the path, which others hold.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from rootsd.host.watch.events import Purpose

Booking = tuple[bytes, Purpose]


@dataclass(slots=True, eq=False)
class _Book:
    """The bookings for one purpose; a watch with one path has it without a tuple around it."""

    watches: dict[bytes, int] = field(default_factory=dict)
    folders: dict[int, bytes | tuple[bytes, ...]] = field(default_factory=dict)

    def folders_of(self, wd: int) -> tuple[bytes, ...]:
        its = self.folders.get(wd, ())
        return (its,) if isinstance(its, bytes) else its

    def set_folders(self, wd: int, its: tuple[bytes, ...]) -> None:
        if its:
            self.folders[wd] = its[0] if len(its) == 1 else its
        else:
            self.folders.pop(wd, None)


class Bookings:
    """The books. One thread changes them; another may ask for purposes meanwhile."""

    def __init__(self) -> None:
        self._books = tuple((purpose, _Book()) for purpose in Purpose)
        self._of = dict(self._books)
        self._count = 0

    def __len__(self) -> int:
        """How many watches of the kernel have bookings."""
        return self._count

    def purposes_of(self, wd: int) -> list[Purpose]:
        """What the watch is booked for; nothing if it is not booked."""
        return [purpose for purpose, book in self._books if wd in book.folders]

    def watches_for(self, purpose: Purpose) -> AbstractSet[int]:
        """The watches that are booked for it, at any time."""
        return self._of[purpose].folders.keys()

    def watch_of(self, folder: bytes, purpose: Purpose) -> int | None:
        """The watch that is booked for it."""
        return self._of[purpose].watches.get(folder)

    def folders_of(self, wd: int, purpose: Purpose) -> tuple[bytes, ...]:
        """The paths under which the watch is booked for this purpose, oldest first."""
        return self._of[purpose].folders_of(wd)

    def enter(self, folder: bytes, purpose: Purpose, wd: int) -> None:
        """Book a watch for what has none."""
        self._count += not self.purposes_of(wd)
        book = self._of[purpose]
        book.watches[folder] = wd
        book.set_folders(wd, (*book.folders_of(wd), folder))

    def leave(self, folder: bytes, purpose: Purpose) -> None:
        """End what was entered."""
        book = self._of[purpose]
        wd = book.watches.pop(folder)
        book.set_folders(wd, tuple(path for path in book.folders_of(wd) if path != folder))
        self._count -= not self.purposes_of(wd)

    def end(self, wd: int) -> tuple[Booking, ...]:
        """End all bookings of a watch; those that it had."""
        ended = tuple(
            (path, purpose) for purpose, book in self._books for path in book.folders_of(wd)
        )
        for booking in ended:
            self.leave(*booking)
        return ended
