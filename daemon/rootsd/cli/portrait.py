"""What a person is told of one project before a decision, a label and a value a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rootsd.cli.columns import age, home_short, note_of, path_of
from rootsd.core.labels import exact_path

LABEL_WIDTH = 13

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_SHORT_ID = 10
_CONCERNS = {
    "sensitive": "sensitive",
    "executed": "agents run",
    "nested": "nested",
    "elsewhere": "data outside",
}


def lines_of(item: Mapping[str, Any], *, for_person: bool) -> Iterator[tuple[str, str]]:
    """Labels and values of an item of `ShowQuery`; the values are as hostile as their authors."""
    path = path_of(item)
    rows = (
        ("name", f"{item['name']} ({item['id']})" if for_person else item["name"]),
        ("id", "" if for_person else item["id"]),
        ("path", home_short(path) if for_person else path),
        ("kind", item["kind"]),
        ("verdict", f"{item['verdict']}, published" if item["published"] else item["verdict"]),
        ("note", note_of(item)),
        ("found", age(item["discovered_at"]) if for_person else item["discovered_at"]),
        ("decided", item["decided_at"] or ""),
        ("origin", item["origin"] or ""),
        ("branch", item["branch"] or ""),
        ("worktree of", item["worktree_of"] or ""),
        ("last commit", _commit(item.get("last_commit"), for_person=for_person)),
        ("calls itself", ", ".join(item["declared_names"] or ())),
        ("files", " ".join(item["project_files"] or ())),
        ("ecosystems", " ".join(item.get("ecosystems") or ())),
        ("size", _size(item.get("size"))),
    )
    yield from ((label, value) for label, value in rows if value)
    for tree in item.get("worktrees", ()):
        place = home_short(path_of(tree)) if for_person else exact_path(path_of(tree))
        yield "worktree", f"{place} ({_outcome_of(tree)})"
    for finding in item["findings"] or ():
        detail = f" ({finding['detail']})" if finding["detail"] else ""
        yield _CONCERNS.get(finding["concern"], finding["concern"]), finding["path"] + detail
    if left_out := item.get("findings_left_out"):
        yield "and", f"{left_out} more findings"


def _outcome_of(tree: Mapping[str, Any]) -> str:
    """Return what becomes of a worktree once its main checkout is approved."""
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


def _size(size: Mapping[str, Any] | None) -> str:
    if size is None:
        return ""
    amount, unit = float(size["bytes"]), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    least = "" if size["whole"] else "at least "
    files = "1 file" if size["files"] == 1 else f"{size['files']} files"
    return f"{least}{amount:.{1 if unit else 0}f} {_UNITS[unit]} in {files}"
