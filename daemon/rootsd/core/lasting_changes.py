"""Changes that undo does not take back, and the command that does so instead.

Undo takes back decisions, which are in the history. A person also gives commands that change the
parents, the configuration, a client, or the list of projects. Without a trace of them, undo would
take back an earlier command than the last one. So the history has an event for each of them, too.
An agent may give such commands. Those are not a person's, so undo ignores them.
"""

from __future__ import annotations

import shlex

from rootsd.core.changes import ChangeVerb
from rootsd.core.history import HistoryEvent
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of

LASTING = (
    ChangeVerb.PARENT_ADDED,
    ChangeVerb.PARENT_REMOVED,
    ChangeVerb.CONFIGURATION_CHANGED,
    ChangeVerb.COMMAND,
)

_HOST = "--host="
_OPPOSITES = {
    ("add",): ("forget",),
    ("forget",): ("add",),
    ("connect",): ("disconnect",),
    ("disconnect",): ("connect",),
    ("sync", "add"): ("sync", "rm"),
    ("sync", "rm"): ("sync", "add"),
}


def opposite(command: str) -> str | None:
    """Return the command that takes `command` back, or None if there is none. Safe to show.

    `command` is as a person types it after `rootsd`. Its options belong to it alone, so the
    opposite has none. What happened on another machine, and whether anything did, is known only
    there.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # a quote without an end: the command was cut
        return None
    for host in (word.removeprefix(_HOST) for word in words[1:2] if word.startswith(_HOST)):
        return _typed("ssh", host, "rootsd", "undo", "--dry-run")
    for verb, other in _OPPOSITES.items():
        if tuple(words[: len(verb)]) == verb:
            references = [word for word in words[len(verb) :] if not word.startswith("--")]
            return _typed("rootsd", *other, *references)
    return None


def is_lasting(event: HistoryEvent) -> bool:
    """Return whether undo would have to take `event` back first, and cannot.

    Nobody is known to have edited the configuration file. Most often it was a person.
    """
    if event.verb not in LASTING:
        return False
    actor = event.decided_by()
    return actor is None or actor.kind.may_decide


def describe_lasting(event: HistoryEvent) -> tuple[str, str]:
    """Return what a change did, as words after "the last", and the command that takes it back."""
    text = text_of(event.subject.key)
    shown = safe_label(text, limit=None)
    match event.verb:
        case ChangeVerb.PARENT_ADDED:
            return f"change added the parent {shown}", _typed("rootsd", "parent", "rm", text)
        case ChangeVerb.PARENT_REMOVED:
            return f"change removed the parent {shown}", _typed("rootsd", "parent", "add", text)
        case ChangeVerb.CONFIGURATION_CHANGED:
            return f"change was of the configuration ({shown})", "rootsd config edit"
        case _:
            return f"command was rootsd {shown}", opposite(text) or "rootsd log"


def _typed(*words: str) -> str:
    return shlex.join(safe_label(word, limit=None) for word in words)
