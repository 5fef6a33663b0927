"""Plan the change of one settings file: from the entries there, those wanted, and those of ours.

An entry that a person wrote stays theirs, even if we want the same one: only entries that this
package inserted are ever removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from rootsd.agents.forms.access import ListFile
from rootsd.settings import toml_spans
from rootsd.settings.errors import NotEditable
from rootsd.settings.json_spans import Items, contents, insert, remove, remove_empty
from rootsd.sync.entries import NOTHING_OWN, EntryKind, Keys, ListEntry, OwnEntries

EMPTY_FILE = "{}\n"
PROFILE_START = """\
# Written by rootsd sync, which replaces it. To use it: codex -p rootsd
default_permissions = "rootsd"
"""


class FilePlan(Struct, frozen=True):
    """The new text of a file, None for no file, and what is ours in it then.

    `conflicts` are the wanted entries for which a person wrote another value.
    """

    text: str | None
    own: OwnEntries
    conflicts: tuple[ListEntry, ...] = field(default=())


def plan_target(
    kept_in: ListFile, text: str | None, wanted: Sequence[ListEntry], own: OwnEntries
) -> FilePlan:
    """Return the plan for a file with `text`, or for a missing file. Raises NotEditable."""
    if kept_in is ListFile.PROFILE:
        return plan_profile(text, wanted, own)
    return plan_file(text, wanted, own)


def plan_profile(text: str | None, wanted: Sequence[ListEntry], own: OwnEntries) -> FilePlan:
    """Return the plan for a file of ours. Raises NotEditable if somebody else wrote in it."""
    if text is not None and text != _profile(_written(text, own)):
        raise NotEditable("somebody else wrote in it; move it away, then try again")
    if not wanted:
        return FilePlan(None, NOTHING_OWN)
    return FilePlan(_profile(wanted), OwnEntries(tuple(wanted), has_made_file=True))


def _profile(entries: Iterable[ListEntry]) -> str:
    """Return the text of a profile with `entries`, in one order."""
    tables: dict[Keys, dict[str, str | bool]] = {}
    for entry in sorted(entries, key=lambda entry: entry.place):
        tables.setdefault(entry.keys, {})[entry.name] = entry.value or ""
    text = PROFILE_START
    for keys, members in tables.items():
        text = toml_spans.insert_table(text, keys, members)
    return text


def _written(text: str, own: OwnEntries) -> list[ListEntry]:
    """Return those of our entries that a profile has: all, or those before a kill."""
    found = []
    values = toml_spans.parse(text)
    for entry in own.entries:
        table: Any = values
        for key in entry.keys:
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict) and table.get(entry.name) == entry.value:
            found.append(entry)
    return found


def plan_file(text: str | None, wanted: Sequence[ListEntry], own: OwnEntries) -> FilePlan:
    """Return the plan for settings that others write, too. Raises NotEditable."""
    if text is None or not text.strip():
        if not wanted:
            return FilePlan(text, NOTHING_OWN)
        return _planned(EMPTY_FILE, wanted, OwnEntries(has_made_file=text is None))
    return _planned(text, wanted, own)


def keep_denials(own: OwnEntries) -> tuple[ListEntry, ...]:
    """Return what stays in a file when the process ends."""
    return tuple(entry for entry in own.entries if entry.kind is EntryKind.DENIAL)


def _planned(text: str, wanted: Sequence[ListEntry], own: OwnEntries) -> FilePlan:
    present = _present(text, (*wanted, *own.entries))
    needed = {entry.place: entry for entry in wanted}
    ours = [entry for entry in own.entries if _has(present, entry)]
    stale = [entry for entry in ours if needed.get(entry.place, entry).value != entry.value
             or entry.place not in needed]  # fmt: skip
    for items in _grouped(stale):
        text = remove(text, items)
    gone = {entry.place for entry in stale}
    missing, conflicts = [], []
    for entry in needed.values():
        if entry.place in gone or entry.place not in present:
            missing.append(entry)
        elif not _has(present, entry):
            conflicts.append(entry)
    made = list(own.made)
    for items in _grouped(missing):
        text, new = insert(text, items)
        made += new
    text, made = remove_empty(text, list(dict.fromkeys(made)))
    kept = [needed[entry.place] for entry in ours if entry not in stale]
    left = OwnEntries((*kept, *missing), tuple(made), own.has_made_file)
    is_ours_alone = own.has_made_file and not left.entries and text == EMPTY_FILE
    if is_ours_alone:
        return FilePlan(None, NOTHING_OWN, tuple(conflicts))
    return FilePlan(text, left, tuple(conflicts))


def _present(text: str, entries: Iterable[ListEntry]) -> dict[tuple[Keys, str], str | None]:
    """Return the places of `entries` that the text has, with their values."""
    found: dict[tuple[Keys, str], str | None] = {}
    for items in _grouped(entries):
        there = contents(text, items.keys, is_mapping=items.is_mapping)
        for name in items.values:
            if name in there:
                value = there[name] if isinstance(there, dict) else None
                found[items.keys, name] = value
    return found


def _has(present: dict[tuple[Keys, str], str | None], entry: ListEntry) -> bool:
    return entry.place in present and present[entry.place] == entry.value


def _grouped(entries: Iterable[ListEntry]) -> list[Items]:
    """Return the entries by their container, in order."""
    groups: dict[Keys, list[ListEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.keys].append(entry)
    return [
        Items(
            keys,
            [entry.name for entry in group]
            if group[0].value is None
            else {entry.name: entry.value or "" for entry in group},
        )
        for keys, group in groups.items()
    ]
