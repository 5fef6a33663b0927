"""Record that a start brought the database to a newer version.

The record is a file in the state folder. It is written after the backup and before the migration.
So after a crash in between, the next start makes the backup and the record again, and a record
never belongs to an upgrade whose backup is missing. The record stays until the next upgrade.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import asdict

from rootsd.core.encoding import ProjectRecord
from rootsd.core.history import HistoryEvent, fold
from rootsd.core.model import Rule, Ruling, Verdict
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.state.store.schema import RELEASES
from rootsd.system.private_files import path_exists, read_private_file, replace_private_file

UPGRADE_NAME = "upgrade.json"
_MAX_BYTES = 16 * 1024


class StoreUpgrade(Struct, frozen=True):
    """The last upgrade of the database.

    `at` is a time in RFC 3339. `backup` is the name of the backup that was made before. `kept`
    counts the decisions by kind: see `count_decisions`. `is_seen` says that a person has seen the
    summary.
    """

    at: str
    from_version: int
    to_version: int
    backup: str
    kept: Mapping[str, int] = field(default_factory=dict)
    is_seen: bool = False

    @property
    def from_release(self) -> str:
        """The rootsd that wrote the database before, or an empty text if no release did."""
        return RELEASES.get(self.from_version, "")


def count_decisions(events: Iterable[HistoryEvent]) -> dict[str, int]:
    """Count what is decided after `events`, a whole history.

    * `approved` and `denied`: decisions of a person. `granted`: projects that only a rule or a
      main checkout approved. `lapsed`: approvals that ended without a person.
    * `rules`, and the projects with a name (`named`) or tags (`tagged`).

    Raises BadRecord.
    """
    counts: Counter[str] = Counter()
    for event in fold(events).latest.values():
        match event.outcome():
            case ProjectRecord(ruling=ruling):
                counts.update(_kinds(ruling))
            case Rule():
                counts["rules"] += 1
            case _:
                pass
    return dict(counts)


def _kinds(ruling: Ruling) -> Iterable[str]:
    decision = ruling.decision
    if decision is not None:
        yield "approved" if decision.verdict is Verdict.APPROVED else "denied"
    elif ruling.grants:
        yield "granted"
    elif ruling.is_lapsed:
        yield "lapsed"
    if ruling.name is not None:
        yield "named"
    if ruling.tags:
        yield "tagged"


def save_upgrade(folder: Path, upgrade: StoreUpgrade) -> None:
    """Replace the record in the state folder `folder`. Raises NotPrivate."""
    text = json.dumps(asdict(upgrade), sort_keys=True) + "\n"
    replace_private_file(folder / UPGRADE_NAME, text.encode("ascii"))


def read_upgrade(folder: Path) -> StoreUpgrade | None:
    """Return the record in the state folder `folder`, or None if there is no valid one.

    Raises NotPrivate.
    """
    file = folder / UPGRADE_NAME
    if not path_exists(file):
        return None
    try:
        fields = parse_json(read_private_file(file, _MAX_BYTES))
    except Unparsable:
        return None
    match fields:
        case {
            "at": str(at), "from_version": int(before), "to_version": int(after),
            "backup": str(backup), "kept": dict(kept), "is_seen": bool(is_seen),
        } if _is_time(at) and all(isinstance(count, int) for count in kept.values()):  # fmt: skip
            return StoreUpgrade(at, before, after, backup, kept, is_seen)
        case _:
            return None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
