"""Describe projects and rules: the columns of tables, and the detail view."""

from __future__ import annotations

import shlex
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import age, bytes_of, pluralize, shorten_home, shown_path
from rootsd.cli.text.render import Column, path_column, time_column
from rootsd.cli.text.theme import Tone
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.paths import text_of
from rootsd.core.risks import UNREAD

VERDICT_TONES = {"approved": Tone.GOOD, "denied": Tone.BAD, "pending": Tone.ATTENTION}
_NAME_LIMIT = 64
_OWNER_LIMIT = 40
_UNKNOWN_RISK = f"risks: {UNREAD}"  # on a terminal, the title may be missing


def path_of(item: Mapping[str, Any]) -> str:
    """Return the path of a project, with lone surrogates for undecodable bytes; else its URI."""
    encoded = item.get("path_b64")
    if encoded:
        return b64decode(encoded).decode("utf-8", "surrogateescape")
    return str(item.get("path") or item.get("uri") or "")


def pattern_of(rule: Mapping[str, Any]) -> str:
    """Return the pattern of a rule, with lone surrogates for undecodable bytes."""
    encoded = rule["pattern_b64"]
    return text_of(b64decode(encoded)) if encoded else str(rule["pattern"])


def conditions_of(rule: Mapping[str, Any]) -> str:
    """Return what a rule requires besides its pattern, such as `origin github.com/acme/*`."""
    return ", ".join(f"{key} {rule[key]}" for key in ("origin", "risk") if rule[key])


def rule_words(rule: Mapping[str, Any]) -> str:
    """Return the pattern of a rule, and what it requires besides."""
    pattern, conditions = safe_label(pattern_of(rule), limit=None), conditions_of(rule)
    return f"{pattern} ({conditions})" if conditions else pattern


def coverage_of(rule: Mapping[str, Any]) -> str:
    """Return a sentence that says how many projects a rule covers."""
    if not rule["covers"]:
        return "It covers no project yet."
    return f"It covers {pluralize(rule['covers'], 'project')} now."


def note_of(item: Mapping[str, Any]) -> str:
    """Return the facts that have no column of their own, in a few words."""
    main = f"worktree of {shorten_home(item['worktree_of'])}" if item.get("worktree_of") else ""
    return _joined_notes(item, main)


def _joined_notes(item: Mapping[str, Any], main: str = "") -> str:
    notes = [
        f"incomplete: {item['incomplete']}" if item.get("incomplete") else "",
        item["presence"] if item.get("presence", "present") != "present" else "",
        "read only" if item.get("access") == "read" else "",
        f"until {item['expires_at']}" if item.get("expires_at") else "",
        " ".join(f"#{tag}" for tag in item.get("tags", ())),
        main,
        item.get("note") or "",
    ]
    return ", ".join(note for note in notes if note)


def risk_of(item: Mapping[str, Any]) -> str:
    """Return the risks of a project in words, or a question mark if they are not known."""
    risk: str | None = item.get("risk", "")  # missing where risks were not asked for
    if risk is not None:
        return risk
    is_folder = item["presence"] == "present" and item["kind"] != "uri"
    return UNREAD if is_folder else ""


ID = Column("ID", lambda item: item["id"])
NAME = Column("NAME", lambda item: item["name"], limit=_NAME_LIMIT)
KIND = Column("KIND", lambda item: item["kind"])
VERDICT = Column("VERDICT", lambda item: item["verdict"], tones=VERDICT_TONES)
PATH = path_column("PATH", path_of)
FOUND = time_column("FOUND", "discovered_at")
NOTE = Column("NOTE", note_of, fit=ColumnFit.NOTE)
RISK = Column(
    "RISK",
    risk_of,
    short=lambda item: _UNKNOWN_RISK if risk_of(item) == UNREAD else risk_of(item),
    fit=ColumnFit.NOTE,
    tone=Tone.ATTENTION,
)
OWNER = Column("FROM", lambda item: item.get("origin_owner") or "", limit=_OWNER_LIMIT)

# Programs read the columns by their number, so a new one comes last.
PENDING_COLUMNS = (ID, NAME, KIND, PATH, FOUND, OWNER, RISK, NOTE)
PROJECT_COLUMNS = (ID, NAME, VERDICT, KIND, PATH, NOTE)


LABEL_WIDTH = 13

_SHORT_ID = 10
_FINDING_LABELS = {
    "sensitive": "sensitive",
    "executed": "agents run",
    "nested": "nested",
    "absent": "not cloned",
    "elsewhere": "data outside",
}
RISK_LABELS = frozenset((_FINDING_LABELS["sensitive"], _FINDING_LABELS["executed"]))
"""The labels in the detail view of what a person should look at first."""


def detail_lines(item: Mapping[str, Any], *, for_person: bool) -> Iterator[tuple[str, str]]:
    """Yield the labels and values of an item of `ShowQuery`. The values are untrusted text."""
    path, main = path_of(item), item["worktree_of"] or ""
    rows = (
        ("name", f"{item['name']} ({item['id']})" if for_person else item["name"]),
        ("id", "" if for_person else item["id"]),
        ("path", shorten_home(path) if for_person else path),
        ("kind", item["kind"]),
        ("verdict", f"{item['verdict']}, published" if item["published"] else item["verdict"]),
        ("note", _joined_notes(item)),
        ("found", age(item["discovered_at"]) if for_person else item["discovered_at"]),
        ("decided", item["decided_at"] or ""),
        ("origin", item["origin"] or ""),
        ("branch", item["branch"] or ""),
        ("upstream", _upstream(item)),
        ("worktree of", shorten_home(main) if for_person else main),
        ("shared git", _shared_git(item.get("shared_git"), for_person=for_person)),
        ("last commit", _commit(item.get("last_commit"), for_person=for_person)),
        ("calls itself", ", ".join(item["declared_names"] or ())),
        ("files", " ".join(item["project_files"] or ())),
        ("ecosystems", " ".join(item.get("ecosystems") or ())),
        ("size", _size(item.get("size"))),
    )
    yield from ((label, value) for label, value in rows if value)
    for remote in item.get("remotes") or ():
        if remote["url"] != item["origin"]:
            yield "remote", f"{remote['name']} {remote['url']}"
    for tree in item.get("worktrees", ()):
        place = shorten_home(path_of(tree)) if for_person else exact_path(path_of(tree))
        yield "worktree", f"{place} ({_worktree_outcome(tree)})"
    for changed, how in item.get("changed", {}).items():
        yield "changed", f"{changed} ({how} since you approved)"
    for finding in item["findings"] or ():
        detail = f" ({finding['detail']})" if finding["detail"] else ""
        yield _FINDING_LABELS.get(finding["concern"], finding["concern"]), finding["path"] + detail
    if left_out := item.get("findings_left_out"):
        yield "and", f"{left_out} more findings"


def describe_session_request(request: Mapping[str, Any]) -> str:
    """Return the process of a session that requests a folder, its own name, and the reason."""
    own = f' (its own name: "{request["client"]}")' if request["client"] != request["by"] else ""
    return f'{request["by"]}{own}: "{request["reason"]}"'


def describe_shared_git(git: Mapping[str, Any]) -> str:
    """Return sentences about a Git directory of a pending checkout."""
    root, name = safe_label(git["root_name"]), safe_label(git["name"])
    place = shown_path(git["git_directory"] or path_of(git))
    use = "read it" if git["access"] == "read" else "read and write it"
    return (
        f"{root} uses the Git directory of {name}, which is pending: {place}. "
        f"Programs behind the wall {'can' if git['included'] else 'could'} {use}."
    )


def how_to_include(git: Mapping[str, Any]) -> str:
    """Return the command that includes a Git directory in the approval of its root."""
    return f"rootsd approve {shlex.quote(git['root_name'])} --shared-git"


def _shared_git(git: Mapping[str, Any] | None, *, for_person: bool) -> str:
    if git is None:
        return ""
    path = git["git_directory"] or path_of(git)
    place = shorten_home(path) if for_person else exact_path(path)
    state = "open" if git["included"] else "closed"
    how = f"; to include it: {how_to_include(git)}" if git["confirmable"] else ""
    return f"{place} ({state} behind the wall: {git['reason']}{how})"


def _worktree_outcome(tree: Mapping[str, Any]) -> str:
    """Return the effect on a worktree of approving its main checkout."""
    if tree["published"]:
        return "published with it"
    if tree["confirmable"]:
        return "published with it only if you confirm it"
    return f"stays pending: {tree['reason']}"


def _commit(commit: Mapping[str, str] | None, *, for_person: bool) -> str:
    if commit is None:
        return ""
    when = age(commit["at"]) if for_person else commit["at"]
    return f"{commit['id'][:_SHORT_ID]} {when}: {commit['summary']}"


def _upstream(item: Mapping[str, Any]) -> str:
    upstream = item.get("upstream")
    if upstream is None:
        return ""
    counts = ((item["ahead"], "ahead"), (item["behind"], "behind"))
    difference = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"{upstream} ({difference or 'up to date'})"


def _size(size: Mapping[str, Any] | None) -> str:
    if size is None:
        return ""
    least = "" if size["whole"] else "at least "
    files = "1 file" if size["files"] == 1 else f"{size['files']} files"
    return f"{least}{bytes_of(size['bytes'])} in {files}"
