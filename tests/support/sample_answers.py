"""A sample answer for each control request. Golden texts and benchmarks use them.

Names, paths, and notes are hostile where they can be. Times are so far in the future that their
displayed age does not depend on the current date.
"""

from __future__ import annotations

from collections.abc import Mapping

from rootsd import __version__
from rootsd.core.model import NestedPolicy, Parent
from rootsd.wire.daemon import parent_item
from support.fake_daemon import Answer, a_decision, a_listing, a_scan, a_status, an_item

ALWAYS_NEW = "2999-01-01T00:00:00Z"
ITEMS = (
    an_item("acme/api", id="r7k2", path="/home/ann/src/acme/api", discovered_at=ALWAYS_NEW,
            verdict="approved", published=True, tags=["go", "work"]),
    an_item("a\x1b[2Jn odd\tname", id="q1zd", path="/home/ann/src/odd\u202e/name",
            discovered_at=ALWAYS_NEW, note="asked for by an agent: because"),
    an_item("\u65e5\u672c", id="m9ab", path=None, path_b64="L3NyYy//", verdict="denied",
            discovered_at=ALWAYS_NEW, presence="missing"),
)  # fmt: skip
WAITING = {"id": ITEMS[1]["id"], "identity": "0a1b", "requested": False}
RISKY_ITEMS = (
    an_item("acme/api", id="r7k2", path="/home/ann/src/acme/api", parent="/home/ann/src",
            discovered_at=ALWAYS_NEW, origin_owner="github.com/acme",
            findings=[{"concern": "executed", "path": ".mcp.json", "detail": ""}],
            risk="runs code: .mcp.json, hooks; secrets: .env, config/credentials.json",
            note='claude-code asks for it: "I want to read the interface"'),
    an_item("acme/web", id="q1zd", path="/home/ann/src/acme/web", parent="/home/ann/src",
            discovered_at=ALWAYS_NEW, origin_owner="github.com/acme", findings=[],
            risk="runs code: .husky"),
    an_item("a\x1b[2J", id="m9ab", path="/home/ann/src/\u65e5\u672c/a\x1b[2J", kind="project",
            parent="/home/ann/src", discovered_at=ALWAYS_NEW, risk=None, origin_owner=None),
    an_item("tool", id="x2x2", path="/home/ann/src/lab/x/tool", parent="/home/ann/src",
            discovered_at=ALWAYS_NEW, risk="secrets: \u202e.pem", findings=[],
            origin_owner="git.example.org/\x1b[2J"),
)  # fmt: skip
EVENTS = (
    {"seq": 41, "at": ALWAYS_NEW, "verb": "approved", "actor": "person", "by": "pid 9, bash",
     "path": "/home/ann/src/acme/api", "path_b64": None, "what": "acme/api",
     "undid": None},
    {"seq": 42, "at": ALWAYS_NEW, "verb": "refused", "actor": "caller",
     "by": "pid 7: an agent started it", "path": None, "path_b64": None, "what": "approve x\x1b",
     "undid": None},
)  # fmt: skip
RULE = {
    "number": 3, "verdict": "approved", "pattern": "/home/ann/src/acme/**", "pattern_b64": None,
    "origin": None, "risk": None,
    "covers": 2, "added_at": ALWAYS_NEW, "source": None,
}  # fmt: skip
POLICY_RULE = {
    "number": None, "verdict": "denied", "pattern": "/srv/\u202ecustomers", "pattern_b64": None,
    "origin": None, "risk": None,
    "covers": 1, "added_at": None, "source": "/etc/rootsd/policy.toml, line 4",
}  # fmt: skip
VOICES = (
    {"ground": "deny rule", "verdict": None, "by": None, "decides": False},
    {"ground": "approved", "verdict": "approved", "by": "/home/ann/src/acme/api\u202e",
     "decides": True},
)  # fmt: skip
CONFINED = {
    "id": "0a1b2c3d", "name": "claude\x1b", "program": "claude", "pid": 41, "warden": 40,
    "engine": "namespaces", "landlock": 7, "network": True, "scope": ["workspace:/home/ann/src"],
    "since": ALWAYS_NEW, "roots": 12, "read_only": 2, "masked": 1, "waiting": 0,
    "stays_open": ["TCP on localhost"], "holders": ["43 node: /home/ann/src/acme"],
    "not_shown": ["/home/ann/src/new: another folder is there now"],
    "refused": ["ssh git@forge.example git-upload-pack 'x'"],
}  # fmt: skip
SESSION = {
    "id": "1f2e3d4c", "client": "bad\x1b[2J", "pid": 99, "scope": ["tag:work"],
    "since": ALWAYS_NEW, "until": ALWAYS_NEW, "end": "closed by the client",
    "told": {"roots": 1, "names": ["acme/api"]},
    "given": [
        {"at": ALWAYS_NEW, "revision": 7, "roots": 2, "gained": ["acme/api", "a\x1bb"],
         "gained_count": 5, "lost": ["old"], "lost_count": 1}
    ],
}  # fmt: skip
STATUS = a_status(
    daemon={"version": __version__, "pid": 4121, "since": ALWAYS_NEW, "confined": "landlock"},
    config={"file": "/home/ann/config.toml", "read_at": ALWAYS_NEW, "checksum": "00000000",
            "changes": [], "error": None},
    parents=[
        parent_item(Parent(b"/home/ann/src"), state="watched", projects=3),
        parent_item(
            Parent("/home/ann/cl\u202eients".encode(), 2, nested=NestedPolicy.VCS), "polled",
            "all inotify instances are in use", "sudo sysctl x=1", 1,
        ),
    ],
    sessions=[SESSION],
    refused={"count": 2, "at": ALWAYS_NEW, "what": "approve x\x1b", "by": "goose, pid 7",
             "why": "Goose started it"},
    focus="work",
    confined=[CONFINED],
    policy={"file": "/etc/rootsd/policy.toml", "read_at": ALWAYS_NEW, "refused": 2, "denied": 1,
            "approved": 0, "requires_wall": True, "error": None, "remedy": None},
    degraded=["/home/ann/clients: all inotify instances are in use"],
)  # fmt: skip
INSIDE = {
    "topic": "watches", "condition": "warning", "finding": "40,000 in use, of 48,134",
    "remedy": "echo fs.inotify.max_user_watches=524288 | sudo tee /etc/sysctl.d/60-rootsd.conf",
    "seen_by": "daemon",
}  # fmt: skip
_RULED = {
    "revision": 8, "rule": RULE, "is_new": True, "items": list(ITEMS[:2]), "warnings": [],
}  # fmt: skip

ANSWERS: Mapping[str, Answer] = {
    "status": STATUS,
    "reload": STATUS,
    "scan": a_scan(items=[ITEMS[1]], gone=[ITEMS[2]], changed=[ITEMS[0]], being_made=1),
    "projects": lambda params: a_listing(*(RISKY_ITEMS if params.get("risks") else ITEMS)),
    "show": a_listing(ITEMS[1]),
    "next-waiting": lambda params: a_listing(*(() if params.get("known") else (WAITING,))),
    "decide": a_decision(*ITEMS[:2], unchanged=[ITEMS[2]], warnings=["one is withheld"]),
    "rename": a_decision(ITEMS[0]),
    "tag": a_decision(*ITEMS[:2]),
    "add": {"revision": 8, "items": [ITEMS[1]], "is_new": True, "warnings": []},
    "log": a_listing(*EVENTS),
    "rules": {**a_listing(RULE), "policy": [POLICY_RULE]},
    "rule-add": _RULED,
    "rule-rm": {**_RULED, "is_new": False},
    "undo": {"revision": 8, "undone": [EVENTS[0]], "items": [ITEMS[0]], "warnings": []},
    "focus": {"revision": 8, "tag": "work", "roots": ["acme/api"], "warnings": []},
    "set-focus": {"revision": 8, "tag": None, "roots": [], "warnings": []},
    "guard": {
        "revision": 8, "guard": "agents", "warnings": [], "allowed": ["/home/ann/bin/zellij"],
        "last": {
            "at": "2026-03-04T09:00:00Z", "what": "approve api", "judgment": "asked",
            "why": (
                "rootsd does not know kimi2 (/home/ann/.local/bin/kimi2), pid 812,"
                " which started it"
            ),
            "programs": [
                {"pid": 815, "name": "rootsd", "program": "/usr/bin/python3.12", "use": "rootsd",
                 "allow": None},
                {"pid": 812, "name": "kimi2", "program": "/home/ann/.local/bin/kimi2",
                 "use": None, "allow": "rootsd guard allow /home/ann/.local/bin/kimi2"},
                {"pid": 700, "name": "sshd", "program": None, "use": "runs as root",
                 "allow": None},
            ],
        },
    },
    "set-guard": {
        "revision": 8, "guard": "terminal", "warnings": [], "allowed": [], "last": None,
    },
    "allow-programs": {
        "revision": 8, "guard": "agents", "warnings": [], "allowed": ["/bin/sh"], "last": None,
    },
    "disallow-programs": {
        "revision": 8, "guard": "agents", "warnings": [], "allowed": [], "last": None,
    },
    "sessions": {**a_listing(SESSION), "confined": [CONFINED]},
    "why": {
        "revision": 8, "path": "/home/ann/src/acme/api/README", "published": True,
        "root": "acme/api", "voices": list(VOICES), "obstacles": [], "items": [ITEMS[0]],
        "warnings": [],
    },
    "check": {
        "published": True, "verdict": "approved", "root": "acme/api", "access": "read-write",
    },
    "examine": {"items": [INSIDE]},
}  # fmt: skip
