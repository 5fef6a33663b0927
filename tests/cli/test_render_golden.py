"""What each verb prints: on terminals of 40, 80 and 120 columns, in a pipe, and as JSON.

The texts lie in `golden/`, a file a verb. Whoever changes what is printed deletes the file, runs
this once, and reads the new one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon, a_decision, a_listing, an_item
from support.terminal import Shell

FOLDER = Path(__file__).parent / "golden"
WIDTHS = (40, 80, 120)
ALWAYS_NEW = "2999-01-01T00:00:00Z"  # so that its age is the same on every day
ITEMS = (
    an_item("acme/api", id="r7k2", path="/home/ann/src/acme/api", discovered_at=ALWAYS_NEW,
            verdict="approved", published=True, tags=["go", "work"]),
    an_item("a\x1b[2Jn odd\tname", id="q1zd", path="/home/ann/src/odd\u202e/name",
            discovered_at=ALWAYS_NEW, note="asked for by an agent: because"),
    an_item("\u65e5\u672c", id="m9ab", path=None, path_b64="L3NyYy//", verdict="denied",
            discovered_at=ALWAYS_NEW, presence="missing"),
)  # fmt: skip
EVENTS = (
    {"seq": 41, "at": ALWAYS_NEW, "verb": "approved", "actor": "person", "by": "pid 9, bash",
     "path": "/home/ann/src/acme/api", "path_b64": None, "what": "acme/api"},
    {"seq": 42, "at": ALWAYS_NEW, "verb": "refused", "actor": "caller",
     "by": "pid 7: an agent started it", "path": None, "path_b64": None, "what": "approve x\x1b"},
)  # fmt: skip
RULE = {
    "number": 3, "verdict": "approved", "pattern": "/home/ann/src/acme/**", "pattern_b64": None,
    "covers": 2, "added_at": ALWAYS_NEW,
}  # fmt: skip
ANSWERS = {
    "projects": a_listing(*ITEMS),
    "show": a_listing(ITEMS[1]),
    "decide": a_decision(*ITEMS[:2], unchanged=[ITEMS[2]], warnings=["one is withheld"]),
    "rename": a_decision(ITEMS[0]),
    "tag": a_decision(*ITEMS[:2]),
    "log": a_listing(*EVENTS),
    "rules": a_listing(RULE),
    "undo": {"revision": 8, "undone": [EVENTS[0]], "items": [ITEMS[0]], "warnings": []},
    "focus": {"revision": 8, "tag": "work", "roots": ["acme/api"], "warnings": []},
    "set-focus": {"revision": 8, "tag": None, "roots": [], "warnings": []},
}
VERBS: dict[str, tuple[str, ...]] = {
    "ls": ("ls",),
    "pending": ("pending",),
    "show": ("show", "q1zd"),
    "approve": ("approve", "*"),
    "deny": ("deny", "*", "--dry-run"),
    "forget": ("forget", "*"),
    "rename": ("rename", "r7k2", "acme/api"),
    "tag": ("tag", "*", "go"),
    "tags": ("tag",),
    "focus": ("focus",),
    "focus-clear": ("focus", "--clear"),
    "undo": ("undo",),
    "log": ("log",),
    "rule": ("rule",),
    "prune": ("prune",),
    "export": ("export",),
}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def _printed(shell: Shell, words: tuple[str, ...]) -> str:
    parts = []
    for width in WIDTHS:
        shown = ESCAPES.sub("", shell.terminal(*words, columns=width, HOME="/home/ann").out)
        parts.append(f"--- {width} columns\n{shown}")
    piped = shell.run(*words)
    parts.append(f"--- pipe\n{piped.out}--- standard error\n{piped.err}")
    parts.append(f"--- json\n{shell.run(*words, '--json').out}")
    return "".join(parts)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_what_it_printed(daemon: FakeDaemon, shell: Shell, verb: str) -> None:
    daemon.answers |= ANSWERS
    printed = _printed(shell, VERBS[verb])
    golden = FOLDER / f"{verb}.txt"
    if not golden.exists():
        golden.write_text(printed)
        pytest.fail(f"{golden} is new: read it")
    assert printed == golden.read_text()


@pytest.mark.parametrize("golden", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_nothing_hostile_reaches_a_terminal_a_pipe_or_a_parser(golden: Path) -> None:
    text = golden.read_text()
    assert golden.stem in VERBS
    assert "\x1b" not in text
    assert "\u202e" not in text
    pipe = text.partition("--- pipe\n")[2].partition("--- standard error")[0]
    counts = {line.count("\t") for line in pipe.splitlines() if golden.stem != "show"}
    assert len(counts) <= 1
