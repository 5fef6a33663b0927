"""The columns that projects are shown in: what a person reads from an `Item`."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rootsd.cli.layout import Fit
from rootsd.cli.render import Column
from rootsd.core.labels import exact_path
from rootsd.core.paths import text_of

VERDICT_STYLES = {"approved": "green", "denied": "red", "pending": "yellow"}
_NAME_LIMIT = 64
_STEPS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "m"))


def path_of(item: Mapping[str, Any]) -> str:
    """The path of a project as text, undecodable bytes as lone surrogates; else its URI."""
    encoded = item.get("path_b64")
    if encoded:
        return b64decode(encoded).decode("utf-8", "surrogateescape")
    return str(item.get("path") or item.get("uri") or "")


def pattern_of(rule: Mapping[str, Any]) -> str:
    """The pattern of a rule as text, undecodable bytes as lone surrogates."""
    encoded = rule["pattern_b64"]
    return text_of(b64decode(encoded)) if encoded else str(rule["pattern"])


def extent_of(rule: Mapping[str, Any]) -> str:
    """How much a rule covers, as a sentence."""
    if not rule["covers"]:
        return "It covers nothing yet."
    return f"It covers {rule['covers']} now."


def home_short(path: str) -> str:
    """`~/src` for a path in the home folder; for people, who may copy it into a shell."""
    home = os.path.expanduser("~")
    if home != "/" and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path


def many(count: int, what: str) -> str:
    """`1 project`, `2,000 projects`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def age(moment: str, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 time was, in its largest unit: `2h ago`, `just now`."""
    try:
        seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    except (ValueError, TypeError):
        return moment
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"


def note_of(item: Mapping[str, Any]) -> str:
    """What the other columns do not say, in a few words."""
    notes = [
        f"incomplete: {item['incomplete']}" if item.get("incomplete") else "",
        item["presence"] if item.get("presence", "present") != "present" else "",
        "read only" if item.get("access") == "read" else "",
        f"until {item['expires_at']}" if item.get("expires_at") else "",
        " ".join(f"#{tag}" for tag in item.get("tags", ())),
        f"worktree of {home_short(item['worktree_of'])}" if item.get("worktree_of") else "",
        item.get("note") or "",
    ]
    return ", ".join(note for note in notes if note)


ID = Column("ID", lambda item: item["id"])
NAME = Column("NAME", lambda item: item["name"], limit=_NAME_LIMIT)
KIND = Column("KIND", lambda item: item["kind"])
VERDICT = Column("VERDICT", lambda item: item["verdict"], style=VERDICT_STYLES)
PATH = Column(
    "PATH",
    path_of,
    short=lambda item: home_short(path_of(item)),
    fit=Fit.PATH,
    exact=exact_path,
)
FOUND = Column(
    "FOUND", lambda item: item["discovered_at"], short=lambda item: age(item["discovered_at"])
)
NOTE = Column("NOTE", note_of, fit=Fit.NOTE)

PENDING_COLUMNS = (ID, NAME, KIND, PATH, FOUND, NOTE)
PROJECT_COLUMNS = (ID, NAME, VERDICT, KIND, PATH, NOTE)
