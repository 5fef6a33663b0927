"""Say what an upgrade changed: the store, the service, and the entries of clients.

The daemon knows what became of the store. The files of the service and of the clients belong to
other programs, so this command reads them. The summary appears once by itself, after the first
command on a terminal, and `rootsd version` prints it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from rootsd.cli import connecting, installer
from rootsd.cli.entry_changes import EntryChange, PublishedFacts, change_since_0_1_0
from rootsd.cli.formatting import age, pluralize, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.theme import Tone
from rootsd.connect.record import ConnectRecord
from rootsd.connect.wiring import ClientWiring
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.service import detect
from rootsd.system.confine_default import confines_by_default
from rootsd.system.policy_file import POLICY_FILE, wall_requirement
from rootsd.system.runtime_dir import OVERRIDE, overriding_folder
from rootsd.wire.upgrade import UpgradeQuery

_COMPARED_RELEASE = "0.1.0"
_REINSTALL = "rootsd service install"
_LABEL_WIDTH = 11
_KINDS = {
    "approved": "approved",
    "granted": "approved by a rule or with a main checkout",
    "denied": "denied",
    "lapsed": "lapsed",
}
_COUNTED = {"rules": "rule", "named": "name", "tagged": "project with tags"}


def read_summary(invocation: Invocation) -> dict[str, Any] | None:
    """Return the summary of the last upgrade as `--json` prints it; None if there was none.

    On a terminal, it counts as seen. Raises RootsdError.
    """
    query = UpgradeQuery(is_look=invocation.output.prints_messages)
    upgrade = invocation.call(query)["upgrade"]
    if upgrade is None:
        return None
    return {
        **upgrade,
        "service": _outdated_service(invocation),
        "clients": list(_changed_entries(invocation, upgrade)),
    }


def print_summary(invocation: Invocation, summary: Mapping[str, Any]) -> None:
    """Print the summary for a person, on standard error."""
    if not invocation.output.prints_messages:
        return
    for label, text in _lines(summary):
        invocation.output.labelled_message(f"{label:<{_LABEL_WIDTH}}", safe_text(text), Tone.LABEL)


def _outdated_service(invocation: Invocation) -> dict[str, str] | None:
    """Return what is outdated in the files of the service, and the command that updates them."""
    if overriding_folder():
        return None
    managing = detect.local_service_manager(os.environ)
    try:
        if not managing.is_installed():
            return None
        outdated = installer.plan_files(invocation, managing, strict=None).outdated()
    except RootsdError:  # rootsd doctor reports it
        return None
    return {"problem": outdated, "remedy": _REINSTALL} if outdated else None


def _changed_entries(
    invocation: Invocation, upgrade: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the entries of clients that get other roots than from version 0.1.0."""
    if upgrade["from_release"] != _COMPARED_RELEASE:
        return
    facts = PublishedFacts(
        renamed={root["stored"]: root["name"] for root in upgrade["renamed"]},
        with_colon=upgrade["with_colon"],
        focus=upgrade["focus"],
        wall=_wall(),
    )
    environment = connecting.client_environment()
    record = ConnectRecord(invocation.places.state)
    folder = overriding_folder()
    for client in connecting.found_clients(environment):
        wiring = ClientWiring(client, environment, record)
        for entry in wiring.rootsd_entries():
            # An entry for the daemon of other folders.
            if (entry.variables or {}).get(OVERRIDE) != (folder and os.fsdecode(folder)):
                continue
            change = change_since_0_1_0(entry.words, facts)
            if change is not None:
                yield {
                    "client": client.facts.name,
                    "entry": entry.server.label,
                    "file": str(wiring.settings),
                    "more": list(change.more),
                    "less": list(change.less),
                }


def _wall() -> str:
    """Say what puts servers behind the wall without a flag; empty if nothing does."""
    if requirement := wall_requirement(POLICY_FILE):
        return requirement
    try:
        return "[confine] default = true in config.toml" if confines_by_default() else ""
    except RootsdError:
        return ""


def _lines(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines for a person, each with its label."""
    before = summary["from_release"] or f"a store of version {summary['from_version']}"
    yield "upgraded", f"from {before}, {age(summary['at'])}. To read this again: rootsd version"
    if lapsed := summary["lapsed"]:
        yield "decisions", f"found: {_kept(summary['kept'])}"
        yield "", f"{lapsed:,} of them lapsed. To see why: rootsd status"
    else:
        yield "decisions", f"all kept: {_kept(summary['kept'])}"
    versions = f"version {summary['from_version']}, is version {summary['to_version']} now"
    yield "store", versions
    if backup := summary["backup"]:
        yield "", f"as it was before: {safe_label(shorten_home(backup), limit=None)}"
    if names := summary["waiting_worktrees"]:
        waits = "1 worktree waits" if len(names) == 1 else f"{len(names):,} worktrees wait"
        shown = ", ".join(safe_label(name) for name in names)
        yield "worktrees", f"{waits} that {before} published with the main checkout: {shown}"
        yield "", "to decide: rootsd pending"
    for root in summary["renamed"]:
        stored, name = safe_label(root["stored"]), safe_label(root["name"])
        yield (
            "names",
            f"{stored} is {name} now, because another root has a name that looks the same",
        )
    if service := summary["service"]:
        yield "service", f"{service['problem']}: {service['remedy']}"
    yield "clients", "restart those that run; until then, they use the old rootsd"
    yield from _entry_lines(summary)


def _entry_lines(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines about entries. Entries with the same change share their lines."""
    groups: dict[EntryChange, list[str]] = {}
    for item in summary["clients"]:
        change = EntryChange(tuple(item["more"]), tuple(item["less"]))
        groups.setdefault(change, []).append(f"{safe_label(item['entry'])} ({item['client']})")
    for change, entries in groups.items():
        yield "", f"{', '.join(entries)}:"
        for word, sentences in (("more", change.more), ("less", change.less)):
            for sentence in sentences:
                yield f"{'':<{_LABEL_WIDTH}}  {word}: ", safe_label(sentence, limit=None)
    if groups and (wider := summary["wider_workspaces"]):
        yield "workspaces", "; ".join(map(_workspace, wider))


def _workspace(root: Mapping[str, Any]) -> str:
    also = ", ".join(safe_label(name) for name in root["also"])
    more = root["count"] - len(root["also"])
    rest = f" and {more} more" if more else ""
    return f"{safe_label(root['name'])} also has {also}{rest}"


def _kept(kept: Mapping[str, int]) -> str:
    words = [f"{kept[kind]} {word}" for kind, word in _KINDS.items() if kept.get(kind)]
    words += [_plural(kept[kind], word) for kind, word in _COUNTED.items() if kept.get(kind)]
    return ", ".join(words) or "there were none"


def _plural(count: int, word: str) -> str:
    first, _, rest = word.partition(" ")
    plural = pluralize(count, first)
    return f"{plural} {rest}" if rest else plural
