"""What several databases, damaged and old ones, still hold of one history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rootsd.core.history import START, Event, Head, verified
from rootsd.core.model import Sighting
from rootsd.host.private import is_there, shown
from rootsd.host.storage.binding import Binding, read_binding
from rootsd.host.storage.database import (
    Database,
    StoreDamaged,
    StoreUnusable,
    connect_frozen,
    explained,
    read_number,
)
from rootsd.host.storage.migrate import BINDING_SINCE
from rootsd.host.storage.rows import read_events, read_sightings


class Sources:
    """The databases that a rebuild takes from, the best one first. They are only read."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Open those of `files` that are there. Raises NotPrivate where that cannot be told."""
        self._databases: dict[Path, Database] = {}
        self._unread: dict[Path, StoreUnusable] = {}
        for file in files:
            if is_there(file):
                with self._reading(file):
                    self._databases[file] = connect_frozen(file)

    def events(self) -> Iterator[Event]:
        """The longest chain that can be put together."""
        head = START
        while (event := self._following(head)) is not None:
            yield event
            head = event.head

    def sightings(self) -> list[tuple[bytes, str, Sighting]]:
        """What the first source that has any tells; an older one would tell of an older disk."""
        rows: list[tuple[bytes, str, Sighting]] = []
        for file, db in self._databases.items():
            with self._reading(file):
                rows.extend(read_sightings(db))
            if rows:
                break
        return rows

    def bindings(self) -> Iterator[tuple[Path, Binding]]:
        """Yield each source whose binding can be read, and the binding."""
        for file, db in self._databases.items():
            binding = None
            with self._reading(file):
                binding = read_binding(db)
            if binding is not None:
                yield file, binding

    def are_older_than_bindings(self) -> bool:
        """Tell whether a version without bindings wrote every source that can be read, and there
        is such a source."""
        versions: list[int] = []
        for file, db in self._databases.items():
            with self._reading(file):
                versions.append(read_number(db, "user_version"))
        return bool(versions) and max(versions) < BINDING_SINCE

    def require_all_read(self) -> None:
        """Raise StoreUnusable where the system refused to let one of the files be read: another
        time it may be, and what only that file holds must not be given up before."""
        for file, error in self._unread.items():
            message = f"{shown(file)}, which is needed to repair the decisions: {error}"
            raise StoreUnusable(
                message, f"rootsd up; or, to do without it: mv {file} {file}.unreadable"
            ) from error

    def close(self) -> None:
        """Close them all."""
        for db in self._databases.values():
            db.close()

    def _following(self, head: Head) -> Event | None:
        """The event after `head`, from the first source that still holds it."""
        for file, db in self._databases.items():
            # Each event is looked up by its number: a page that cannot be read hides its own only.
            with self._reading(file):
                for event in verified(read_events(db, head.seq, 1), head):
                    event.decided_by()
                    event.outcome()
                    return event
        return None

    @contextmanager
    def _reading(self, file: Path) -> Iterator[None]:
        """What is damaged is passed over; what the system refuses is, too, and is remembered."""
        try:
            with explained(file):
                yield
        except StoreDamaged:
            pass
        except StoreUnusable as error:
            self._unread[file] = error
